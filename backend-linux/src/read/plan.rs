//! The ways in which read(2) gives the counters of a kernel group.

use crate::sys::ReadFormat;

/// The way in which a kernel group is read by system calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadPlan {
    /// The leader is all there is.
    Single,
    /// One read of the leader returns every member.
    Snapshot,
    /// A read for each member, one after the other.
    OneByOne,
}

impl ReadPlan {
    /// Returns the format that the counters have to be opened with.
    pub(crate) fn format(self) -> ReadFormat {
        match self {
            Self::Single | Self::OneByOne => ReadFormat::TIMES,
            Self::Snapshot => ReadFormat::TIMES | ReadFormat::GROUP | ReadFormat::ID,
        }
    }
}
