//! Opening a file or standard input.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use quipu_perf_data::Reader;

use quipu_shell::Failure;

use super::input::{Input, name};
use super::replay::Replay;
use super::visit::Begin;

/// A file, or what was or is read from standard input: of one type, so that what reads it is compiled once.
type Source = Box<dyn Seekable>;

/// A reader that can seek.
trait Seekable: Read + Seek {}

impl<T: Read + Seek> Seekable for T {}

/// A stream, which is read as it comes.
struct Stream<R>(R);

impl<R: Read> Read for Stream<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl<R> Seek for Stream<R> {
    fn seek(&mut self, _: SeekFrom) -> io::Result<u64> {
        Err(io::ErrorKind::NotSeekable.into())
    }
}

/// A recording of which the description has been read.
struct OpenRecording {
    reader: Reader<Source>,
    /// Length of the file, if it is one.
    len: Option<u64>,
    is_stream: bool,
}

impl Input<'_> {
    /// Goes through the records in the order of their times. `begin` is called when the description of the recording has
    /// been read, and makes what the records are given to.
    pub(crate) fn replay<V: super::Visit>(
        self,
        begin: impl Begin<V>,
    ) -> Result<(Replay, V), Failure> {
        let fail = |e| self.unreadable(&e);
        let OpenRecording {
            mut reader,
            len,
            is_stream,
        } = self.open()?;
        let (replay, visit) = Replay::begin(&reader, self, begin)?;
        let records = match is_stream {
            true => reader.stream_records(),
            false => reader.records().map_err(fail)?,
        };
        replay.run(records, visit, len).map_err(fail)
    }

    fn open(self) -> Result<OpenRecording, Failure> {
        let fail = |e| self.unreadable(&e);
        if self.path == Path::new("-") {
            return read_stdin().map_err(fail);
        }
        let file = open(self.path, self.force, "record")?;
        Ok(OpenRecording {
            len: file.metadata().ok().map(|file| file.len()),
            reader: Reader::new(Box::new(file) as Source).map_err(fail)?,
            is_stream: false,
        })
    }
}

/// Reads the description of a stream, or a file as a whole, whose records are not last in it.
fn read_stdin() -> quipu_perf_data::Result<OpenRecording> {
    let mut stdin = io::stdin().lock();
    let mut start = Vec::new();
    stdin.by_ref().take(16).read_to_end(&mut start)?;
    let is_stream = quipu_perf_data::is_stream(&start)?;
    let reader = match is_stream {
        true => {
            let stream = Stream(Cursor::new(start).chain(stdin));
            Reader::from_stream(Box::new(stream) as Source)?
        }
        false => {
            stdin.read_to_end(&mut start)?;
            Reader::new(Box::new(Cursor::new(start)) as Source)?
        }
    };
    Ok(OpenRecording {
        reader,
        len: None,
        is_stream,
    })
}

/// Opens a file that the subcommand `maker` makes, or standard input, and reads its description.
///
/// # Errors
/// If it cannot be read, is no recording, or belongs to another user.
#[cfg(unix)]
pub fn reader(path: &Path, force: bool, maker: &str) -> Result<Reader<impl Read + Seek>, Failure> {
    let fail = |e| Failure::new(format_args!("cannot read {}: {e}", name(path)));
    if path == Path::new("-") {
        return Ok(read_stdin().map_err(fail)?.reader);
    }
    let file = open(path, force, maker)?;
    Reader::new(Box::new(file) as Source).map_err(fail)
}

/// Opens a file that this user, root, or with `force` anyone wrote; `maker` is the subcommand that makes such files.
fn open(path: &Path, force: bool, maker: &str) -> Result<File, Failure> {
    let name = path.display();
    let fail = |e: &dyn std::fmt::Display| Failure::new(format_args!("cannot read {name}: {e}"));
    let file = File::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            let on = if cfg!(target_os = "linux") {
                ""
            } else {
                "on Linux "
            };
            fail(&format_args!(
                "there is no such file; {on}`quipu {maker} -- COMMAND` makes one"
            ))
        }
        _ => fail(&e),
    })?;
    if !force && is_of_another_user(&file) {
        return Err(fail(
            &"it belongs to another user, who can have written anything: -f reads it all the same",
        ));
    }
    Ok(file)
}

/// Returns true if a file belongs to neither this user nor root.
fn is_of_another_user(file: &File) -> bool {
    cfg_if::cfg_if! {
        if #[cfg(unix)] {
            let owner = file.metadata().map(|m| std::os::unix::fs::MetadataExt::uid(&m));
            owner.is_ok_and(|owner| owner != 0 && owner != nix::unistd::geteuid().as_raw())
        } else {
            let _ = file;
            false
        }
    }
}
