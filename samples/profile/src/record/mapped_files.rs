//! The build IDs of the files that were mapped while it was recorded.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use quipu_perf_data::record::{self, Mapping};
use quipu_perf_data::{BuildId, BuildIdOwner};
use quipu_symbols::{FileIdentity, build_id_of_mapped};

use crate::recording::identity_of;

/// Files by their paths, of each of which several may have been mapped.
#[derive(Debug, Default)]
pub(super) struct MappedFiles(BTreeMap<Vec<u8>, OfPath>);

/// The files of one path.
#[derive(Debug, Default)]
struct OfPath {
    /// Those of which the kernel said no build ID.
    without: HashSet<FileIdentity>,
    /// Their build IDs, `None` for one that has none or is not known.
    ids: BTreeSet<Option<Vec<u8>>>,
}

impl MappedFiles {
    /// Takes note of a mapping. Of a file of which the kernel says no build ID that is read now, as long as it is there.
    pub(super) fn note(&mut self, mapping: &Mapping<'_>) {
        if mapping.is_data || !mapping.path.starts_with(b"/") {
            return;
        }
        if !self.0.contains_key(mapping.path) {
            self.0.insert(mapping.path.to_owned(), OfPath::default());
        }
        let Some(known) = self.0.get_mut(mapping.path) else {
            return;
        };
        match mapping.file {
            Some(record::FileIdentity::BuildId(id)) => {
                if !known.ids.iter().flatten().any(|own| own == id) {
                    known.ids.insert(Some(id.to_owned()));
                }
            }
            Some(record::FileIdentity::Inode { .. }) => {
                let identity = identity_of(mapping);
                if !known.without.contains(&identity) {
                    let pid = mapping.thread.pid;
                    let id = build_id_of_mapped(pid, mapping.address, mapping.path, &identity);
                    known.without.insert(identity);
                    known.ids.insert(id);
                }
            }
            _ => drop(known.ids.insert(None)),
        }
    }

    /// Returns the build IDs of the paths that stand for one file.
    pub(super) fn build_ids(&self) -> impl Iterator<Item = BuildId> {
        self.0.iter().filter_map(|(path, known)| {
            let mut ids = known.ids.iter();
            match (ids.next(), ids.next()) {
                (Some(Some(id)), None) => Some(BuildId::new(
                    BuildIdOwner::User,
                    id.as_slice(),
                    path.as_slice(),
                )),
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use quipu_perf_data::{RawRecord, Record, RecordLayout, SampleType, synthesized};

    use super::*;

    fn note(files: &mut MappedFiles, path: &[u8], build_id: Option<&[u8]>) {
        let mapping = synthesized::Mapping {
            start: 0x1000,
            len: 0x1000,
            inode: 1,
            build_id,
            protection: 4,
            path,
            ..synthesized::Mapping::default()
        };
        let bytes = synthesized::mmap2(-1, -1, &mapping, 0);
        let record = RawRecord::at_start(&bytes).expect("whole");
        let layout = RecordLayout::new(SampleType::IP);
        match record.decode(&layout) {
            Ok(Record::Mapping(mapping)) => files.note(&mapping),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_path_of_several_files_has_no_id() {
        let mut files = MappedFiles::default();
        for (path, id) in [
            (&b"/one"[..], Some(&[7; 20][..])),
            (b"/one", Some(&[7; 20])),
            (b"/replaced", Some(&[7; 20])),
            (b"/replaced", Some(&[8; 20])),
            (b"/without", Some(&[9; 20])),
            (b"/without", None),
            (b"//anon", None),
            (b"[vdso]", None),
        ] {
            note(&mut files, path, id);
        }
        let ids: Vec<_> = files.build_ids().map(|id| (id.path, id.id)).collect();
        assert_eq!(ids, [(b"/one".to_vec(), vec![7; 20])]);
    }
}
