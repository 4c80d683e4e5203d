//! Copies of programs that lie in other mount namespaces, as in containers: when a recording ends, and names are looked up, the
//! process by which they are found may have ended.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use nix::sys::memfd::{MFdFlags, memfd_create};
use quipu_perf_data::record::{FileIdentity, Mapping};
use quipu_symbols::open_mapped;

/// The longest file that is copied, in bytes, and the most of all: the rings fill meanwhile.
const LONGEST: u64 = 64 << 20;
const MOST: u64 = 256 << 20;

/// Copies of files in memory, by their build IDs. A file that is held open would keep its file system from being unmounted.
#[derive(Debug, Default)]
pub(super) struct Copies {
    known: HashSet<Vec<u8>>,
    files: Vec<(Vec<u8>, File)>,
    len: u64,
}

impl Copies {
    /// Takes note of a mapping, and copies its file if that is not at its path here.
    pub(super) fn note(&mut self, mapping: &Mapping<'_>) {
        let Some(FileIdentity::BuildId(id)) = mapping.file else {
            return;
        };
        if mapping.is_data || !mapping.path.starts_with(b"/") || self.known.contains(id) {
            return;
        }
        self.known.insert(id.to_owned());
        let opened = open_mapped(mapping.thread.pid, mapping.address, mapping.path, id);
        // Without a copy the file is looked for at the end.
        if let Some(file) = opened
            && let Ok(Some(copy)) = self.copy(file)
        {
            self.files.push((id.to_owned(), copy));
        }
    }

    fn copy(&mut self, from: File) -> io::Result<Option<File>> {
        let len = from.metadata()?.len();
        if len > LONGEST || self.len + len > MOST {
            return Ok(None);
        }
        let mut copy = File::from(memfd_create("quipu", MFdFlags::MFD_CLOEXEC)?);
        self.len += io::copy(&mut from.take(len), &mut copy)?;
        Ok(Some(copy))
    }

    /// Returns the paths of the copies by build IDs, which are theirs while this lives.
    pub(super) fn paths(&self) -> Vec<(Vec<u8>, PathBuf)> {
        let files = self.files.iter();
        let path = |file: &File| format!("/proc/self/fd/{}", file.as_raw_fd()).into();
        files.map(|(id, file)| (id.clone(), path(file))).collect()
    }
}
