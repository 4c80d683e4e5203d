//! Going on in a new file: when that is to be, and which of the files are kept (perf-record(1), `--switch-output`).

use std::collections::VecDeque;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::SIGUSR2;
use signal_hook::flag;

use quipu_shell::Failure;
use quipu_shell::numbers;

/// A condition for going on in a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SwitchOn {
    /// SIGUSR2 arrives.
    Signal,
    /// The file has so many bytes.
    Size(u64),
    /// The file has been written to for so long.
    Time(Duration),
}

impl FromStr for SwitchOn {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let expected = || {
            "expected signal, a size with B, K, M or G, like 100M, or a time with s, m, h or d, like 30s"
                .to_owned()
        };
        if text == "signal" {
            return Ok(Self::Signal);
        }
        let (at, unit) = text.char_indices().last().ok_or_else(expected)?;
        let seconds = match unit {
            's' => 1,
            'm' => 60,
            'h' => 3600,
            'd' => 24 * 3600,
            unit if unit.is_ascii_digit() => return Err(expected()),
            _ => return numbers::size(text).map(Self::Size).map_err(|_| expected()),
        };
        let number: Option<u64> = numbers::positive(&text[..at]).ok();
        let seconds = number.and_then(|number| number.checked_mul(seconds));
        let seconds = seconds.ok_or_else(expected)?;
        Ok(Self::Time(Duration::from_secs(seconds)))
    }
}

/// The files of a recording.
pub(super) struct FileSwitch {
    on: Option<SwitchOn>,
    path: PathBuf,
    /// The most files that are kept; 0 for all.
    most: usize,
    kept: VecDeque<PathBuf>,
    signal: Arc<AtomicBool>,
    begun: Instant,
}

impl FileSwitch {
    /// Begins with the file at a path. Without a condition there is one file, which gets its name at the end.
    pub(super) fn new(on: Option<SwitchOn>, path: &Path, most: usize) -> Result<Self, Failure> {
        let signal = Arc::new(AtomicBool::new(false));
        if on == Some(SwitchOn::Signal) {
            flag::register(SIGUSR2, Arc::clone(&signal))
                .map_err(|e| Failure::new(format_args!("cannot handle SIGUSR2: {e}")))?;
        }
        Ok(Self {
            on,
            path: path.to_owned(),
            most,
            kept: VecDeque::new(),
            signal,
            begun: Instant::now(),
        })
    }

    /// Returns true when the recording, whose file has so many bytes, is to go on in a new file.
    pub(super) fn is_due(&mut self, len: u64) -> bool {
        let is_due = match self.on {
            None => false,
            Some(SwitchOn::Signal) => self.signal.swap(false, Ordering::Relaxed),
            Some(SwitchOn::Size(size)) => len >= size,
            Some(SwitchOn::Time(time)) => self.begun.elapsed() >= time,
        };
        if is_due {
            self.begun = Instant::now();
        }
        is_due
    }

    /// Returns the name under which the file of now is kept: with the local time in hundredths of a second.
    pub(super) fn next_name(&self) -> PathBuf {
        loop {
            let now = jiff::ZonedDateTime::now();
            let hundredths = now.subsec_nanosecond() / 10_000_000;
            let mut name = self.path.as_os_str().to_owned();
            name.push(format!(".{}{hundredths:02}", now.strftime("%Y%m%d%H%M%S")));
            let name = PathBuf::from(name);
            if !name.exists() {
                return name;
            }
            thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns the files that are kept.
    pub(super) fn kept(&self) -> impl Iterator<Item = &Path> {
        self.kept.iter().map(PathBuf::as_path)
    }

    /// Takes note of a file that is kept, and removes the oldest where there are more than are to be.
    pub(super) fn keep(&mut self, file: PathBuf) {
        self.kept.push_back(file);
        while self.most > 0 && self.kept.len() > self.most {
            if let Some(oldest) = self.kept.pop_front() {
                // Whoever else removed it did the same.
                let _ = fs::remove_file(oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_those_of_perf() {
        let of = |text: &str| text.parse::<SwitchOn>().ok();
        assert_eq!(of("signal"), Some(SwitchOn::Signal));
        assert_eq!(of("100M"), Some(SwitchOn::Size(100 << 20)));
        assert_eq!(of("2m"), Some(SwitchOn::Time(Duration::from_secs(120))));
        for wrong in [
            "",
            "5",
            "0s",
            "-1s",
            "M",
            "1x",
            "sig",
            "99999999999999999999d",
        ] {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
