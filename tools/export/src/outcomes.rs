//! Outcomes of writing and sending, which are series themselves.

use std::sync::atomic::{AtomicU64, Ordering};

/// Numbers of things that worked and did not.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    pub(crate) files_written: Outcome,
    pub(crate) files_failed: Outcome,
    pub(crate) points_sent: Outcome,
    pub(crate) points_lost: Outcome,
}

/// A number of things.
#[derive(Debug, Default)]
pub(crate) struct Outcome(AtomicU64);

impl Outcome {
    pub(crate) fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A word and how often that was the outcome.
type Of = (&'static str, u64);

impl Outcomes {
    /// Returns the name, the sentence and both outcomes of what was done at all.
    pub(crate) fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, [Of; 2])> {
        let files = (self.files_written.get(), self.files_failed.get());
        let points = (self.points_sent.get(), self.points_lost.get());
        [
            (
                "quipu_textfile_writes",
                "Files for the collector of text files",
                [("written", files.0), ("failed", files.1)],
            ),
            (
                "quipu_otlp_points",
                "Points for a collector of OpenTelemetry, in the end",
                [("sent", points.0), ("lost", points.1)],
            ),
        ]
        .into_iter()
        .filter(|(.., [fine, failed])| fine.1 + failed.1 > 0)
    }
}
