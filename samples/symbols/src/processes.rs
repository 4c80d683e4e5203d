//! Processes and threads, from the records of a recording.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use crate::address_space::{AddressSpace, Mapped};
use crate::mapped_file::{FileIdentity, MappedFile};
use crate::maps_line::MapsLine;
use crate::process_maps::ProcessMaps;

/// As many mappings as a process can have (`vm.max_map_count`), for more than a thousand of them.
/// A recording that makes more is not believed.
const MOST_MAPPINGS: usize = 64 << 20;
/// As many mappings are copied for processes that map more than they were forked with, some 600 MB of them, and this many
/// for each that is made: a small file of forks must not need the square of its size.
const MOST_COPIES: usize = if cfg!(test) { 1 << 10 } else { 8 << 20 };
const COPIES_OF_EACH: usize = 64;
/// As many changes of address spaces are known at once: what comes after another one has a number of its own.
const MOST_NUMBERS: usize = 7 << 13;

/// All processes and threads.
#[derive(Debug, Default)]
pub struct Processes {
    /// Mappings, shared with the parent until one of the two changes them.
    spaces: HashMap<i32, Arc<AddressSpace>>,
    threads: HashMap<i32, Arc<str>>,
    /// The threads of each process that have not ended.
    living: HashMap<i32, HashSet<i32>>,
    /// The processes that a process was forked from since a program was executed, the last one first.
    forked_from: HashMap<i32, Arc<[i32]>>,
    /// Every name of a thread, once.
    names: HashSet<Arc<str>>,
    /// Every file that was mapped, once.
    files: HashSet<Arc<MappedFile>>,
    /// Number of mappings that have been made.
    made: usize,
    /// Number of those that have been copied.
    copied: usize,
    /// Number of those that are left out, as they were too many.
    left_out: usize,
    /// The numbers of the address spaces that came of others by a mapping.
    numbers: HashMap<Change, u32>,
    last_number: u32,
}

/// As many generations of forks without a program that was executed between them are known.
const MOST_GENERATIONS: usize = 32;

/// A mapping that was added to the address space with a number; its file is that at an address, which `files` keeps alive.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Change {
    before: u32,
    start: u64,
    end: u64,
    offset: u64,
    file: usize,
}

impl Processes {
    /// Returns a table without processes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a mapping of a process. Mappings of the same file share it.
    pub fn map(&mut self, pid: i32, mut mapped: Mapped) {
        match self.files.get(&mapped.file) {
            Some(known) => mapped.file = known.clone(),
            None => drop(self.files.insert(mapped.file.clone())),
        }
        let space = self.spaces.entry(pid).or_default();
        let copied = match Arc::get_mut(space) {
            Some(_) => 0,
            None => space.len(),
        };
        let most_copies = MOST_COPIES + COPIES_OF_EACH * self.made;
        if self.made >= MOST_MAPPINGS || self.copied + copied > most_copies {
            // What lay there before would have its name.
            *space = Arc::default();
            self.left_out += 1;
        } else {
            self.made += 1;
            self.copied += copied;
            let space = Arc::make_mut(space);
            let change = Change {
                before: space.number,
                start: mapped.start,
                end: mapped.end,
                offset: mapped.offset,
                file: Arc::as_ptr(&mapped.file).addr(),
            };
            if self.numbers.len() >= MOST_NUMBERS {
                self.numbers.clear();
            }
            space.number = *self.numbers.entry(change).or_insert_with(|| {
                self.last_number = self.last_number.wrapping_add(1).max(1);
                self.last_number
            });
            space.map(mapped);
        }
    }

    /// Returns the number of mappings that were left out, as a recording has too many of them.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Takes in what a process that runs has mapped by now (proc_pid_maps(5)), and its name. Nothing
    /// changes where there is none, or it may not be looked at.
    pub fn read(&mut self, pid: i32) {
        let maps = ProcessMaps::read(pid);
        let lines = maps.iter().flat_map(ProcessMaps::lines);
        for line in lines.filter(MapsLine::is_executable) {
            let identity = FileIdentity::Inode {
                device: line.device,
                inode: line.inode,
                generation: 0,
            };
            let mapped = Mapped::new(line.start..line.end, line.offset, line.path);
            self.map(pid, mapped.of(identity));
        }
        let name = std::fs::read(format!("/proc/{pid}/comm")).unwrap_or_default();
        if !name.is_empty() {
            self.name(pid, pid, name.trim_ascii_end(), false);
        }
    }

