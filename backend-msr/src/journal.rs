//! Records the saved registers in files, so that they can be restored if this process is killed.
//!
//! There is a file for each CPU. The process that acquires the counters of a CPU holds a lock on its
//! file (flock(2)), which ends with the process however it ends. A locked file belongs to a process
//! that counts; an unlocked one that is not empty was left by a process that was killed.

mod restore;
mod text;

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::errno::Errno;
use nix::unistd::geteuid;
use quipu_hal::{Error, ErrorKind, Result};

pub use self::restore::{Repair, restore};
use crate::guard::RestoreStep;
use crate::sys;

/// Returns the directory of the journal on a real machine: owned by root, and empty after a boot.
pub fn runtime_directory() -> &'static Path {
    Path::new(if cfg!(target_os = "linux") {
        "/run/quipu"
    } else {
        "/var/run/quipu"
    })
}

/// A directory of records.
#[derive(Debug)]
pub(crate) struct Journal {
    directory: PathBuf,
    boot: Option<String>,
}

/// The record of a CPU, locked.
#[derive(Debug)]
pub(crate) struct Record {
    file: File,
    path: PathBuf,
    boot: Option<String>,
}

impl Journal {
    pub(crate) fn new(directory: PathBuf, boot: Option<String>) -> Self {
        Self { directory, boot }
    }

    /// Opens the empty record of a CPU, and locks it.
    ///
    /// # Errors
    /// [`Busy`](ErrorKind::Busy) when another process holds it, or a killed one has left it filled.
    pub(crate) fn record(&self, cpu: u32) -> Result<Record> {
        self.prepare()?;
        let path = self.directory.join(format!("cpu{cpu}"));
        let mut record = self.open(path)?;
        let busy = |reason: String, hint: &str| {
            Err(
                Error::new(ErrorKind::Busy, format!("take the counters of CPU {cpu}"))
                    .with_reason(reason)
                    .with_hint(hint),
            )
        };
        if !record.lock()? {
            let owner = record.read()?;
            let who = match text::owner(&owner) {
                Some(pid) => format!("process {pid}"),
                None => "another process".into(),
            };
            return busy(
                format!("{who} counts there with Quipu"),
                "wait until it ends",
            );
        }
        let left = record.read()?;
        if text::is_complete(&left) && !text::is_of_another_boot(&left, self.boot.as_deref()) {
            return busy(
                "a process that was killed has left its settings in the counters".into(),
                "as root: quipu msr restore",
            );
        }
        Ok(record)
    }

    fn open(&self, path: PathBuf) -> Result<Record> {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
            .open(&path)
            .map_err(|e| failed("open", &path, &e))?;
        Ok(Record {
            file,
            boot: self.boot.clone(),
            path,
        })
    }

    /// Creates the directory, and checks that no other user can write in it.
    fn prepare(&self) -> Result<()> {
        let path = &self.directory;
        let made = DirBuilder::new().mode(0o700).create(path);
        if let Err(e) = made
            && e.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(failed("make", path, &e));
        }
        self.check()
    }

    fn check(&self) -> Result<()> {
        let path = &self.directory;
        let found = fs::symlink_metadata(path).map_err(|e| failed("look at", path, &e))?;
        if !found.is_dir() || found.uid() != geteuid().as_raw() || found.mode() & 0o022 != 0 {
            return Err(
                Error::new(ErrorKind::NoPermission, format!("use {}", path.display()))
                    .with_reason("it is not a directory that only this user can write in")
                    .with_hint(format!("remove {}", path.display())),
            );
        }
        Ok(())
    }
}

impl Record {
    /// Takes the lock; returns false if another process has it.
    fn lock(&self) -> Result<bool> {
        match sys::try_lock(&self.file) {
            Ok(()) => Ok(true),
            Err(Errno::EWOULDBLOCK) => Ok(false),
            Err(e) => Err(failed("lock", &self.path, &e.into())),
        }
    }

