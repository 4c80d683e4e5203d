//! The file or stream that is written.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{self, IsTerminal};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{dup2_stdout, geteuid};
use quipu_perf_data::{Compressor, Error, Features, RecordedEvent, StreamWriter, Writer};

use quipu_shell::output::Endable;
use quipu_shell::{Failure, output_file};

/// The place that a recording is written to.
#[derive(Debug, Clone, PartialEq)]
pub enum Destination {
    /// A file.
    File(PathBuf),
    /// Standard output, as a stream.
    Stream,
}

impl Destination {
    /// Returns the destination of `-o`, where `-` is standard output.
    pub fn of(path: &Path) -> Self {
        match path.as_os_str() == "-" {
            true => Self::Stream,
            false => Self::File(path.to_owned()),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Stream => f.write_str("standard output"),
        }
    }
}

/// Standard output, taken away from this process and the command, which have standard error in its place: nothing else gets
/// into the stream.
pub struct StandardOutput(File);

impl StandardOutput {
    /// Takes standard output.
    ///
    /// # Errors
    /// If it is a terminal, or cannot be duplicated.
    pub fn take() -> Result<Self, Failure> {
        let stdout = io::stdout();
        if stdout.is_terminal() {
            return Err(Failure::usage(
                "-o -: standard output is a terminal; pipe it into `quipu report -i -`, or name a file",
            ));
        }
        let taken = stdout.as_fd().try_clone_to_owned().and_then(|own| {
            dup2_stdout(io::stderr())?;
            Ok(Self(File::from(own)))
        });
        taken.map_err(|e| Failure::new(format_args!("cannot write standard output: {e}")))
    }
}

/// A `perf.data` file or stream that grows.
pub struct Output {
    destination: Destination,
    form: FileOrStream,
    compressor: Option<Compressor>,
    /// Compressed records that are to be written.
    compressed: Vec<u8>,
    /// Why no more is written.
    broken: Option<Error>,
}

/// A form of the format.
enum FileOrStream {
    File(Writer<File>),
    Stream(StreamWriter<Endable<File>>),
    /// A stream whose reader went away before it had begun.
    Unread,
}

impl Output {
    /// Begins a file that only its owner can read, as it says what others did. One that is there
    /// already is kept under another name.
    ///
    /// # Errors
    /// If the file cannot be written, or belongs to another user.
    pub fn create(path: &Path, events: Vec<RecordedEvent>) -> Result<Self, Failure> {
        let fail = |e: &dyn fmt::Display| {
            Failure::new(format_args!("cannot write {}: {e}", path.display()))
        };
        output_file::check(path).map_err(|e| fail(&e))?;
        // Where a link leads, /dev/stdout for one, and not the link itself.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let mut options = OpenOptions::new();
        options.read(true).write(true).mode(0o600);
        match fs::metadata(path) {
            Ok(there) if there.is_file() => {
                if there.uid() != geteuid().as_raw() {
                    return Err(fail(
                        &"it belongs to another user, who could read what is recorded: name another file with -o",
                    ));
                }
                if there.len() == 0 {
                    fs::remove_file(path).map_err(|e| fail(&e))?;
                } else {
                    let mut old = path.as_os_str().to_owned();
                    old.push(".old");
                    fs::rename(path, &old).map_err(|e| fail(&e))?;
                }
                options.create_new(true);
            }
            // A device or a pipe.
            Ok(_) => {}
            Err(_) => {
                options.create_new(true);
            }
        }
        let file = options.open(path).map_err(|e| fail(&e))?;
        let writer = Writer::new(file, events).map_err(|e| fail(&e))?;
        let destination = Destination::File(path.to_owned());
        Ok(Self::new(destination, FileOrStream::File(writer)))
    }

    /// Begins a stream, of which the description has to be known from the start.
    ///
    /// # Errors
    /// If standard output cannot be written.
    pub fn stream(
        output: StandardOutput,
        events: &[RecordedEvent],
        features: &Features,
    ) -> Result<Self, Failure> {
        let writer = StreamWriter::new(Endable(output.0), events, features);
        let fail = |e| Failure::new(format_args!("cannot write standard output: {e}"));
        match writer {
            // As of one that goes away later: the command runs.
            Err(Error::Io(gone)) if gone.kind() == io::ErrorKind::BrokenPipe => Ok(Self {
                broken: Some(Error::Io(gone)),
                ..Self::new(Destination::Stream, FileOrStream::Unread)
            }),
            writer => {
                let form = FileOrStream::Stream(writer.map_err(fail)?);
                Ok(Self::new(Destination::Stream, form))
            }
        }
    }

