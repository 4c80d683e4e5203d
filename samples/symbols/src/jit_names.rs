//! Names of the functions that compilers made as a program ran: read once for each process or file.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use foldhash::HashMap;

use crate::call_frames::Rules;
use crate::image::ReadFile;
use crate::input::regular_file;
use crate::jit::{self, Trusted};
use crate::jitdump::JitDump;
use crate::left_out::LeftOut;
use crate::locate::{self, RecordedAt};
use crate::mapped_file::{FileIdentity, MappedFile};
use crate::process_maps::{ProcessMaps, as_path};
use crate::processes::Processes;
use crate::table::{Symbol, SymbolTable};

/// The tables that were read.
#[derive(Debug, Default)]
pub(crate) struct JitNames {
    /// By the process whose compiler lists its functions.
    maps: HashMap<i32, SymbolTable>,
    dumps: HashMap<Arc<MappedFile>, ReadDump>,
    /// Copies of such files, which come first.
    pub(crate) copied_maps: HashMap<i32, PathBuf>,
    pub(crate) copied_dumps: HashMap<FileIdentity, PathBuf>,
    /// The files that are there and were not read, and why.
    pub(crate) left_out: BTreeMap<String, LeftOut>,
}

/// A file with the code of a compiler, and what was read of it.
#[derive(Debug, Default)]
struct ReadDump {
    file: Option<Arc<ReadFile>>,
    dump: JitDump,
}

/// A function that a compiler made.
#[derive(Debug)]
pub(crate) struct JitFunction<'a> {
    pub(crate) symbol: Symbol<'a>,
    /// Source file and line.
    pub(crate) source: Option<(&'a Arc<str>, u32)>,
}

/// Selects the files that are read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    pub(crate) at: RecordedAt,
    /// True for files of any user.
    pub(crate) of_others: bool,
}

impl JitNames {
    /// Returns the function at an address of a process: of its own files, or of those of the processes that it was forked from.
    pub(crate) fn find(
        &mut self,
        (processes, pid): (&Processes, i32),
        address: u64,
        reading: Reading,
    ) -> Option<JitFunction<'_>> {
        let dumps = self.read_dumps((processes, pid), reading);
        let owners = || std::iter::once(pid).chain(processes.forked_from(pid).iter().copied());
        for owner in owners() {
            if !self.maps.contains_key(&owner) {
                let table = self.read_map(processes, (owner, pid), reading);
                self.maps.insert(owner, table);
            }
        }
        let mut dumps = dumps.iter().filter_map(|dump| self.dumps.get(dump));
        let in_dump = dumps.find_map(|ReadDump { dump, .. }| {
            Some(JitFunction {
                symbol: dump.find(address)?,
                source: dump.source_at(address),
            })
        });
        in_dump.or_else(|| {
            let mut maps = owners().filter_map(|owner| self.maps.get(&owner));
            let symbol = maps.find_map(|table| table.find(address))?;
            let source = None;
            Some(JitFunction { symbol, source })
        })
    }

    /// Returns the file that has the code at an address of a process.
    pub(crate) fn file_at(
        &mut self,
        of: (&Processes, i32),
        address: u64,
        reading: Reading,
    ) -> Option<&Arc<ReadFile>> {
        let dumps = self.read_dumps(of, reading);
        let mut dumps = dumps.iter().filter_map(|dump| self.dumps.get(dump));
        let read = dumps.find(|read| read.dump.find(address).is_some())?;
        read.file.as_ref()
    }

    /// Returns the rules that restore the registers of a caller at an address of a process.
    pub(crate) fn rules_at(
        &mut self,
        of: (&Processes, i32),
        address: u64,
        reading: Reading,
    ) -> Option<Arc<Rules>> {
        let dumps = self.read_dumps(of, reading);
        let holds = |dump: &&Arc<MappedFile>| {
            let read = self.dumps.get(*dump);
            read.is_some_and(|read| read.dump.find(address).is_some())
        };
        let dump = dumps.iter().find(holds)?;
        self.dumps.get_mut(dump)?.dump.rules_at(address)
    }

    /// Returns the files with the code of compilers that a process has mapped, which have been read.
    fn read_dumps<'p>(
        &mut self,
        (processes, pid): (&'p Processes, i32),
        reading: Reading,
    ) -> &'p [Arc<MappedFile>] {
        let space = processes.address_space(pid);
        let dumps = space.map_or(&[][..], |space| space.jitdumps());
        for dump in dumps {
            if !self.dumps.contains_key(dump) {
                let read = self.read_dump((processes, pid), dump, reading);
                self.dumps.insert(dump.clone(), read);
            }
        }
        dumps
    }

    /// Returns true if a process, or one that it was forked from, has a file that lists functions.
    pub(crate) fn are_there(&self, processes: &Processes, pid: i32, at: RecordedAt) -> bool {
        let mut owners = std::iter::once(pid).chain(processes.forked_from(pid).iter().copied());
        owners.any(|owner| {
            let mut paths = paths_of(processes, (owner, pid), at).0.into_iter();
            self.copied_maps.contains_key(&owner) || paths.any(|path| path.exists())
        })
    }

    fn read_map(
        &mut self,
        processes: &Processes,
        (owner, sampled): (i32, i32),
        reading: Reading,
    ) -> SymbolTable {
        let (paths, user) = paths_of(processes, (owner, sampled), reading.at);
        let trusted = match reading.of_others {
            true => Trusted::Everyone,
            false => Trusted::Sampled(user),
        };
        let copy = self.copied_maps.get(&owner).cloned();
        for path in copy.into_iter().chain(paths) {
            match jit::functions_in(&path, trusted) {
                Ok(Some(table)) => return table,
                Ok(None) => {}
                Err(why) => {
                    self.left_out.insert(path.display().to_string(), why);
                }
            }
        }
        SymbolTable::default()
    }

    fn read_dump(
        &mut self,
        (processes, pid): (&Processes, i32),
        dump: &MappedFile,
        reading: Reading,
    ) -> ReadDump {
        let running = running(processes, pid, pid);
        let in_root = running.map(|running| running.in_root(&dump.path));
        let places = in_root.into_iter().chain([as_path(&dump.path)]);
        let places = places.filter(|path| locate::is_there(dump, path, reading.at));
        let copy = self.copied_dumps.get(&dump.identity).cloned();
        for path in copy.into_iter().chain(places) {
            match regular_file(&path) {
                Ok(Some(file)) => {
                    let dump = JitDump::read(file);
                    let file = ReadFile {
                        path,
                        build_id: None,
                        from: 0,
                    };
                    return ReadDump {
                        file: Some(Arc::new(file)),
                        dump,
                    };
                }
                Ok(None) => {}
                Err(error) => {
                    self.left_out
                        .insert(path.display().to_string(), error.into());
                }
            }
        }
        ReadDump::default()
    }
}