    /// Sets the name of a thread. If it has executed a program, the mappings of its process are those
    /// [before](Self::before_exec).
    pub fn name(&mut self, pid: i32, tid: i32, name: &[u8], executed: bool) {
        let name = String::from_utf8_lossy(name);
        let known = self.names.get(name.as_ref()).cloned();
        let name = known.unwrap_or_else(|| {
            let name: Arc<str> = name.as_ref().into();
            self.names.insert(name.clone());
            name
        });
        self.threads.insert(tid, name);
        self.living.entry(pid).or_default().insert(tid);
        if executed {
            let before = self.spaces.insert(pid, Arc::default());
            match before.filter(|before| before.len() > 0) {
                Some(before) => self.spaces.insert(image_before(pid), before),
                None => self.spaces.remove(&image_before(pid)),
            };
            self.forked_from.remove(&pid);
            // The others have ended.
            self.living.insert(pid, HashSet::from_iter([tid]));
        }
    }

    /// Adds a thread. A new process has the mappings of its parent.
    pub fn fork(&mut self, pid: i32, tid: i32, parent_pid: i32, parent_tid: i32) {
        if let Some(name) = self.threads.get(&parent_tid).cloned() {
            self.threads.insert(tid, name);
        }
        if pid != parent_pid {
            let parent = self.spaces.get(&parent_pid).cloned();
            self.spaces.insert(pid, parent.unwrap_or_default());
            let before = self.forked_from.get(&parent_pid);
            let before = before.iter().flat_map(|before| before.iter().copied());
            let generations = std::iter::once(parent_pid).chain(before);
            let generations = generations.take(MOST_GENERATIONS).collect();
            self.forked_from.insert(pid, generations);
            self.living.remove(&pid);
        }
        self.living.entry(pid).or_default().insert(tid);
    }

    /// Removes a thread that has ended; with the last thread of a process its mappings are removed too. Callers need it only
    /// to follow processes for long.
    pub fn end(&mut self, pid: i32, tid: i32) {
        self.threads.remove(&tid);
        let living = self.living.entry(pid).or_default();
        living.remove(&tid);
        if living.is_empty() {
            self.living.remove(&pid);
            self.spaces.remove(&pid);
            self.forget_before_exec(pid);
            self.forked_from.remove(&pid);
        }
    }

    /// Returns a number that stands for a process with the mappings that it had before it executed its program; `None` if it
    /// had none, or they are [forgotten](Self::forget_before_exec). Until the new program runs, its callers are still those of
    /// the old one, which called execve(2).
    pub fn before_exec(&self, pid: i32) -> Option<i32> {
        let before = image_before(pid);
        self.spaces.contains_key(&before).then_some(before)
    }

    /// Forgets the mappings that a process had before it executed its program: it runs that.
    pub fn forget_before_exec(&mut self, pid: i32) {
        self.spaces.remove(&image_before(pid));
    }

    /// Returns true if anything is known of a process.
    pub fn contains(&self, pid: i32) -> bool {
        self.spaces.contains_key(&pid)
    }

    /// Returns the number of what a process has mapped, which changes with it: processes that have the same number have the
    /// same mappings. Nothing has 0.
    pub fn space(&self, pid: i32) -> u32 {
        self.spaces.get(&pid).map_or(0, |space| space.number)
    }

    /// Returns the mapping of a process that an address is in.
    pub fn mapping(&self, pid: i32, address: u64) -> Option<&Mapped> {
        self.spaces.get(&pid)?.find(address)
    }

    /// Returns the address space of a process.
    pub(crate) fn address_space(&self, pid: i32) -> Option<&AddressSpace> {
        self.spaces.get(&pid).map(|space| &**space)
    }

