//! A second request to end, where the command does not end by the first.

use std::io::{self, Read};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGINT, SIGQUIT, SIGTERM};
use signal_hook::low_level::pipe;

use quipu_shell::Failure;
use quipu_shell::signals::cannot_handle;

/// The time in which several signals are one request: timeout(1) sends one to the process and then to its group.
const ONE_REQUEST: Duration = Duration::from_millis(500);

/// The signals that a person sends, counted. What they do besides is that of [`Signals`](quipu_shell::signals::Signals).
pub(super) struct SecondSignal {
    /// A byte for each signal.
    arrivals: UnixStream,
    /// When the first was seen.
    first: Option<Instant>,
}

impl SecondSignal {
    pub(super) fn watch() -> Result<Self, Failure> {
        Self::register().map_err(|e| cannot_handle(&e))
    }

    fn register() -> io::Result<Self> {
        let (arrivals, arrival) = UnixStream::pair()?;
        arrivals.set_nonblocking(true)?;
        for signal in [SIGINT, SIGQUIT, SIGTERM] {
            pipe::register(signal, arrival.try_clone()?)?;
        }
        Ok(Self {
            arrivals,
            first: None,
        })
    }

    /// Returns true if a second signal has come, some time after the first.
    pub(super) fn arrived(&mut self) -> bool {
        let new = self.arrivals.read(&mut [0; 64]).unwrap_or(0);
        match self.first {
            _ if new == 0 => false,
            None => {
                self.first = Some(Instant::now());
                false
            }
            Some(first) => first.elapsed() > ONE_REQUEST,
        }
    }

    /// Returns true if a signal has come since the last look, some time after the first if there was one.
    pub(super) fn arrived_again(&mut self) -> bool {
        let new = self.arrivals.read(&mut [0; 64]).unwrap_or(0);
        new > 0 && self.first.is_none_or(|first| first.elapsed() > ONE_REQUEST)
    }
}
