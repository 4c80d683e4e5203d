//! Ring buffers: the memory that the kernel writes records into (perf_event_open(2), "MMAP layout").

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use quipu_hal::{Error, ErrorKind, Part, Result};

use super::aux_area::AuxArea;
use super::batch::{Batch, Memory, whole_pages};
use super::counter::SampledCounter;
use super::notices::{Losses, Notices, Throttled};
use super::spec::WhenFull;
use crate::sys::{Access, Mapping, page_size};

/// The ring of one part of a sampled target: of a thread, or of a CPU.
///
/// The descriptor it lends ([`AsFd`]) becomes readable when as much has been written as the sampler
/// was to wait for, and is for poll(2) and epoll(7) only.
///
/// ```no_run
/// # use quipu_linux::sampling::{RecordLayout, Ring};
/// # fn drain(ring: &mut Ring, layout: &RecordLayout) -> quipu_hal::Result<()> {
/// for record in &mut ring.records() {
///     println!("{:?}", record?.decode(layout)?);
/// }
/// println!("{}: {} records lost", ring.part(), ring.losses().records);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Ring {
    part: Part,
    memory: Memory,
    notices: Notices,
    aux: Option<AuxArea>,
    /// Dropped after the memory, which keeps its counter open in the kernel.
    counter: Arc<SampledCounter>,
}

impl Ring {
    /// Maps the ring of a counter: one page that says what is where, and room for at least `bytes`
    /// of records.
    pub(super) fn map(
        part: Part,
        counter: Arc<SampledCounter>,
        bytes: usize,
        when_full: WhenFull,
    ) -> Result<Self, i32> {
        let access = match when_full {
            WhenFull::Lose => Access::ReadWrite,
            WhenFull::Overwrite => Access::Read,
        };
        let data = whole_pages(bytes).ok_or(libc::EINVAL)?;
        let len = data.checked_add(page_size()).ok_or(libc::EINVAL)?;
        let mapping = Mapping::new(counter.fd(), 0, len, access)?;
        Ok(Self {
            part,
            counter,
            memory: Memory::new(mapping, when_full),
            notices: Notices::new(),
            aux: None,
        })
    }

    /// Returns the part of the target that is recorded here: one CPU, or one thread.
    pub fn part(&self) -> &Part {
        &self.part
    }

    /// The counter whose ring it is. Others may write into it too.
    pub fn counter(&self) -> &SampledCounter {
        &self.counter
    }

    /// Returns its capacity in bytes of records.
    pub fn capacity(&self) -> usize {
        self.memory.capacity()
    }

    /// Returns the losses that the records read so far report. At the end of a measurement there may
    /// have been no room to report them; the counters themselves know ([`SampledCounter::read`]).
    pub fn losses(&self) -> Losses {
        self.notices.losses
    }

    /// Returns how the counter of an id ([`SampledCounter::id`]) was throttled, by the records read so far;
    /// with those that have inherited it.
    pub fn throttled(&self, id: u64) -> Throttled {
        self.notices.throttled(id)
    }

    /// Stops the ring from taking records, or lets it go on; what comes meanwhile is lost, and
    /// counted as lost.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn pause(&self, pause: bool) -> Result<()> {
        let done = self.counter.fd().pause_output(pause);
        done.map_err(|errno| {
            let what = if pause { "pause" } else { "resume" };
            Error::new(ErrorKind::Os, format!("{what} the ring")).with_errno(errno)
        })
    }

    /// The records that there are now. Those that have been looked at are given back to the kernel
    /// when the batch is dropped.
    ///
    /// A ring that overwrites is copied instead, the newest record first, and holds the same records
    /// the next time; [pause](Self::pause) it for a copy that is of one moment.
    ///
    /// Allocates nothing.
    pub fn records(&mut self) -> Batch<'_> {
        self.memory.records(&mut self.notices)
    }

    /// Maps an AUX area of at least this many bytes; `when_full` as for records.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) when the event's PMU has none;
    /// [`NoPermission`](ErrorKind::NoPermission) when it would be too much locked memory;
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when there is one already, or the
    /// kernel cannot do it so.
    pub fn map_aux(&mut self, bytes: usize, when_full: WhenFull) -> Result<()> {
        let area = AuxArea::map(self.memory.mapping(), self.counter.fd(), bytes, when_full)?;
        self.aux = Some(area);
        Ok(())
    }

    /// Returns the size of the AUX area in bytes; 0 when there is none.
    pub fn aux_capacity(&self) -> usize {
        self.aux.as_ref().map_or(0, AuxArea::capacity)
    }

    /// Shows `read` the bytes in the AUX area that have not been consumed, in two pieces that follow
    /// one another. It answers how many it has consumed. Of an area that overwrites, nothing.
    pub fn read_aux(&mut self, read: impl FnOnce(&[u8], &[u8]) -> usize) {
        match &mut self.aux {
            Some(area) => area.read(self.memory.mapping(), read),
            None => {
                read(&[], &[]);
            }
        }
    }

    /// Appends a copy of the whole AUX area, the oldest byte first: what an area that overwrites
    /// holds. Stop the counter first.
    pub fn copy_aux(&self, out: &mut Vec<u8>) {
        if let Some(area) = &self.aux {
            area.copy(self.memory.mapping(), out);
        }
    }
}

impl AsFd for Ring {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.counter.as_fd()
    }
}