    fn new(destination: Destination, form: FileOrStream) -> Self {
        Self {
            destination,
            form,
            compressor: None,
            compressed: Vec::new(),
            broken: None,
        }
    }

    /// Has the records of rings compressed from here on.
    pub(super) fn compress(&mut self, compressor: Option<Compressor>) {
        self.compressor = compressor;
    }

    /// Gives the file another name, whatever has that name.
    pub(super) fn rename(&mut self, to: &Path) -> Result<(), Failure> {
        if let Destination::File(path) = &mut self.destination {
            fs::rename(&*path, to).map_err(|e| {
                Failure::new(format_args!(
                    "cannot rename {} to {}: {e}",
                    path.display(),
                    to.display()
                ))
            })?;
            *path = to.to_owned();
        }
        Ok(())
    }

    /// Writes records, unless that has failed before.
    pub fn write(&mut self, pieces: &[&[u8]]) {
        if self.broken.is_none() {
            self.broken = self.form.write(pieces).err();
        }
    }

    /// Writes records of rings, compressed if they are to be.
    pub(super) fn write_records(&mut self, pieces: &[&[u8]]) {
        let Some(compressor) = &mut self.compressor else {
            return self.write(pieces);
        };
        let mut compressed = std::mem::take(&mut self.compressed);
        compressed.clear();
        let mut pieces = pieces.iter();
        match pieces.try_for_each(|piece| compressor.compress(piece, &mut compressed)) {
            Ok(()) => self.write(&[&compressed]),
            Err(error) => self.broken = self.broken.take().or(Some(error)),
        }
        self.compressed = compressed;
    }

    /// Says that every ring has been read once.
    pub(super) fn finish_round(&mut self) {
        if self.broken.is_none() {
            self.broken = self.form.finish_round().err();
        }
    }

    /// Returns why nothing more can be written, if that is so.
    pub(super) fn why_broken(&self) -> Option<String> {
        let error = self.broken.as_ref()?;
        let name = &self.destination;
        Some(format!("cannot continue writing {name}: {error}"))
    }

    /// Returns true if nothing more can be written.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Returns the number of bytes written.
    pub(super) fn len(&self) -> u64 {
        match &self.form {
            FileOrStream::File(writer) => writer.data_end(),
            FileOrStream::Stream(writer) => writer.written(),
            FileOrStream::Unread => 0,
        }
    }

    /// Completes the output; its length. A file that could not be written to its end keeps what is whole.
    ///
    /// # Errors
    /// If it could not be written to its end.
    pub fn finish(self, mut features: Features) -> Result<u64, Failure> {
        let (name, len) = (self.destination.to_string(), self.len());
        features.compression = self.compressor.as_ref().map(Compressor::description);
        let (Destination::File(path), FileOrStream::File(writer)) = (self.destination, self.form)
        else {
            return match self.broken {
                Some(error) => Err(Failure::new(format_args!("cannot write {name}: {error}"))),
                None => Ok(len),
            };
        };
        if let Some(error) = self.broken {
            return Err(Failure::new(match writer.cut() {
                Ok(_) => format!(
                    "cannot continue writing {name}: {error}; the samples before that can be read"
                ),
                Err(_) => format!("cannot write {name}: {error}"),
            }));
        }
        let end = writer.data_end();
        let file = match writer.finish(&features) {
            Ok(file) => file,
            Err(error) => {
                // The records are complete; half of what describes the machine is of no use.
                let file = OpenOptions::new().write(true).open(&path);
                let _ = file.and_then(|file| file.set_len(end));
                return Err(Failure::new(format_args!(
                    "cannot complete {name}: {error}; the samples in it can be read"
                )));
            }
        };
        let len = file.metadata().map_or(end, |m| m.len());
        Ok(len)
    }
}

impl FileOrStream {
    fn write(&mut self, pieces: &[&[u8]]) -> quipu_perf_data::Result<()> {
        match self {
            Self::File(writer) => writer.write(pieces),
            Self::Stream(writer) => writer.write(pieces),
            Self::Unread => Ok(()),
        }
    }

    fn finish_round(&mut self) -> quipu_perf_data::Result<()> {
        match self {
            Self::File(writer) => writer.finish_round(),
            Self::Stream(writer) => writer.finish_round(),
            Self::Unread => Ok(()),
        }
    }
}
