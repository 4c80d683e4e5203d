//! Processes that a command has left behind: they run on when it has ended. Linux gives them to an ancestor of the command
//! that takes orphans, as init does.

use std::iter;

use nix::unistd::{getpgrp, getpid};

use crate::processes::{self, Process};
use crate::tasks;

/// Returns the processes, by name and id, that a command has left behind in its process group: this process waited for it.
/// A process that has made a group of its own, as daemons do, is not among them.
pub fn left_behind(command: Begun) -> Vec<String> {
    // What made no process leaves none behind, and a machine may have thousands to look at.
    if command.forks.is_some() && tasks::forks() == command.forks {
        return Vec::new();
    }
    let (this, group) = (getpid().as_raw(), getpgrp().as_raw());
    let Ok(ids) = processes::ids() else {
        return Vec::new();
    };
    let all: Vec<_> = ids.into_iter().filter_map(Process::read).collect();
    let mut left: Vec<_> = all
        .iter()
        .filter(|process| process.group == group && command.is_before(process))
        .filter(|process| process.id != this && takes_orphans(process, &all))
        .collect();
    left.sort_by_key(|process| process.id);
    left.into_iter()
        .map(|process| format!("{} ({})", process.name, process.id))
        .collect()
}

/// The beginning of a command.
#[derive(Debug, Clone, Copy)]
pub struct Begun {
    process: i32,
    /// When its process was made, in clock ticks after boot.
    started: u64,
    /// The number of processes that had been made on the machine.
    forks: Option<u64>,
}

impl Begun {
    /// Returns the beginning of a command whose process has not executed it yet, if that can be read.
    pub fn of(process: i32) -> Option<Self> {
        let started = Process::read(process)?.started;
        let forks = tasks::forks();
        Some(Self {
            process,
            started,
            forks,
        })
    }

    /// Returns true if a process was made after that of the command. Ticks are long enough for several.
    fn is_before(&self, other: &Process) -> bool {
        (self.started, self.process) < (other.started, other.id)
    }
}

/// Returns true if the parent of a process is one that takes orphans: the first process of a machine or container, which may
/// have begun no session, or an ancestor of this process in another session. Other ancestors in the same session have children
/// of their own there.
fn takes_orphans(process: &Process, all: &[Process]) -> bool {
    if process.parent == 1 {
        return true;
    }
    let this = getpid().as_raw();
    let find = |id: i32| all.iter().find(|process| process.id == id);
    let session = find(this).map(|process| process.session);
    let ancestors = iter::successors(find(this), |process| find(process.parent));
    ancestors
        .filter(|ancestor| Some(ancestor.session) != session)
        .any(|ancestor| ancestor.id == process.parent)
}
