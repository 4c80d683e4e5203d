//! Threads that start, end and are named: `PERF_RECORD_FORK`, `_EXIT` and `_COMM`.

use super::{Misc, ThreadId};
use crate::bytes::{Cursor, Malformed};

/// A thread or process that was started or ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Task {
    /// The thread.
    pub thread: ThreadId,
    /// The one that started it.
    pub parent: ThreadId,
    /// When, in nanoseconds of the counter's clock.
    pub time: u64,
}

impl Task {
    pub(crate) fn decode(mut cursor: Cursor<'_>) -> Result<Self, Malformed> {
        const FIELD: &str = "task";
        let [pid, parent_pid, tid, parent_tid] = [
            cursor.i32(FIELD)?,
            cursor.i32(FIELD)?,
            cursor.i32(FIELD)?,
            cursor.i32(FIELD)?,
        ];
        Ok(Self {
            thread: ThreadId { pid, tid },
            parent: ThreadId {
                pid: parent_pid,
                tid: parent_tid,
            },
            time: cursor.u64(FIELD)?,
        })
    }
}

/// A thread got a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Comm<'a> {
    /// The thread.
    pub thread: ThreadId,
    /// The name, at most 15 bytes where the kernel wrote it.
    pub name: &'a [u8],
    /// True if it got it by executing a program (`PERF_RECORD_MISC_COMM_EXEC`).
    pub is_exec: bool,
}

impl<'a> Comm<'a> {
    pub(crate) fn decode(mut cursor: Cursor<'a>, misc: Misc) -> Result<Self, Malformed> {
        Ok(Self {
            thread: ThreadId::decode(&mut cursor)?,
            name: cursor.text(),
            is_exec: misc.bit_13(),
        })
    }
}