    /// Returns the processes that have mapped a file, each with a mapping of it.
    pub(crate) fn with_file<'a>(
        &'a self,
        file: &'a Arc<MappedFile>,
    ) -> impl Iterator<Item = (i32, &'a Mapped)> {
        let processes = self.spaces.iter().filter(|(pid, _)| **pid >= 0);
        processes.filter_map(|(pid, space)| {
            let mapped = space
                .iter()
                .find(|mapped| Arc::ptr_eq(&mapped.file, file))?;
            Some((*pid, mapped))
        })
    }

    /// Returns the processes that a process was forked from since it, or one of them, executed its program: the last one first.
    pub(crate) fn forked_from(&self, pid: i32) -> &[i32] {
        self.forked_from.get(&pid).map_or(&[], |pids| pids)
    }

    /// Returns the name of a thread. Threads of the same name share it.
    pub fn thread_name(&self, tid: i32) -> Option<&Arc<str>> {
        self.threads.get(&tid)
    }
}

/// Returns the number that stands for a process with the mappings of before: no process has a negative one.
fn image_before(pid: i32) -> i32 {
    !pid
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(path: &str) -> Mapped {
        Mapped::new(0..10, 0, path.as_bytes())
    }

    /// Copying the square of what a file says takes gigabytes for one of a megabyte.
    #[test]
    fn a_chain_of_forks_is_no_square() {
        let mut processes = Processes::new();
        for pid in 1..1_000 {
            processes.fork(pid + 1, pid + 1, pid, pid);
            let start = u64::from(pid.unsigned_abs()) * 10;
            let own = Mapped::new(start..start + 10, 0, "own".as_bytes());
            processes.map(pid + 1, own);
            assert!(pid > 40 || processes.left_out() == 0);
        }
        assert!(processes.copied <= MOST_COPIES + COPIES_OF_EACH * processes.made);
        assert!(processes.left_out() > 0);
        // A name that may be wrong is none.
        assert!(processes.mapping(2, 15).is_some());
        let dropped = (2..1_000).find(|pid| processes.mapping(*pid, 15).is_none());
        assert!(dropped.is_some());
    }

    fn path_in(processes: &Processes, pid: i32) -> Option<String> {
        let mapped = processes.mapping(pid, 5)?;
        Some(String::from_utf8_lossy(&mapped.file.path).into_owned())
    }

    #[test]
    fn children_begin_as_their_parents_and_go_their_own_way() {
        let mut processes = Processes::new();
        processes.name(1, 1, b"sh", true);
        processes.map(1, mapped("/bin/sh"));
        processes.fork(2, 2, 1, 1);
        assert_eq!(path_in(&processes, 2).as_deref(), Some("/bin/sh"));
        assert_eq!(processes.thread_name(2).map(|n| &**n), Some("sh"));
        processes.name(2, 2, b"ls", true);
        assert_eq!(path_in(&processes, 2), None);
        processes.map(2, mapped("/bin/ls"));
        assert_eq!(path_in(&processes, 1).as_deref(), Some("/bin/sh"));
        assert_eq!(path_in(&processes, 2).as_deref(), Some("/bin/ls"));
        assert_eq!(processes.thread_name(2).map(|n| &**n), Some("ls"));
    }

    #[test]
    fn what_a_process_had_mapped_before_it_executed_is_kept_until_it_runs() {
        let mut processes = Processes::new();
        processes.name(1, 1, b"sh", true);
        assert_eq!(processes.before_exec(1), None);
        processes.map(1, mapped("/bin/sh"));
        processes.name(1, 1, b"ls", true);
        processes.map(1, mapped("/bin/ls"));
        let before = processes.before_exec(1).expect("kept");
        assert_eq!(path_in(&processes, before).as_deref(), Some("/bin/sh"));
        assert_eq!(path_in(&processes, 1).as_deref(), Some("/bin/ls"));
        let file = processes.mapping(before, 5).expect("mapped").file.clone();
        assert_eq!(processes.with_file(&file).count(), 0);
        processes.forget_before_exec(1);
        assert_eq!(processes.before_exec(1), None);
        processes.name(1, 1, b"sh", true);
        processes.end(1, 1);
        assert_eq!(processes.before_exec(1), None);
    }

    #[test]
    fn processes_have_one_number_as_long_as_they_have_the_same_mappings() {
        let mut processes = Processes::new();
        assert_eq!(processes.space(1), 0);
        processes.map(1, mapped("/bin/sh"));
        let of_sh = processes.space(1);
        assert_ne!(of_sh, 0);
        processes.fork(2, 2, 1, 1);
        assert_eq!(processes.space(2), of_sh);
        processes.map(2, mapped("/bin/ls"));
        let of_both = processes.space(2);
        assert!(![0, of_sh].contains(&of_both));
        assert_eq!(processes.space(1), of_sh);
        // Another place in the same file.
        let moved = Mapped {
            offset: 4096,
            ..mapped("/bin/ls")
        };
        processes.map(1, moved);
        assert!(![0, of_sh, of_both].contains(&processes.space(1)));
        processes.name(2, 2, b"sh", true);
        assert_eq!(processes.space(2), 0);
        processes.map(2, mapped("/bin/sh"));
        assert_eq!(processes.space(2), of_sh);
        processes.map(2, mapped("/bin/ls"));
        assert_eq!(processes.space(2), of_both);
    }

    #[test]
    fn a_process_that_runs_is_read() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let mut processes = Processes::new();
        processes.read(pid);
        let here = a_process_that_runs_is_read as fn() as usize as u64;
        let mapped = processes.mapping(pid, here);
        let own = std::env::current_exe().expect("it runs");
        let path = mapped.map(|m| String::from_utf8_lossy(&m.file.path).into_owned());
        assert_eq!(path.as_deref(), own.to_str());
        assert!(processes.thread_name(pid).is_some());
        processes.read(-1);
        assert!(!processes.contains(-1));
    }

    #[test]
    fn what_has_ended_is_forgotten() {
        let mut processes = Processes::new();
        processes.name(1, 1, b"sh", true);
        processes.map(1, mapped("/bin/sh"));
        processes.fork(1, 2, 1, 1);
        processes.end(1, 2);
        assert!(processes.thread_name(2).is_none() && processes.contains(1));
        processes.end(1, 1);
        assert!(processes.thread_name(1).is_none() && !processes.contains(1));
    }

    #[test]
    fn a_process_goes_on_when_its_first_thread_ends() {
        let mut processes = Processes::new();
        processes.name(1, 1, b"sh", true);
        processes.map(1, mapped("/bin/sh"));
        processes.fork(1, 2, 1, 1);
        processes.end(1, 1);
        assert_eq!(path_in(&processes, 1).as_deref(), Some("/bin/sh"));
        processes.end(1, 2);
        assert!(!processes.contains(1));
    }

    #[test]
    fn forks_are_known_until_a_program_is_executed() {
        let mut processes = Processes::new();
        for pid in 2..40 {
            processes.fork(pid, pid, pid - 1, pid - 1);
        }
        assert_eq!(processes.forked_from(4), [3, 2, 1]);
        assert_eq!(processes.forked_from(39).len(), MOST_GENERATIONS);
        processes.name(3, 3, b"sh", true);
        assert_eq!(processes.forked_from(3), [0; 0]);
        assert_eq!(processes.forked_from(4), [3, 2, 1]);
        processes.fork(5, 5, 3, 3);
        assert_eq!(processes.forked_from(5), [3]);
    }

    #[test]
    fn files_of_one_path_are_told_apart_by_their_identity() {
        let mut processes = Processes::new();
        let mut map = |pid, id: u8| {
            let identity = FileIdentity::BuildId([id; 20][..].into());
            processes.map(pid, Mapped::new(0..10, 0, &b"/a"[..]).of(identity));
            processes.space(pid)
        };
        assert_eq!(map(1, 7), map(2, 7));
        assert_ne!(map(1, 7), map(3, 8));
        let file = processes.mapping(1, 5).expect("mapped").file.clone();
        let mut pids: Vec<_> = processes.with_file(&file).map(|(pid, _)| pid).collect();
        pids.sort_unstable();
        assert_eq!(pids, [1, 2]);
    }

    #[test]
    fn threads_share_their_process() {
        let mut processes = Processes::new();
        processes.map(1, mapped("a"));
        processes.fork(1, 2, 1, 1);
        processes.name(1, 2, b"worker", false);
        assert_eq!(path_in(&processes, 1).as_deref(), Some("a"));
        assert_eq!(processes.thread_name(2).map(|n| &**n), Some("worker"));
        assert!(!processes.contains(2));
    }
}
