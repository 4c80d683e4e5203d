//! Signals: Ctrl-C ends a measurement, it does not lose it.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::unistd::{getpgrp, tcgetpgrp};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGXFSZ};
use signal_hook::{flag, low_level::pipe};

use crate::Failure;

/// The last signal, and a byte for each that has not been counted, of the first measurement.
static ARRIVED: OnceLock<(Arc<AtomicUsize>, Arc<UnixStream>)> = OnceLock::new();
/// The number of signals that have been counted.
static COUNTED: AtomicUsize = AtomicUsize::new(0);

/// Returns true if this process is asked to end at once: by SIGTERM or SIGHUP, or by a second signal.
pub(crate) fn are_urgent() -> bool {
    let Some((last, bytes)) = ARRIVED.get() else {
        return false;
    };
    let is_there = || {
        let mut streams = [PollFd::new(bytes.as_fd(), PollFlags::POLLIN)];
        poll(&mut streams, PollTimeout::ZERO).is_ok_and(|ready| ready > 0)
    };
    while is_there() && count(bytes).is_ok() {}
    let last = last.load(Ordering::Relaxed);
    [SIGTERM, SIGHUP].contains(&(last as i32)) || COUNTED.load(Ordering::Relaxed) >= 2
}

/// Counts signals, waiting for one if none has arrived. Fails if none can arrive any more.
fn count(mut bytes: &UnixStream) -> io::Result<()> {
    let read = bytes.read(&mut [0; 8])?;
    if read == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    COUNTED.fetch_add(read, Ordering::Relaxed);
    Ok(())
}

/// The signals that end a measurement. A terminal sends SIGINT and SIGQUIT to the measured command as well. Those that
/// come to this process alone are passed on to the command.
pub struct Signals {
    /// The last signal.
    last: Arc<AtomicUsize>,
    /// A byte for each signal, which ends a sleep.
    wake: Arc<UnixStream>,
    /// The signal that the command has been told of, if it has to be told.
    passed_on: Option<i32>,
}

/// Returns the failure to install a handler.
pub fn cannot_handle(e: &io::Error) -> Failure {
    let hint = match e.raw_os_error() == Some(Errno::EMFILE as i32) {
        true => {
            ": quipu needs some 20 files beside those of its events; raise the limit (ulimit -n 64)"
        }
        false => "",
    };
    Failure::new(format_args!("cannot handle signals: {e}{hint}"))
}

impl Signals {
    /// Installs the handlers: from here on the signals are noted and no longer end this process. A file that grows beyond the
    /// limit of the process is a failed write (SIGXFSZ, setrlimit(2)).
    pub fn watch() -> Result<Self, Failure> {
        Self::register().map_err(|e| cannot_handle(&e))
    }

    fn register() -> io::Result<Self> {
        let (wake, waker) = UnixStream::pair()?;
        let signals = Self {
            last: Arc::default(),
            wake: Arc::new(wake),
            passed_on: None,
        };
        for signal in [SIGINT, SIGQUIT, SIGTERM, SIGHUP] {
            // As nohup(1) has it, and then the command ignores it too. Shells without job control have SIGINT ignored in
            // the background, where it is meant for those who read a terminal.
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            flag::register_usize(signal, Arc::clone(&signals.last), signal as usize)?;
            pipe::register(signal, waker.try_clone()?)?;
        }
        flag::register(SIGXFSZ, Arc::new(AtomicBool::new(false)))?;
        ARRIVED.get_or_init(|| (Arc::clone(&signals.last), Arc::clone(&signals.wake)));
        Ok(signals)
    }

    /// Returns the last signal that asks the measurement to end.
    pub fn last(&self) -> Option<i32> {
        i32::try_from(self.last.load(Ordering::Relaxed))
            .ok()
            .filter(|signal| *signal != 0)
    }

    /// Returns true if a signal asks the measurement to end.
    pub fn arrived(&self) -> bool {
        self.last().is_some()
    }

    /// Returns a signal to pass on to the measured command; each once.
    pub fn take_to_pass_on(&mut self) -> Option<i32> {
        let signal = self.last()?;
        let told = self.passed_on.replace(signal) == Some(signal);
        let by_terminal = [SIGINT, SIGQUIT].contains(&signal) && is_in_foreground();
        (!told && !by_terminal).then_some(signal)
    }

    /// Sleeps until a signal arrives, but not longer than `timeout`.
    pub fn sleep(&self, timeout: Duration) {
        if self.arrived() || timeout.is_zero() {
            return;
        }
        let waited = self
            .wake
            .set_read_timeout(Some(timeout))
            .and_then(|()| count(&self.wake));
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

/// Returns true if this process ignores a signal, as it does from its start under nohup(1), where the system shows that as
/// text (`proc_pid_status(5)`); false elsewhere.
#[must_use]
pub fn is_ignored(signal: i32) -> bool {
    // One read(2): the kernel makes the whole text again for each.
    let mut status = String::with_capacity(4096);
    let read =
        File::open("/proc/self/status").and_then(|mut file| file.read_to_string(&mut status));
    if read.is_err() {
        return false;
    }
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & 1 << (signal - 1) != 0)
}

/// Returns true if this process belongs to the foreground process group of its terminal, whose Ctrl-C the command gets too.
fn is_in_foreground() -> bool {
    let terminal = File::open("/dev/tty");
    terminal.is_ok_and(|terminal| tcgetpgrp(terminal).is_ok_and(|group| group == getpgrp()))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// As when the handlers could not all be installed: whoever counts all that have arrived comes to an end.
    #[test]
    fn no_signal_is_counted_where_none_can_arrive() {
        let (wake, waker) = UnixStream::pair().unwrap();
        drop(waker);
        assert_eq!(count(&wake).unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }

    /// Rust ignores SIGPIPE in every program, and has a handler of SIGSEGV.
    #[test]
    fn ignored_signals_are_known() {
        assert!(is_ignored(signal_hook::consts::SIGPIPE));
        assert!(!is_ignored(signal_hook::consts::SIGSEGV));
    }
}
