//! The descriptors of a kernel group.

use std::iter;

use crate::sys::CounterFd;

/// The descriptors of the counters of a kernel group.
#[derive(Debug)]
pub(crate) struct Fds {
    leader: CounterFd,
    siblings: Vec<CounterFd>,
}

impl Fds {
    /// Returns the descriptors of a leader and those that were opened under it.
    pub(crate) fn new(leader: CounterFd, siblings: Vec<CounterFd>) -> Self {
        Self { leader, siblings }
    }

    /// Returns the leader.
    pub(crate) fn leader(&self) -> &CounterFd {
        &self.leader
    }

    /// Returns all of them in member order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &CounterFd> {
        iter::once(&self.leader).chain(&self.siblings)
    }

    /// Returns their number.
    pub(crate) fn len(&self) -> usize {
        1 + self.siblings.len()
    }

    /// Returns that of a member.
    pub(crate) fn of(&self, member: usize) -> Option<&CounterFd> {
        match member {
            0 => Some(&self.leader),
            _ => self.siblings.get(member - 1),
        }
    }

    /// Adds those of further members.
    pub(super) fn extend(&mut self, more: Vec<CounterFd>) {
        self.siblings.extend(more);
    }
}
