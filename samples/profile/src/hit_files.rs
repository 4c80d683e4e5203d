//! The files that samples hit, under the paths at which perf's cache of build IDs has them (perf-buildid-cache(1)).

use std::collections::{BTreeSet, HashSet};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quipu_perf_data::Sample;
use quipu_symbols::{AddressOwner, MappedFile, build_id_of_this_kernel};

use crate::recording::{ChainFrame, Input, Replay, Visit};
use quipu_shell::Failure;

/// Place of the symbols of the kernel that runs.
const KALLSYMS: &str = "/proc/kallsyms";

/// A file that has a place in the cache.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HitFile {
    /// Its path where it was recorded, or the name of the kernel.
    path: String,
    /// Its build ID, in hexadecimal.
    id: String,
    /// Name in the cache.
    kind: &'static str,
    /// The file here.
    pub(crate) source: PathBuf,
}

impl HitFile {
    /// Returns the path of its directory in the cache.
    fn directory(&self) -> String {
        format!("{}/{}", self.path.trim_start_matches('/'), self.id)
    }

    /// Returns its path in the cache.
    pub(crate) fn path(&self) -> PathBuf {
        Path::new(&self.directory()).join(self.kind)
    }

    /// Returns the path of the link by which it is found, and what that leads to.
    pub(crate) fn link(&self) -> (PathBuf, PathBuf) {
        let (first, rest) = self.id.split_at_checked(2).unwrap_or((&self.id, ""));
        (
            Path::new(".build-id").join(first).join(rest),
            Path::new("../..").join(self.directory()),
        )
    }
}

/// The files that the samples of a recording hit.
#[derive(Debug, Default)]
pub(crate) struct HitFiles {
    /// Those with a place in the cache.
    pub(crate) files: BTreeSet<HitFile>,
    /// The paths of others: that have no build ID, or are not there.
    pub(crate) left_out: BTreeSet<String>,
}

impl HitFiles {
    /// Returns those of a recording.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn of(input: Input<'_>) -> Result<Self, Failure> {
        let (replay, hits) = input.replay(|_, _, _| Ok(Hits::default()))?;
        let mut found = hits.found;
        if hits.in_kernel {
            let has_symbols = replay.is_of_this_kernel() && replay.symbolizer.has_kernel();
            match has_symbols.then(build_id_of_this_kernel).flatten() {
                Some(id) => drop(found.files.insert(HitFile {
                    path: "[kernel.kallsyms]".to_owned(),
                    id: hexadecimal(&id),
                    kind: "kallsyms",
                    source: KALLSYMS.into(),
                })),
                None => drop(found.left_out.insert("[kernel.kallsyms]".to_owned())),
            }
        }
        Ok(found)
    }
}

pub(crate) fn hexadecimal(id: &[u8]) -> String {
    id.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Takes note of the files that samples hit.
#[derive(Debug, Default)]
struct Hits {
    found: HitFiles,
    in_kernel: bool,
    /// Files that were looked for.
    known: HashSet<Arc<MappedFile>>,
    hits: Vec<ChainFrame>,
}

impl Hits {
    fn note(&mut self, replay: &mut Replay, owner: AddressOwner, address: u64) {
        self.in_kernel |= owner == AddressOwner::Kernel;
        let AddressOwner::Process(pid) = owner else {
            return;
        };
        let Some(mapped) = replay.processes.mapping(pid, address) else {
            return;
        };
        let file = &mapped.file;
        if file.is_anonymous() || file.path.starts_with(b"[") || self.known.contains(file) {
            return;
        }
        self.known.insert(file.clone());
        let path = String::from_utf8_lossy(&file.path).into_owned();
        let read = replay.symbolizer.file_at(&replay.processes, pid, address);
        match read.and_then(|read| Some((read.build_id.as_deref()?, &read.path))) {
            // The paths of other directories are not those of an archive.
            Some((id, source)) if !path.split('/').any(|part| part == "..") => {
                self.found.files.insert(HitFile {
                    path,
                    id: hexadecimal(id),
                    kind: "elf",
                    source: source.clone(),
                });
            }
            _ => drop(self.found.left_out.insert(path)),
        }
    }
}

impl Visit for Hits {
    fn sample(
        &mut self,
        replay: &mut Replay,
        event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        let mut hits = std::mem::take(&mut self.hits);
        replay.hits(event, sample, &mut hits);
        for hit in &hits {
            self.note(replay, hit.owner, hit.address);
        }
        self.hits = hits;
        ControlFlow::Continue(())
    }

    fn is_shown_as_it_comes(&self) -> bool {
        true
    }
}
