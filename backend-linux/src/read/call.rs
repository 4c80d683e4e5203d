//! Reading counters by read(2) (perf_event_open(2), "Reading results").

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

/// The counters of a kernel group, and the buffer that the kernel writes to.
#[derive(Debug)]
pub(super) struct CallReader {
    plan: ReadPlan,
    fds: Fds,
    /// The ids by which a read of the leader names the members; none where each is read by itself.
    ids: Vec<u64>,
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
            words: group_words(&ids),
            plan,
            fds,
            ids,
        }
    }

    /// Adds counters that were opened under the leader, which reads all of them.
    ///
    /// # Errors
    /// As [`new`](Self::new); nothing is added then.
    pub(super) fn extend(&mut self, more: Vec<CounterFd>) -> Result<(), i32> {
        let ids: Vec<u64> = more.iter().map(CounterFd::id).collect::<Result<_, _>>()?;
        self.ids.extend(ids);
        self.fds.extend(more);
        self.words = group_words(&self.ids);
        Ok(())
    }

    pub(super) fn plan(&self) -> ReadPlan {
        self.plan
    }

    pub(super) fn fds(&self) -> &Fds {
        &self.fds
    }

    /// Reads every member. `found` takes each by its position, with its value and what `adjusted` makes of its times;
    /// after an error some members may be missing.
    pub(super) fn read(
        &mut self,
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
        fill(self.fds.leader(), &mut self.words)?;
        let &[listed, enabled, running, ref entries @ ..] = &*self.words else {
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

/// Returns a buffer for a read of members with these ids at once.
fn group_words(ids: &[u64]) -> Box<[u64]> {
    vec![0; GROUP_HEADER + GROUP_ENTRY * ids.len()].into()
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
