//! Signals: Ctrl-C ends a measurement, it does not lose it.

use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::{flag, low_level::pipe};

use crate::failure::Failure;

/// The signals that end a measurement. A terminal sends SIGINT and SIGQUIT to the measured command
/// as well; SIGTERM and SIGHUP come to this process alone, so the command is told of them.
pub(crate) struct Signals {
    from_terminal: Arc<AtomicBool>,
    to_pass_on: Arc<AtomicUsize>,
    passed_on: AtomicI32,
    wake: UnixStream,
}

impl Signals {
    /// Installs the handlers: from here on the signals are noted and no longer end this process.
    pub(crate) fn watch() -> Result<Self, Failure> {
        Self::register().map_err(|e| Failure::new(format_args!("cannot handle signals: {e}")))
    }

    fn register() -> std::io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        let signals = Self {
            from_terminal: Arc::new(AtomicBool::new(false)),
            to_pass_on: Arc::new(AtomicUsize::new(0)),
            passed_on: AtomicI32::new(0),
            wake,
        };
        for signal in [SIGINT, SIGQUIT] {
            flag::register(signal, Arc::clone(&signals.from_terminal))?;
            pipe::register(signal, waker.try_clone()?)?;
        }
        for signal in [SIGTERM, SIGHUP] {
            flag::register_usize(signal, Arc::clone(&signals.to_pass_on), signal as usize)?;
            pipe::register(signal, waker.try_clone()?)?;
        }
        Ok(signals)
    }

    /// Returns true if a signal asks the measurement to end.
    pub(crate) fn arrived(&self) -> bool {
        self.from_terminal.load(Ordering::Relaxed) || self.to_pass_on.load(Ordering::Relaxed) != 0
    }

    /// Returns a signal that the measured command has to be told of; each once.
    pub(crate) fn take_to_pass_on(&self) -> Option<i32> {
        let signal = i32::try_from(self.to_pass_on.load(Ordering::Relaxed)).unwrap_or(0);
        let last = self.passed_on.swap(signal, Ordering::Relaxed);
        (signal != 0 && signal != last).then_some(signal)
    }

    /// Sleeps until a signal arrives, but not longer than `timeout`.
    pub(crate) fn sleep(&self, timeout: Duration) {
        if self.arrived() || timeout.is_zero() {
            return;
        }
        let waited = self
            .wake
            .set_read_timeout(Some(timeout))
            .and_then(|()| (&self.wake).read(&mut [0]));
        if let Err(e) = waited
            && !matches!(
                e.kind(),
                ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
            )
        {
            std::thread::sleep(timeout);
        }
    }
}
