//! Reading an event set on many threads at once.

use std::fmt;
use std::sync::Arc;

use quipu_hal::{GroupReader, ReadBuf, Result};

use crate::SetEvent;
use crate::counts::{Counts, of_another_set};
use crate::open::OpenGroup;

/// Reads an [`EventSet`](crate::EventSet) by `&self`, on any number of threads at once and without a lock.
///
/// A clone reads the same counters. They stay open and go on as they are when the set is dropped. Counts are those since the
/// last reset before the reader was made; a later reset does not reach it.
///
/// A read takes a system call for each group, and none where counters of the calling thread are read in user space, if the
/// reader was made on that thread and the kernel gives times there (which it does not in most virtual machines).
///
/// ```
/// use std::thread;
///
/// use quipu::{EventSet, Reader};
///
/// let mut set = EventSet::builder().events("{task-clock,page-faults}")?.open()?;
/// set.enable()?;
/// # #[cfg(target_os = "linux")] {
/// let reader: Reader = set.reader()?;
/// thread::scope(|scope| {
///     for _ in 0..2 {
///         scope.spawn(|| {
///             let mut counts = reader.counts();
///             reader.read(&mut counts)?;
///             let [nanoseconds, faults] = counts.values()?;
///             println!("{faults} faults in {nanoseconds} ns");
///             Ok::<(), quipu::Error>(())
///         });
///     }
/// });
/// # }
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Clone)]
pub struct Reader {
    events: Arc<[SetEvent]>,
    groups: Arc<[SharedGroup]>,
}

/// A group of a set: its reader, and the shape of its buffer.
struct SharedGroup {
    reader: Arc<dyn GroupReader>,
    buf: ReadBuf,
}

impl Reader {
    /// Returns a reader of these open groups.
    pub(crate) fn of(events: &Arc<[SetEvent]>, groups: &[OpenGroup]) -> Result<Self> {
        let shared = groups.iter().map(|open| {
            Ok(SharedGroup {
                reader: open.group.reader()?,
                buf: open.group.read_buf(),
            })
        });
        Ok(Self {
            events: Arc::clone(events),
            groups: shared.collect::<Result<_>>()?,
        })
    }

    /// Returns every event of the set, in request order.
    pub fn events(&self) -> &[SetEvent] {
        &self.events
    }

    /// Returns a buffer to read into: one for each thread, to be made once and used again.
    pub fn counts(&self) -> Counts {
        let bufs = self.groups.iter().map(|group| group.buf.clone());
        Counts::new(Arc::clone(&self.events), bufs)
    }

    /// Reads every group as [`EventSet::read`](crate::EventSet::read) does. It allocates nothing unless a group has more than
    /// 16 events or cannot be read.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) if `out` was made by another set.
    pub fn read(&self, out: &mut Counts) -> Result<()> {
        if !out.belongs_to(&self.events) {
            return Err(of_another_set("read an event set"));
        }
        for (shared, counts) in self.groups.iter().zip(out.groups_mut()) {
            counts.error = shared.reader.read(&mut counts.buf).err();
        }
        Ok(())
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}
