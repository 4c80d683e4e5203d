//! Streams whose reader may stall, as a paused pager does: writing waits for it, and ends when this process is asked to.

use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use crate::signals;

/// A stream that is given up if nothing is read of it and this process is asked to end, by SIGTERM, SIGHUP or a second
/// SIGINT.
#[derive(Debug)]
pub struct Endable<S>(pub S);

impl<S: Write + AsFd> Write for Endable<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        /// A pipe that can be written to takes as much at once (pipe(7), `PIPE_BUF`), with what standard output has kept.
        const PART: usize = 2048;
        wait_for_reader(&self.0)?;
        self.0.write(&bytes[..bytes.len().min(PART)])
    }

    fn flush(&mut self) -> io::Result<()> {
        wait_for_reader(&self.0)?;
        self.0.flush()
    }
}

/// Waits until a stream can be written to, as files always can.
fn wait_for_reader(stream: &impl AsFd) -> io::Result<()> {
    /// Milliseconds between looks at whether this process is asked to end, and for which the reader has time then.
    const TURN: u8 = 50;
    /// Set when a stream was given up: no other is waited for then.
    static HAS_GIVEN_UP: AtomicBool = AtomicBool::new(false);
    loop {
        let is_urgent = signals::are_urgent();
        let turn = if HAS_GIVEN_UP.load(Ordering::Relaxed) {
            0
        } else {
            TURN
        };
        let mut streams = [PollFd::new(stream.as_fd(), PollFlags::POLLOUT)];
        match poll(&mut streams, PollTimeout::from(turn)) {
            Ok(0) if is_urgent => {
                HAS_GIVEN_UP.store(true, Ordering::Relaxed);
                let why = "its reader has stalled, and this process is asked to end";
                return Err(io::Error::new(ErrorKind::TimedOut, why));
            }
            Ok(0) | Err(Errno::EINTR) => {}
            Ok(_) => return Ok(()),
            Err(e) => return Err(e.into()),
        }
    }
}
