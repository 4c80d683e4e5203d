//! Several runs: the mean of each count, and how far it can be trusted.

use quipu::Count;

use super::rows::{MeanOfRuns, Row};

/// Values seen one by one: their mean and its standard error.
///
/// Welford's method, as perf uses it (`tools/perf/util/stat.c` of the kernel): the sum of squared
/// distances from the mean is kept up to date, which loses nothing to cancellation.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Samples {
    count: u32,
    mean: f64,
    squares: f64,
}

impl Samples {
    pub fn add(&mut self, value: f64) {
        self.count += 1;
        let distance = value - self.mean;
        self.mean += distance / f64::from(self.count);
        self.squares += distance * (value - self.mean);
    }

    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// Returns the standard error of the mean: sqrt(sum of squares / (n - 1) / n).
    pub fn standard_error(&self) -> f64 {
        if self.count < 2 {
            return 0.0;
        }
        let n = f64::from(self.count);
        (self.squares / (n - 1.0) / n).sqrt()
    }

    pub fn percent(&self) -> f64 {
        if self.mean == 0.0 {
            0.0
        } else {
            self.standard_error() / self.mean.abs() * 100.0
        }
    }
}

/// The rows of several runs, merged line by line.
#[derive(Debug, Default)]
pub struct Merge {
    lines: Vec<RepeatedRow>,
    runs: usize,
}

#[derive(Debug)]
struct RepeatedRow {
    row: Row,
    /// The last run that had this line.
    run: usize,
    values: Samples,
    cores: Vec<Samples>,
    terms: Vec<Samples>,
    times: [Samples; 3],
}

impl Merge {
    /// Adds the rows of one more run. An event that was asked for twice has two lines.
    pub fn add(&mut self, rows: Vec<Row>) {
        self.runs += 1;
        let run = self.runs;
        for (index, row) in rows.into_iter().enumerate() {
            let fits = |line: &RepeatedRow| line.run < run && line.row.is_line_of(&row);
            // Runs of the same events have their lines in the same order, nearly always.
            let known = match self.lines.get(index) {
                Some(line) if fits(line) => index,
                _ => self.lines.iter().position(fits).unwrap_or_else(|| {
                    self.lines.push(RepeatedRow::new(&row));
                    self.lines.len() - 1
                }),
            };
            let line = &mut self.lines[known];
            line.run = run;
            line.add(&row);
        }
    }

    /// Returns the means. A line has a spread when it was counted in more than one run.
    pub fn rows(self) -> Vec<Row> {
        self.lines.into_iter().map(RepeatedRow::finish).collect()
    }
}

impl RepeatedRow {
    fn new(row: &Row) -> Self {
        Self {
            row: row.clone(),
            run: 0,
            values: Samples::default(),
            cores: vec![Samples::default(); row.cores.len()],
            terms: vec![Samples::default(); row.preset.as_ref().map_or(0, |f| f.terms.len())],
            times: [Samples::default(); 3],
        }
    }

    fn add(&mut self, row: &Row) {
        for (samples, time) in self
            .times
            .iter_mut()
            .zip([row.time, row.enabled, row.running])
        {
            samples.add(time as f64);
        }
        for (samples, (_, count)) in self.cores.iter_mut().zip(&row.cores) {
            samples.add(count.value().unwrap_or(0) as f64);
        }
        let terms = self.row.preset.iter_mut().flat_map(|f| &mut f.terms);
        let others = row.preset.iter().flat_map(|f| &f.terms);
        for ((samples, term), other) in self.terms.iter_mut().zip(terms).zip(others) {
            if let Some(value) = other.count.value() {
                samples.add(value as f64);
                term.count = worst(term.count, other.count);
            }
        }
        if (row.count == Count::Jumped) != (self.row.count == Count::Jumped) {
            self.row.disturbance = Some("the counter jumped in some of the runs".into());
            self.row.count = worst(self.row.count, row.count);
        }
        if row.disturbance.is_some() {
            self.row.disturbance.clone_from(&row.disturbance);
        }
        self.row.turn = row.turn.or(self.row.turn);
        if let Some(value) = row.count.value() {
            self.values.add(value as f64);
            self.row.count = worst(self.row.count, row.count);
        }
    }

    fn finish(self) -> Row {
        let mut row = self.row;
        if row.count.value().is_some() {
            row.reason = None;
            row.count = with_value(row.count, self.values.mean());
            row.spread = (self.values.count > 1).then(|| MeanOfRuns {
                mean: self.values.mean(),
                percent: self.values.percent(),
            });
        }
        for ((_, count), samples) in row.cores.iter_mut().zip(&self.cores) {
            *count = Count::Exact(samples.mean().round() as u128);
        }
        let terms = row.preset.iter_mut().flat_map(|f| &mut f.terms);
        for (term, samples) in terms.zip(&self.terms) {
            if term.count.value().is_some() {
                term.count = with_value(term.count, samples.mean());
            }
        }
        let [time, enabled, running] = self.times.map(|samples| samples.mean().round() as u64);
        (row.time, row.enabled, row.running) = (time, enabled, running);
        row
    }
}

/// Returns the first count with the lower certainty of both: an estimate in one run makes the mean one.
fn worst(a: Count, b: Count) -> Count {
    match (a.value(), b.value()) {
        (Some(value), Some(_)) => {
            let missing = a.missing().max(b.missing());
            let parts = parts(a).max(parts(b));
            let mean = Count::of_parts(value, a.is_estimate() || b.is_estimate(), missing, parts);
            mean.bounded(a.is_lower_bound() || b.is_lower_bound())
        }
        (Some(_), None) => a,
        (None, _) => b,
    }
}

/// Returns the count with another value.
fn with_value(count: Count, value: f64) -> Count {
    let value = value.round() as u128;
    Count::of_parts(value, count.is_estimate(), count.missing(), parts(count))
        .bounded(count.is_lower_bound())
}

/// Returns the number of parts that a count covers, if some are missing.
fn parts(count: Count) -> usize {
    match count {
        Count::Partial { parts, .. } => parts,
        _ => 0,
    }
}
