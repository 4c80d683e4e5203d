//! The report at the end of the process, where the user asked for one.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::Report;

/// The variable that asks for a report when the process ends, and says where: a file, in JSON or CSV if its name ends so, a
/// directory, which gets a file in JSON for each process, or `-`, standard error.
pub const REPORT_VARIABLE: &str = "QUIPU_REGIONS";

/// The variable that chooses the events of regions, in the place of the program.
pub const EVENTS_VARIABLE: &str = "QUIPU_REGION_EVENTS";

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Turns on what counts where it is asked for alone, as the markers of other languages do ([`is_on`]). Regions that Rust enters are
/// counted in any case.
pub fn turn_on() {
    IS_ON.store(true, Ordering::Relaxed);
}

/// Returns true if the program has [turned regions on](turn_on), or its user by `QUIPU_REGIONS`.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed) || quipu_environment::variable(REPORT_VARIABLE).is_some()
}

/// Has the report written when the process ends, if the user asked for it.
pub(crate) fn register() {
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| {
        if quipu_environment::variable(REPORT_VARIABLE).is_some() {
            quipu_posix::at_exit(write_at_exit);
        }
    });
}

extern "C" fn write_at_exit() {
    // A panic must not leave the end of the process half done.
    let written = std::panic::catch_unwind(|| {
        let Some(place) = quipu_environment::variable(REPORT_VARIABLE) else {
            return;
        };
        let report = Report::now();
        if report.is_empty() {
            return;
        }
        let place = PathBuf::from(place);
        if let Err(error) = write(&report, &place) {
            let what = place.display();
            let _ = writeln!(
                io::stderr(),
                "quipu: cannot write the regions to {what}: {error}"
            );
        }
    });
    drop(written);
}

fn write(report: &Report, place: &Path) -> io::Result<()> {
    if place == Path::new("-") {
        return write!(io::stderr(), "{report}");
    }
    if place.is_dir() {
        // The processes of a command each have their own.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let own = place.join(format!("{}-{}.json", report.process, now.as_nanos()));
        return quipu_environment::create_named(&own)?.write_all(&report.json()?);
    }
    let text = match place.extension().and_then(|end| end.to_str()) {
        Some("json") => report.json()?,
        Some("csv") => report.csv().into_bytes(),
        _ => report.to_string().into_bytes(),
    };
    quipu_environment::create_named(place)?.write_all(&text)
}

impl Report {
    /// Returns it in JSON, a line.
    ///
    /// # Errors
    /// None that is known: the report has no value that JSON lacks.
    pub fn json(&self) -> io::Result<Vec<u8>> {
        let mut json = serde_json::to_vec(self)?;
        json.push(b'\n');
        Ok(json)
    }
}