/// Returns the files in which the compiler of a process may list its functions, and the user of the process that was sampled.
fn paths_of(
    processes: &Processes,
    (owner, sampled): (i32, i32),
    at: RecordedAt,
) -> (Vec<PathBuf>, Option<u32>) {
    let of_sampled = running(processes, sampled, sampled);
    let of_owner = match owner == sampled {
        true => None,
        false => running(processes, owner, sampled),
    };
    let user = of_sampled
        .as_ref()
        .and_then(|running| running.user_and_own_pid().0);
    let paths = match owner == sampled {
        true => jit::paths_of(owner, of_sampled.as_ref(), None),
        false => jit::paths_of(owner, of_owner.as_ref(), of_sampled.as_ref()),
    };
    // What is in this /tmp is of processes of this machine.
    let is_of_other = |path: &PathBuf| path.starts_with("/tmp") && !at.this_machine;
    (
        paths
            .into_iter()
            .filter(|path| !is_of_other(path))
            .collect(),
        user,
    )
}

/// Returns a process of the recording if it still runs. One that the recording says nothing of but that `child` was forked from it
/// has what that has.
fn running(processes: &Processes, pid: i32, child: i32) -> Option<ProcessMaps> {
    let own = processes.address_space(pid).filter(|space| space.len() > 0);
    let space = own.or_else(|| processes.address_space(child))?;
    ProcessMaps::of_recorded(pid, space)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mapped;
    use crate::jitdump::tests::{file, load};

    /// A process of the recording that has mapped the files of two compilers, the newer of which is asked first.
    #[test]
    fn files_of_compilers_are_read_once_and_found_by_what_they_hold() {
        const PID: i32 = 1 << 30;
        let folder = tempfile::tempdir().unwrap();
        let [old, new] = ["jit-1.dump", "jit-2.dump"].map(|name| folder.path().join(name));
        let code = [0x90; 16];
        let both = [
            load(0x1000, b"old", &code),
            load(0x2000, b"only old", &code),
        ];
        std::fs::write(&old, file(&both)).unwrap();
        std::fs::write(&new, file(&[load(0x1000, b"new", &code)])).unwrap();
        let mut processes = Processes::new();
        for (start, path) in [(0x10_0000, &old), (0x20_0000, &new)] {
            let path = path.to_str().unwrap().as_bytes();
            processes.map(PID, Mapped::new(start..start + 0x1000, 0, path));
        }
        let mut names = JitNames::default();
        let at = RecordedAt {
            this_machine: true,
            ..RecordedAt::default()
        };
        let reading = Reading {
            at,
            of_others: true,
        };
        let of = (&processes, PID);
        let mut find = |address| {
            let found = names.find(of, address, reading)?;
            Some(found.symbol.name.to_owned())
        };
        let found = [0x1000, 0x100f, 0x1010, 0x2000, 0x3000].map(&mut find);
        let expected = [Some("new"), Some("new"), None, Some("only old"), None];
        assert_eq!(found, expected.map(|name| name.map(str::to_owned)));
        // They are not read again.
        std::fs::remove_file(&old).unwrap();
        assert_eq!(find(0x2000).as_deref(), Some("only old"));
        for (address, path) in [(0x1000, Some(&new)), (0x2000, Some(&old)), (0x3000, None)] {
            let file = names.file_at(of, address, reading);
            assert_eq!(file.map(|file| &file.path), path);
        }
        assert!(names.left_out.is_empty());
    }
}
