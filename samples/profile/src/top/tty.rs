//! The terminal of `quipu top`: its raw mode, its keys, and its end, which a terminal tells by poll(2) and read(2).

use std::io::{self, Write, stdin, stdout};
use std::os::fd::AsFd as _;
use std::panic;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::termios::{SetArg, Termios, cfmakeraw, tcgetattr, tcsetattr};
use nix::{libc, unistd};
use quipu_shell::output::Endable;
use ratatui::Terminal;
use ratatui::backend::TermionBackend;

use super::keys::{Key, keys};

/// The alternate screen, and the usual one with a visible cursor (xterm, "Private modes").
const ENTER: &[u8] = b"\x1b[?1049h";
const LEAVE: &[u8] = b"\x1b[?1049l\x1b[?25h";

/// The terminal in raw mode, on its alternate screen. It is given back when this is dropped, and on a panic before its message.
pub(super) struct Tty {
    pub(super) screen: Terminal<TermionBackend<Output>>,
    saved: libc::termios,
}

/// Input from a terminal.
pub(super) enum TerminalInput {
    Keys(Vec<Key>),
    /// The terminal is gone: nothing can come any more.
    Gone,
}

impl Tty {
    pub(super) fn open() -> io::Result<Self> {
        let mut raw = tcgetattr(stdin())?;
        let saved = raw.clone().into();
        cfmakeraw(&mut raw);
        let print = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            leave(saved);
            print(info);
        }));
        tcsetattr(stdin(), SetArg::TCSANOW, &raw)?;
        write(ENTER);
        let screen = Terminal::new(TermionBackend::new(Output::default()));
        let screen = screen.inspect_err(|_| leave(saved))?;
        Ok(Self { screen, saved })
    }

    /// Waits for keys, but not longer than `timeout`. A signal ends the wait.
    pub(super) fn wait(&self, timeout: Duration) -> io::Result<TerminalInput> {
        let none = Ok(TerminalInput::Keys(Vec::new()));
        let stdin = stdin();
        let mut fds = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
        match ppoll(&mut fds, Some(timeout.into()), None) {
            Ok(0) | Err(Errno::EINTR) => return none,
            Ok(_) => {}
            Err(e) => return Err(e.into()),
        }
        let gone = PollFlags::POLLHUP | PollFlags::POLLERR | PollFlags::POLLNVAL;
        if fds[0]
            .revents()
            .is_some_and(|events| events.intersects(gone))
        {
            return Ok(TerminalInput::Gone);
        }
        let mut bytes = [0; 256];
        match unistd::read(&stdin, &mut bytes) {
            Ok(0) | Err(Errno::EIO) => Ok(TerminalInput::Gone),
            Ok(len) => Ok(TerminalInput::Keys(keys(&bytes[..len]))),
            Err(Errno::EINTR | Errno::EAGAIN) => none,
            Err(e) => Err(e.into()),
        }
    }
}

impl Drop for Tty {
    fn drop(&mut self) {
        leave(self.saved);
    }
}

/// Gives the terminal back. One that is gone does not need it.
fn leave(saved: libc::termios) {
    write(LEAVE);
    let _ = tcsetattr(stdin(), SetArg::TCSANOW, &Termios::from(saved));
}

/// Writes to the terminal. That it is gone is found when it is read.
fn write(bytes: &[u8]) {
    let mut out = Endable(stdout().lock());
    let _ = out.write_all(bytes).and_then(|()| out.flush());
}

/// A screen that is drawn, until it is written at once.
#[derive(Debug, Default)]
pub(super) struct Output(Vec<u8>);

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        write(&self.0);
        self.0.clear();
        Ok(())
    }
}
