//! Counters of a group that send signals for their overflows, and the rings that say where these were.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::unistd::gettid;
use quipu_hal::{Error, ErrorKind, EventSpec, GroupSpec, OverflowSignal, Overflows, Result};
use quipu_perf_data::SampleType;

use crate::sys::{Access, CounterFd, Mapping, PerfEventAttr, page_size};

/// Offsets in the first page (`struct perf_event_mmap_page`, `include/uapi/linux/perf_event.h`).
const DATA_HEAD: usize = 1024;
const DATA_TAIL: usize = 1032;
/// The pages of records: room for a thousand on the smallest pages.
const PAGES: usize = 4;
/// The type of a record that is a sample (`PERF_RECORD_SAMPLE`).
const SAMPLE: u32 = 9;
/// The bytes of the header of a record, before the address.
const HEADER: u64 = 8;

/// Refuses signals that the kernel could not send, or would send to others.
pub(crate) fn check(spec: &GroupSpec, of_calling_thread: bool) -> Result<()> {
    for (member, event) in spec.members.iter().enumerate() {
        let Some(overflow) = event.overflow else {
            continue;
        };
        let refused = |kind, reason| {
            let attempted = format!("have a signal sent for overflows of {event}");
            Err(Error::new(kind, attempted)
                .with_reason(reason)
                .with_member(member))
        };
        if overflow.period == 0 || overflow.period > i64::MAX as u64 {
            return refused(
                ErrorKind::InvalidConfiguration,
                "the period is not between 1 and 2^63 - 1",
            );
        }
        if !of_calling_thread || spec.attributes.inherit {
            return refused(
                ErrorKind::UnsupportedFeature,
                "only the calling thread alone, without its children, gets signals for overflows",
            );
        }
    }
    Ok(())
}

/// Returns true if a member of a group sends signals.
pub(crate) fn is_asked_for(spec: &GroupSpec) -> bool {
    spec.members.iter().any(|event| event.overflow.is_some())
}

/// Has a counter that is to be opened overflow.
pub(crate) fn request(attr: &mut PerfEventAttr, event: &EventSpec) {
    if let Some(overflow) = event.overflow {
        attr.sample_period = overflow.period;
        attr.sample_type = SampleType::IP.bits();
        attr.wakeup_events = 1;
    }
}

/// The ring of an overflowing counter.
pub(crate) struct OverflowRing {
    fd: CounterFd,
    /// The leader of the group, unless that is the counter itself.
    leader: Option<CounterFd>,
    mapping: Mapping,
    period: u64,
    /// True if the kernel is to stop it at each overflow until it is resumed.
    is_refreshed: bool,
    /// True if the kernel stops it at its next overflow: it was asked to, and has not overflowed since.
    stops: AtomicBool,
}

impl fmt::Debug for OverflowRing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OverflowRing")
            .field("period", &self.period)
            .finish_non_exhaustive()
    }
}

/// A ring that others than its group may hold.
pub(crate) type SharedRing = Arc<OverflowRing>;

/// Returns a ring for another holder.
pub(crate) fn shared(ring: &SharedRing) -> Arc<dyn Overflows> {
    Arc::<OverflowRing>::clone(ring)
}

impl OverflowRing {
    /// Maps the ring of a counter and has signals sent to the calling thread. The kernel counts events of software
    /// (`live`) while they happen, several of them in one system call if need be, and none is left out: such a counter goes
    /// on after an overflow.
    pub(crate) fn new(
        counter: &CounterFd,
        leader: Option<&CounterFd>,
        asked: OverflowSignal,
        live: bool,
    ) -> Result<Self> {
        let refused = |errno| {
            let attempted = "have a signal sent for overflows";
            Error::new(ErrorKind::Os, attempted).with_errno(errno)
        };
        // The signal names the descriptor that it was asked for with: that of the group may be closed first.
        let fd = counter.duplicate().map_err(refused)?;
        let leader = leader
            .map(CounterFd::duplicate)
            .transpose()
            .map_err(refused)?;
        let len = (1 + PAGES) * page_size();
        let mapping = Mapping::new(&fd, 0, len, Access::ReadWrite).map_err(|errno| {
            let error = refused(errno);
            match errno {
                libc::EPERM => error
                    .with_reason("the user's limit of locked memory is reached")
                    .with_hint("raise kernel.perf_event_mlock_kb or ulimit -l"),
                _ => error,
            }
        })?;
        let tid = gettid().as_raw();
        fd.signal_thread(tid, asked.signal).map_err(refused)?;
        Ok(Self {
            fd,
            leader,
            mapping,
            period: asked.period,
            is_refreshed: !live,
            stops: AtomicBool::new(false),
        })
    }

    /// Starts the counter. From the first overflow on it is stopped by the kernel, if at all: one of a short period would
    /// else queue signals faster than a handler takes them.
    pub(crate) fn enable(&self) -> Result<(), i32> {
        if !self.is_refreshed || self.stops.swap(true, Ordering::Relaxed) {
            return self.fd.enable();
        }
        // The kernel adds to what is left, which is nothing.
        let asked = self.fd.refresh(1);
        if asked.is_err() {
            self.stops.store(false, Ordering::Relaxed);
        }
        asked
    }

    /// Loads the word of the ring at a position.
    fn word(&self, position: u64) -> u64 {
        let size = self.mapping.len() - page_size();
        let place = (position & (size as u64 - 1)) as usize & !7;
        self.mapping.load_relaxed(page_size() + place)
    }
}

impl Overflows for OverflowRing {
    fn descriptor(&self) -> i32 {
        self.fd.raw()
    }

    fn take(&self) -> Option<u64> {
        if !self.mapping.is_here() {
            return None;
        }
        loop {
            let tail = self.mapping.load_relaxed(DATA_TAIL);
            let head = self.mapping.load(DATA_HEAD);
            if tail == head {
                return None;
            }
            let header = self.word(tail).to_ne_bytes();
            let [k0, k1, k2, k3, _, _, s0, s1] = header;
            let size = u64::from(u16::from_ne_bytes([s0, s1]));
            let address = self.word(tail.wrapping_add(HEADER));
            // What is no record is given up, with all that follows it.
            let next = match size {
                0 => head,
                size => tail.wrapping_add(size),
            };
            // The kernel leaves the record alone until the tail is moved, and who moves it has read it.
            let moved = self.mapping.exchange(DATA_TAIL, tail, next);
            let is_sample = u32::from_ne_bytes([k0, k1, k2, k3]) == SAMPLE && size > HEADER;
            if moved && is_sample {
                self.stops.store(false, Ordering::Relaxed);
                return Some(address);
            }
        }
    }

    fn pause(&self) -> Result<(), i32> {
        self.fd.disable()
    }

    fn resume(&self) -> Result<(), i32> {
        self.enable()?;
        // A member that is started under a leader that counts stays off the PMU until the next context switch (seen on
        // 6.18): it gets there with the leader.
        match &self.leader {
            Some(leader) => leader.disable().and_then(|()| leader.enable()),
            None => Ok(()),
        }
    }

    fn restart(&self) -> Result<()> {
        if self.mapping.is_here() {
            let head = self.mapping.load(DATA_HEAD);
            if head != self.mapping.load_relaxed(DATA_TAIL) {
                self.stops.store(false, Ordering::Relaxed);
            }
            self.mapping.store(DATA_TAIL, head);
        }
        self.fd.set_period(self.period).map_err(|errno| {
            Error::new(ErrorKind::Os, "begin a period of overflows").with_errno(errno)
        })
    }
}
