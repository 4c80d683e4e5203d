//! Intervals as a picture.

use std::path::PathBuf;

use quipu_plot::{Interval, Plot};
use quipu_shell::{Failure, output_file};

use super::rows::Row;

/// A picture of intervals, while they come.
pub(super) struct Picture {
    path: PathBuf,
    plot: Plot,
    /// Seconds at which the last interval ended.
    ended: f64,
}

impl Picture {
    /// Returns one without intervals, which is written to a file.
    pub(super) fn new(path: PathBuf) -> Self {
        Self {
            path,
            plot: Plot::default(),
            ended: 0.0,
        }
    }

    /// Adds the rows of an interval that ended so many seconds after the start. Intervals of any length are compared, so counts
    /// are those of a second; a gauge is as it is.
    pub(super) fn interval(&mut self, time: f64, rows: &[Row]) {
        let seconds = time - self.ended;
        for row in rows.iter().filter(|row| row.derived.is_none()) {
            let unit = match (row.is_gauge, &*row.unit.name) {
                (true, unit) => unit.to_owned(),
                (false, "") => "per second".to_owned(),
                (false, unit) => format!("{unit} per second"),
            };
            // wait4(2) reports the whole run at its end, and nothing of intervals.
            let amount = row.amount().filter(|_| row.backend != Some("posix"));
            let value = match row.is_gauge {
                true => amount,
                false => amount
                    .filter(|_| seconds > 0.0)
                    .map(|amount| amount / seconds),
            };
            let place = match &row.cgroup {
                Some(cgroup) => format!("{} {cgroup}", row.place),
                None => row.place.to_string(),
            };
            let interval = Interval {
                begin: self.ended,
                end: time,
                value,
                is_estimate: row.is_uncertain(),
            };
            self.plot.add(&row.name, &unit, place.trim(), interval);
        }
        self.ended = time;
    }

    /// Writes the file.
    pub(super) fn write(&self) -> Result<(), Failure> {
        if self.plot.is_empty() {
            return Err(Failure::new(
                "there are no intervals to plot: count with -I MILLISECONDS",
            ));
        }
        output_file::write(&self.path, self.plot.svg())
            .map_err(|e| Failure::new(format_args!("cannot write {}: {e}", self.path.display())))
    }
}
