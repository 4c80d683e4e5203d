//! The surroundings of threads: context switches, namespaces and control groups.

use super::{Misc, ThreadId};
use crate::bytes::{Cursor, Malformed, Words};

/// A context switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Switch {
    /// Direction for the counted thread.
    pub direction: SwitchDirection,
    /// On a counted CPU the other thread: the one before it or after it.
    pub other: Option<ThreadId>,
}

/// Which way the counted thread was switched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SwitchDirection {
    /// It came onto the CPU.
    In,
    /// It left the CPU of its own accord.
    Out,
    /// It was pushed off the CPU (`PERF_RECORD_MISC_SWITCH_OUT_PREEMPT`).
    OutPreempted,
}

impl Switch {
    pub(crate) fn of_thread(misc: Misc) -> Self {
        Self {
            direction: match (misc.bit_13(), misc.bit_14()) {
                (false, _) => SwitchDirection::In,
                (true, false) => SwitchDirection::Out,
                (true, true) => SwitchDirection::OutPreempted,
            },
            other: None,
        }
    }

    pub(crate) fn decode(mut cursor: Cursor<'_>, misc: Misc) -> Result<Self, Malformed> {
        Ok(Self {
            other: Some(ThreadId::decode(&mut cursor)?),
            ..Self::of_thread(misc)
        })
    }
}

/// The namespaces of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Namespaces<'a> {
    /// The thread.
    pub thread: ThreadId,
    /// Two words for each namespace.
    links: Words<'a>,
}

/// One namespace (`struct perf_ns_link_info`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Namespace {
    /// Kind of the namespace.
    pub kind: NamespaceKind,
    /// The device of its file in `/proc/PID/ns`.
    pub device: u64,
    /// The inode of its file in `/proc/PID/ns`.
    pub inode: u64,
}

/// Kind of a namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NamespaceKind {
    /// Network.
    Net,
    /// Host name.
    Uts,
    /// Interprocess communication.
    Ipc,
    /// Processes.
    Pid,
    /// Users.
    User,
    /// Mounts.
    Mount,
    /// Control groups.
    Cgroup,
    /// Another, by the kernel's number.
    Other(usize),
}

impl<'a> Namespaces<'a> {
    pub(crate) fn decode(mut cursor: Cursor<'a>) -> Result<Self, Malformed> {
        const FIELD: &str = "list of namespaces";
        let thread = ThreadId::decode(&mut cursor)?;
        let count = cursor.u64(FIELD)?;
        Ok(Self {
            thread,
            links: cursor.words(count.saturating_mul(2), FIELD)?,
        })
    }

    /// Returns the namespaces.
    pub fn iter(&self) -> impl Iterator<Item = Namespace> + use<'a> {
        let links = self.links;
        (0..links.len() / 2).filter_map(move |i| {
            Some(Namespace {
                kind: match i {
                    0 => NamespaceKind::Net,
                    1 => NamespaceKind::Uts,
                    2 => NamespaceKind::Ipc,
                    3 => NamespaceKind::Pid,
                    4 => NamespaceKind::User,
                    5 => NamespaceKind::Mount,
                    6 => NamespaceKind::Cgroup,
                    other => NamespaceKind::Other(other),
                },
                device: links.get(2 * i)?,
                inode: links.get(2 * i + 1)?,
            })
        })
    }
}

/// A control group was made or is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cgroup<'a> {
    /// Its id, as in samples.
    pub id: u64,
    /// Its path from the root of the hierarchy.
    pub path: &'a [u8],
}

impl<'a> Cgroup<'a> {
    pub(crate) fn decode(mut cursor: Cursor<'a>) -> Result<Self, Malformed> {
        Ok(Self {
            id: cursor.u64("control group")?,
            path: cursor.text(),
        })
    }
}
