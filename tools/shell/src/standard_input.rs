//! The standard input of a command that runs several times: a file is read from where it was for each run.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::fd::{AsFd, BorrowedFd};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::stat::{SFlag, fstat};

/// Standard input as it was before the first run.
#[derive(Debug)]
pub enum StandardInput {
    /// A file, and the position in it.
    File(u64),
    /// A pipe or socket.
    Stream {
        /// True if it had something to read.
        has_data: bool,
        /// True if anything could still write to it.
        has_writer: bool,
    },
    /// A terminal, a device, or none.
    Other,
}

impl StandardInput {
    /// Looks at the standard input of this process, which its commands share.
    pub fn look() -> Self {
        Self::of(io::stdin().as_fd())
    }

    fn of(fd: BorrowedFd<'_>) -> Self {
        let kind = fstat(fd).map(|stat| SFlag::from_bits_truncate(stat.st_mode) & SFlag::S_IFMT);
        match kind {
            Ok(SFlag::S_IFREG) => {
                let position = file(fd).and_then(|mut file| file.stream_position());
                position.map_or(Self::Other, Self::File)
            }
            Ok(SFlag::S_IFIFO | SFlag::S_IFSOCK) => {
                let [has_data, has_writer] = state(fd);
                Self::Stream {
                    has_data,
                    has_writer,
                }
            }
            _ => Self::Other,
        }
    }

    /// Goes back to where it was, if it is a file.
    pub fn rewind(&self) {
        self.rewind_fd(io::stdin().as_fd());
    }

    fn rewind_fd(&self, fd: BorrowedFd<'_>) {
        if let Self::File(position) = self {
            // A file has its positions as long as it is open.
            let _ = file(fd).and_then(|mut file| file.seek(SeekFrom::Start(*position)));
        }
    }

    /// Returns true if each run reads on where the one before has stopped, as far as that can be seen: a stream that had
    /// something to read, or has come to its end since.
    pub fn is_read_once(&self) -> bool {
        self.is_read_once_by(io::stdin().as_fd())
    }

    fn is_read_once_by(&self, fd: BorrowedFd<'_>) -> bool {
        match self {
            Self::Stream {
                has_data,
                has_writer,
            } => {
                let [_, writes_now] = state(fd);
                *has_data || (*has_writer && !writes_now)
            }
            Self::File(_) | Self::Other => false,
        }
    }
}

/// Returns a file that shares its position with a descriptor.
fn file(fd: BorrowedFd<'_>) -> io::Result<File> {
    fd.try_clone_to_owned().map(File::from)
}

/// Returns true if a stream has something to read now, and true if anything may still write to it.
fn state(fd: BorrowedFd<'_>) -> [bool; 2] {
    let mut polled = [PollFd::new(fd, PollFlags::POLLIN)];
    let ready = poll(&mut polled, PollTimeout::ZERO).unwrap_or(0);
    let events = polled[0].revents().filter(|_| ready > 0);
    let events = events.unwrap_or(PollFlags::empty());
    [
        events.contains(PollFlags::POLLIN),
        !events.contains(PollFlags::POLLHUP),
    ]
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};

    use super::*;

    #[test]
    fn a_file_is_read_again_from_where_it_was() {
        let mut file = tempfile::tempfile().expect("a file");
        file.write_all(b"0123456789").expect("written");
        file.seek(SeekFrom::Start(4)).expect("a position");
        let input = StandardInput::of(file.as_fd());
        for _ in 0..2 {
            input.rewind_fd(file.as_fd());
            let mut rest = String::new();
            file.read_to_string(&mut rest).expect("text");
            assert_eq!(rest, "456789");
        }
        assert!(!input.is_read_once_by(file.as_fd()));
    }

    #[test]
    fn a_stream_that_was_read_is_read_once() {
        let (mut reader, mut writer) = io::pipe().expect("a pipe");
        let silent = StandardInput::of(reader.as_fd());
        assert!(!silent.is_read_once_by(reader.as_fd()));
        writer.write_all(b"x").expect("written");
        let full = StandardInput::of(reader.as_fd());
        drop(writer);
        reader.read_to_end(&mut Vec::new()).expect("read");
        let ended = StandardInput::of(reader.as_fd());
        let once = [silent, full, ended].map(|input| input.is_read_once_by(reader.as_fd()));
        assert_eq!(once, [true, true, false]);
        let null = File::open("/dev/null").expect("every system has it");
        assert!(matches!(
            StandardInput::of(null.as_fd()),
            StandardInput::Other
        ));
    }
}
