//! Reading counters by read(2) (perf_event_open(2), "Reading results").

use std::sync::Arc;

use super::fds::Fds;
use super::plan::ReadPlan;
use crate::sys::CounterFd;
use crate::user_page::Times;

/// The words of a group read before the members: their number, and both times.
const GROUP_HEADER: usize = 3;
/// The words of a group read for each member: value and id.
const GROUP_ENTRY: usize = 2;

/// Why a kernel group was not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ReadFailure {
    /// The kernel refused.
    Errno(i32),
    /// End of file: the group is pinned and not on the PMU.
    ErrorState,
    /// The kernel wrote something else than was asked for.
    Malformed,
}

/// The counters of a kernel group, which stay open as long as anyone reads them.
#[derive(Debug)]
pub(super) struct Opened {
    plan: ReadPlan,
    fds: Fds,
    /// The ids by which a read of the leader names the members; none where each is read by itself.
    ids: Vec<u64>,
}

/// The counters of a kernel group, and the buffer that the kernel writes to.
#[derive(Debug)]
pub(super) struct CallReader {
    opened: Arc<Opened>,
    words: Box<[u64]>,
}

impl CallReader {
    /// Returns a reader of counters that were opened with the format of the plan.
    ///
    /// # Errors
    /// The errno with which the kernel refused to give a counter's id.
    pub(super) fn new(plan: ReadPlan, fds: Fds) -> Result<Self, i32> {
        let ids = match plan {
            ReadPlan::Snapshot => fds.iter().map(CounterFd::id).collect::<Result<_, _>>()?,
            ReadPlan::Single | ReadPlan::OneByOne => Vec::new(),
        };
        Ok(Self::with_ids(plan, fds, ids))
    }

    /// Returns a reader of counters that have these ids.
    pub(super) fn with_ids(plan: ReadPlan, fds: Fds, ids: Vec<u64>) -> Self {
        Self {
            words: vec![0; group_words(ids.len())].into(),
            opened: Arc::new(Opened { plan, fds, ids }),
        }
    }

    /// Adds counters that were opened under the leader, which reads all of them.
    ///
    /// # Errors
    /// As [`new`](Self::new), and EBUSY when a reader has the counters; nothing is added then.
    pub(super) fn extend(&mut self, more: Vec<CounterFd>) -> Result<(), i32> {
        let ids: Vec<u64> = more.iter().map(CounterFd::id).collect::<Result<_, _>>()?;
        let opened = Arc::get_mut(&mut self.opened).ok_or(libc::EBUSY)?;
        opened.ids.extend(ids);
        opened.fds.extend(more);
        self.words = vec![0; group_words(opened.ids.len())].into();
        Ok(())
    }

    pub(super) fn plan(&self) -> ReadPlan {
        self.opened.plan
    }

    pub(super) fn fds(&self) -> &Fds {
        &self.opened.fds
    }

    pub(super) fn opened(&self) -> &Arc<Opened> {
        &self.opened
    }

    /// Reads every member. `found` takes each by its position, with its value and what `adjusted` makes of its times;
    /// after an error some members may be missing.
    pub(super) fn read(
        &mut self,
        adjusted: impl FnMut(Times) -> Times,
        found: impl FnMut(usize, u64, Times),
    ) -> Result<(), ReadFailure> {
        self.opened.read(&mut self.words, adjusted, found)
    }
}

impl Opened {
    /// Returns the length of the buffer that a read takes.
    pub(super) fn words(&self) -> usize {
        group_words(self.ids.len())
    }

    /// Reads as [`CallReader::read`] does, by way of a buffer of [`words`](Self::words).
    pub(super) fn read(
        &self,
        group: &mut [u64],
        mut adjusted: impl FnMut(Times) -> Times,
        mut found: impl FnMut(usize, u64, Times),
    ) -> Result<(), ReadFailure> {
        if self.plan != ReadPlan::Snapshot {
            let mut words = [0; 3];
            for (member, fd) in self.fds.iter().enumerate() {
                fill(fd, &mut words)?;
                let [value, enabled, running] = words;
                found(member, value, adjusted(Times { enabled, running }));
            }
            return Ok(());
        }
        fill(self.fds.leader(), group)?;
        let &[listed, enabled, running, ref entries @ ..] = &*group else {
            return Err(ReadFailure::Malformed);
        };
        let (entries, _) = entries.as_chunks::<GROUP_ENTRY>();
        if listed != entries.len() as u64 {
            return Err(ReadFailure::Malformed);
        }
        let times = adjusted(Times { enabled, running });
        for (member, (&id, there)) in self.ids.iter().zip(entries).enumerate() {
            // The kernel lists members in the order of opening, as far as it is known.
            let entry = match there[1] == id {
                true => there,
                false => {
                    (entries.iter().find(|entry| entry[1] == id)).ok_or(ReadFailure::Malformed)?
                }
            };
            found(member, entry[0], times);
        }
        Ok(())
    }
}

/// Returns the words of a read of so many members at once.
fn group_words(members: usize) -> usize {
    GROUP_HEADER + GROUP_ENTRY * members
}

/// Fills `words` from a counter, in one system call.
fn fill(fd: &CounterFd, words: &mut [u64]) -> Result<(), ReadFailure> {
    match fd.read(words) {
        Ok(bytes) if bytes == size_of_val(words) => Ok(()),
        Ok(0) => Err(ReadFailure::ErrorState),
        Ok(_) => Err(ReadFailure::Malformed),
        Err(errno) => Err(ReadFailure::Errno(errno)),
    }
}
