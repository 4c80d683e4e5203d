//! The file that is written.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use quipu_perf_data::{Error, Features, RecordedEvent, Writer};
use rustix::process::geteuid;

use crate::failure::Failure;

/// A `perf.data` file that grows.
pub(super) struct Output {
    path: PathBuf,
    writer: Writer<File>,
    /// Why no more is written.
    broken: Option<Error>,
}

impl Output {
    /// Begins a file that only its owner can read, as it tells what others did. One that is there
    /// already is kept under another name.
    pub(super) fn create(path: &Path, events: Vec<RecordedEvent>) -> Result<Self, Failure> {
        let fail = |e: &dyn std::fmt::Display| {
            Failure::new(format_args!("cannot write {}: {e}", path.display()))
        };
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
        Ok(Self {
            path: path.to_owned(),
            writer: Writer::new(file, events).map_err(|e| fail(&e))?,
            broken: None,
        })
    }

    /// Writes records, unless that has failed before.
    pub(super) fn write(&mut self, pieces: &[&[u8]]) {
        if self.broken.is_none() {
            self.broken = self.writer.write(pieces).err();
        }
    }

    /// Says that every ring has been read once.
    pub(super) fn finish_round(&mut self) {
        if self.broken.is_none() {
            self.broken = self.writer.finish_round().err();
        }
    }

    /// Returns why nothing more can be written, if that is so.
    pub(super) fn why_broken(&self) -> Option<String> {
        let error = self.broken.as_ref()?;
        let name = self.path.display();
        Some(format!("cannot continue writing {name}: {error}"))
    }

    /// Returns true if nothing more can be written.
    pub(super) fn is_broken(&self) -> bool {
        self.broken.is_some()
    }

    /// Returns the number of bytes written.
    pub(super) fn len(&self) -> u64 {
        self.writer.data_end()
    }

    /// Completes the file; its length. One that could not be written to its end keeps what is whole.
    pub(super) fn finish(self, features: &Features) -> Result<u64, Failure> {
        let name = self.path.display();
        if let Some(error) = self.broken {
            let cut = self
                .writer
                .cut()
                .and_then(|(file, end)| Ok(file.set_len(end)?));
            return Err(Failure::new(match cut {
                Ok(()) => format!(
                    "cannot continue writing {name}: {error}; the samples before that can be read"
                ),
                Err(_) => format!("cannot write {name}: {error}"),
            }));
        }
        let end = self.writer.data_end();
        let file = match self.writer.finish(features) {
            Ok(file) => file,
            Err(error) => {
                // The records are complete; half of what describes the machine is of no use.
                let file = OpenOptions::new().write(true).open(&self.path);
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
