//! A progress bar on a terminal, for what takes longer than a second.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The time within which reading has no bar.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes after which the bar may move.
const STEP: u64 = 1 << 20;

/// The part of a file that has been read, shown on standard error if that is a terminal.
#[derive(Debug)]
pub(crate) struct Progress {
    /// Length of the file, in bytes; `None` where nothing is shown.
    len: Option<u64>,
    begun: Instant,
    patience: Duration,
    next: u64,
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Begins to read a file of `len` bytes.
    pub(crate) fn of_bytes(len: u64) -> Self {
        let is_terminal = !ProgressDrawTarget::stderr().is_hidden();
        Self::after(PATIENCE, is_terminal.then_some(len))
    }

    /// Begins to read what is shown as it is read, or is of an unknown length: there is no bar.
    pub(crate) fn hidden() -> Self {
        Self::after(PATIENCE, None)
    }

    fn after(patience: Duration, len: Option<u64>) -> Self {
        Self {
            len,
            begun: Instant::now(),
            patience,
            next: if len.is_some() { STEP } else { u64::MAX },
            bar: None,
        }
    }

    /// Takes note that so many bytes have been read.
    #[inline]
    pub(crate) fn set(&mut self, bytes: u64) {
        if bytes >= self.next {
            self.show(bytes);
        }
    }

    #[cold]
    fn show(&mut self, bytes: u64) {
        self.next = bytes + STEP;
        let Some(len) = self.len else {
            return;
        };
        if self.bar.is_none() && self.begun.elapsed() < self.patience {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template(
                "{percent:>3} % [{wide_bar}] {bytes} of {total_bytes}",
            );
            let bar = ProgressBar::with_draw_target(Some(len), ProgressDrawTarget::stderr());
            bar.with_style(style.map_or_else(
                |_| ProgressStyle::default_bar(),
                |s| s.progress_chars("=> "),
            ))
        });
        bar.set_position(bytes);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_comes_when_patience_ends_and_only_where_it_is_seen() {
        let shown = |patience, len| {
            let mut progress = Progress::after(patience, len);
            progress.set(STEP - 1);
            assert!(progress.bar.is_none());
            progress.set(3 * STEP);
            progress.bar.as_ref().map(ProgressBar::position)
        };
        assert_eq!(shown(Duration::ZERO, Some(4 * STEP)), Some(3 * STEP));
        assert_eq!(shown(Duration::MAX, Some(4 * STEP)), None);
        assert_eq!(shown(Duration::ZERO, None), None);
    }
}