    fn read(&mut self) -> Result<String> {
        let mut text = Vec::new();
        self.file
            .rewind()
            .and_then(|()| (&self.file).take(1 << 16).read_to_end(&mut text))
            .map_err(|e| failed("read", &self.path, &e))?;
        // Quipu writes text alone: anything else is no complete record.
        Ok(String::from_utf8(text).unwrap_or_default())
    }

    /// Writes the steps that restore the saved values.
    pub(crate) fn write(&mut self, steps: &[RestoreStep]) -> Result<()> {
        let text = text::compose(self.boot.as_deref(), steps);
        self.empty()
            .and_then(|()| self.file.write_all(text.as_bytes()))
            .map_err(|e| failed("write", &self.path, &e))
    }

    /// Empties the record: everything has been restored.
    pub(crate) fn finish(&mut self) -> Result<()> {
        self.empty().map_err(|e| failed("empty", &self.path, &e))
    }

    fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()
    }
}

fn failed(what: &str, path: &Path, error: &io::Error) -> Error {
    let kind = match error.kind() {
        io::ErrorKind::PermissionDenied => ErrorKind::NoPermission,
        _ => ErrorKind::Os,
    };
    Error::new(kind, format!("{what} {}", path.display()))
        .with_io_error(error)
        .with_reason("the journal of registers cannot be kept")
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEPS: [RestoreStep; 2] = [
        RestoreStep {
            address: 0x186,
            mask: u64::MAX,
            value: 0,
        },
        RestoreStep {
            address: 0x38f,
            mask: 3,
            value: 1,
        },
    ];

    fn journal(boot: &str) -> (tempfile::TempDir, Journal) {
        let directory = tempfile::tempdir().unwrap();
        let journal = Journal::new(directory.path().join("quipu"), Some(boot.into()));
        (directory, journal)
    }

    #[test]
    fn one_process_at_a_time_has_a_cpu() {
        let (_directory, journal) = journal("a");
        let mut first = journal.record(3).unwrap();
        first.write(&STEPS).unwrap();
        let second = journal.record(3).unwrap_err();
        assert_eq!(second.kind(), ErrorKind::Busy);
        assert!(
            second.to_string().contains(&std::process::id().to_string()),
            "{second}"
        );
        journal.record(4).unwrap();
        first.finish().unwrap();
        drop(first);
        journal.record(3).unwrap();
    }

    #[test]
    fn what_a_killed_process_left_has_to_be_restored_first() {
        let (_directory, journal) = journal("a");
        journal.record(0).unwrap().write(&STEPS).unwrap();
        let error = journal.record(0).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Busy);
        assert_eq!(error.hint(), Some("as root: quipu msr restore"));
    }

    #[test]
    fn a_record_from_before_a_reboot_counts_for_nothing() {
        let (_directory, mut journal) = journal("a");
        journal.record(0).unwrap().write(&STEPS).unwrap();
        journal.boot = Some("b".into());
        journal.record(0).unwrap();
    }

    #[test]
    fn files_are_for_the_user_only_and_links_are_not_followed() {
        let (directory, journal) = journal("a");
        let record = journal.record(0).unwrap();
        assert_eq!(record.file.metadata().unwrap().mode() & 0o777, 0o600);
        let target = directory.path().join("precious");
        fs::write(&target, "keep").unwrap();
        std::os::unix::fs::symlink(&target, journal.directory.join("cpu1")).unwrap();
        assert_eq!(journal.record(1).unwrap_err().errno(), Some(libc::ELOOP));
        assert_eq!(fs::read(&target).unwrap(), b"keep");
    }

    #[test]
    fn a_directory_that_others_can_write_in_is_refused() {
        use std::os::unix::fs::PermissionsExt;
        let (_directory, journal) = journal("a");
        journal.prepare().unwrap();
        let open = fs::Permissions::from_mode(0o777);
        fs::set_permissions(&journal.directory, open).unwrap();
        assert_eq!(
            journal.record(0).unwrap_err().kind(),
            ErrorKind::NoPermission
        );
    }
}
