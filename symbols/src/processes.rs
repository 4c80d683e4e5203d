//! Processes and threads, as the records of a recording tell of them.

use std::sync::Arc;

use foldhash::{HashMap, HashSet};

use crate::address_space::{AddressSpace, Mapped};
use crate::maps_line::MapsLine;

/// As many mappings as a process can have (`vm.max_map_count`), for more than a thousand of them.
/// A recording that makes more is not believed.
const MOST_MAPPINGS: usize = 64 << 20;

/// All processes and threads.
#[derive(Debug, Default)]
pub struct Processes {
    /// Mappings, shared with the parent until one of the two changes them.
    spaces: HashMap<i32, Arc<AddressSpace>>,
    threads: HashMap<i32, Arc<str>>,
    /// Every name of a thread, once.
    names: HashSet<Arc<str>>,
    /// Every path of a mapping, once.
    paths: HashSet<Arc<[u8]>>,
    /// Number of mappings that have been copied or made.
    mappings: usize,
}

impl Processes {
    /// No processes yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// A process maps something. Mappings of the same path share it.
    pub fn map(&mut self, pid: i32, mut mapped: Mapped) {
        match self.paths.get(&mapped.path) {
            Some(known) => mapped.path = known.clone(),
            None => drop(self.paths.insert(mapped.path.clone())),
        }
        let space = self.spaces.entry(pid).or_default();
        let copied = match Arc::get_mut(space) {
            Some(_) => 0,
            None => space.len(),
        };
        self.mappings = self.mappings.saturating_add(copied + 1);
        if self.mappings <= MOST_MAPPINGS {
            Arc::make_mut(space).map(mapped);
        }
    }

    /// Takes in what a process that runs has mapped by now (proc_pid_maps(5)), and its name. Nothing
    /// changes where there is none, or it may not be looked at.
    pub fn read(&mut self, pid: i32) {
        let read = |file| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        for line in read("maps").split(|byte| *byte == b'\n') {
            if let Some(line) = MapsLine::parse(line).filter(MapsLine::is_executable) {
                let mapped = Mapped::new(line.start..line.end, line.offset, line.path);
                self.map(pid, mapped);
            }
        }
        let name = read("comm");
        if !name.is_empty() {
            self.name(pid, pid, name.trim_ascii_end(), false);
        }
    }

    /// A thread gets a name; when it has executed a program, its process maps nothing any more.
    pub fn name(&mut self, pid: i32, tid: i32, name: &[u8], executed: bool) {
        let name = String::from_utf8_lossy(name);
        let known = self.names.get(name.as_ref()).cloned();
        let name = known.unwrap_or_else(|| {
            let name: Arc<str> = name.as_ref().into();
            self.names.insert(name.clone());
            name
        });
        self.threads.insert(tid, name);
        if executed {
            self.spaces.insert(pid, Arc::default());
        }
    }

    /// A thread is made. In a new process everything is mapped as in its parent.
    pub fn fork(&mut self, pid: i32, tid: i32, parent_pid: i32, parent_tid: i32) {
        if let Some(name) = self.threads.get(&parent_tid).cloned() {
            self.threads.insert(tid, name);
        }
        if pid != parent_pid {
            let parent = self.spaces.get(&parent_pid).cloned();
            self.spaces.insert(pid, parent.unwrap_or_default());
        }
    }

    /// A thread has ended, and with the first one of a process what that has mapped. For those who follow processes for
    /// long; a process whose other threads go on has no mappings any more.
    pub fn end(&mut self, pid: i32, tid: i32) {
        self.threads.remove(&tid);
        if pid == tid {
            self.spaces.remove(&pid);
        }
    }

    /// Returns true if anything is known of a process.
    pub fn contains(&self, pid: i32) -> bool {
        self.spaces.contains_key(&pid)
    }

    /// Returns the mapping of a process that an address is in.
    pub fn mapping(&self, pid: i32, address: u64) -> Option<&Mapped> {
        self.spaces.get(&pid)?.find(address)
    }

    /// Returns the name of a thread. Threads of the same name share it.
    pub fn thread_name(&self, tid: i32) -> Option<&Arc<str>> {
        self.threads.get(&tid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapped(path: &str) -> Mapped {
        Mapped {
            start: 0,
            end: 10,
            offset: 0,
            path: path.as_bytes().into(),
        }
    }

    fn path_in(processes: &Processes, pid: i32) -> Option<String> {
        let mapped = processes.mapping(pid, 5)?;
        Some(String::from_utf8_lossy(&mapped.path).into_owned())
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
    fn a_process_that_runs_is_read() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let mut processes = Processes::new();
        processes.read(pid);
        let here = a_process_that_runs_is_read as fn() as usize as u64;
        let mapped = processes.mapping(pid, here);
        let own = std::env::current_exe().expect("it runs");
        let path = mapped.map(|m| String::from_utf8_lossy(&m.path).into_owned());
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
