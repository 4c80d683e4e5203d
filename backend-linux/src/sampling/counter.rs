//! One sampled counter, and what can be done with it while it is open.

use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use quipu_hal::{Breakpoint, Error, ErrorKind, Reading, Result};

use quipu_perf_data::{ReadFormat, ReadValues};

use super::spec::Rate;
use crate::events::{EventBits, TracedProbe};
use crate::group::CountersOpen;
use crate::sys::{AttrFlags, CounterFd, PerfEventAttr, attr_size, event_type};

/// Words of the longest read: a group of more counters than any machine schedules at once.
const WORDS: usize = 256;

/// A counter of a [`Sampler`](super::Sampler): one event on one thread or CPU.
#[derive(Debug)]
pub struct SampledCounter {
    fd: CounterFd,
    id: u64,
    event: usize,
    /// As it was opened, or would have been without inherit: the tracepoint of a probe does not outlive it.
    attr: PerfEventAttr,
    _open: CountersOpen,
    /// The probes of its sampler, which are removed after the last counter.
    _probes: Arc<[TracedProbe]>,
}

impl SampledCounter {
    pub(super) fn new(
        fd: CounterFd,
        event: usize,
        attr: PerfEventAttr,
        probe: Option<EventBits>,
        probes: &Arc<[TracedProbe]>,
    ) -> Result<Self, i32> {
        let mut attr = PerfEventAttr {
            size: attr_size(),
            ..attr
        };
        if let Some(bits) = probe {
            let PerfEventAttr {
                type_,
                config,
                config2,
                ..
            } = bits.attr();
            (attr.type_, attr.config, attr.config2) = (type_, config, config2);
        }
        Ok(Self {
            id: fd.id()?,
            fd,
            event,
            attr,
            _open: CountersOpen::new(),
            _probes: Arc::clone(probes),
        })
    }

    pub(super) fn fd(&self) -> &CounterFd {
        &self.fd
    }

    /// The id by which records name it ([`Sample::id`](super::Sample::id)).
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The position of its event in the sampler's list.
    pub fn event(&self) -> usize {
        self.event
    }

    /// The `struct perf_event_attr` it was opened with, in memory order: what a `perf.data` file stores.
    pub fn attr_bytes(&self) -> Vec<u8> {
        self.attr.bytes()
    }

    /// Starts it.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn enable(&self) -> Result<()> {
        self.done("start it", self.fd.enable())
    }

    /// Stops it. What it has counted towards the next sample is kept.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn disable(&self) -> Result<()> {
        self.done("stop it", self.fd.disable())
    }

    /// Starts it for this many samples more, after which the kernel stops it
    /// (`PERF_EVENT_IOC_REFRESH`). The last of its [signals](Self::signal_thread) has `POLL_HUP` as
    /// `si_code`. A breakpoint that has run out does not start again on some
    /// kernels (seen on Linux 6.18).
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when the counter is inherited or
    /// does not sample, and for 0 samples, which perf_event_open(2) leaves undefined.
    pub fn refresh(&self, samples: u16) -> Result<()> {
        if samples == 0 {
            let attempted = "let it take 0 samples more";
            return Err(self
                .error(ErrorKind::InvalidConfiguration, attempted)
                .with_reason("the kernel would let it take samples without end"));
        }
        let done = self.fd.refresh(samples.into());
        self.done("let it take some samples more", done)
    }

    /// Changes how often it samples (`PERF_EVENT_IOC_PERIOD`). A period stays a period and a
    /// frequency a frequency. The next event may be sampled at once, and the old period end once
    /// more, before the new one begins.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) for the other kind of rate, for 0,
    /// and for a frequency beyond `kernel.perf_event_max_sample_rate`.
    pub fn set_rate(&self, rate: Rate) -> Result<()> {
        let by_frequency = self.attr.flags.contains(AttrFlags::FREQ);
        let value = match rate {
            Rate::Period(period) if !by_frequency => period,
            Rate::Frequency(frequency) if by_frequency => frequency,
            _ => {
                return Err(self
                    .error(ErrorKind::InvalidConfiguration, "change its rate")
                    .with_reason("it was opened with the other kind of rate"));
            }
        };
        self.done("change its rate", self.fd.set_period(value))
    }

    /// Has a breakpoint watch something else (`PERF_EVENT_IOC_MODIFY_ATTRIBUTES`, Linux 4.17). It
    /// counts afterwards.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when it is no breakpoint, or the CPU
    /// does not take the new one.
    pub fn move_breakpoint(&self, to: Breakpoint) -> Result<()> {
        let attempted = "move the breakpoint";
        if self.attr.type_ != event_type::BREAKPOINT {
            return Err(self
                .error(ErrorKind::InvalidConfiguration, attempted)
                .with_reason("the event is not a breakpoint"));
        }
        let bits = EventBits::breakpoint(to);
        let attr = PerfEventAttr {
            config1: bits.config.config1,
            config2: bits.config.config2,
            bp_type: bits.config.bp_type,
            flags: self.attr.flags - AttrFlags::DISABLED,
            ..self.attr
        };
        self.done(attempted, self.fd.modify_attributes(&attr))
    }

    /// Sends its records to the ring of another counter on the same thread or CPU
    /// (`PERF_EVENT_IOC_SET_OUTPUT`), or with `None` nowhere.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when the other one is on another
    /// thread or CPU or has another clock, or this one's own ring is mapped.
    pub fn set_output(&self, ring: Option<&Self>) -> Result<()> {
        let done = self.fd.set_output(ring.map(Self::fd));
        self.done("send its records elsewhere", done)
    }

    /// Has the kernel send a signal to a thread of this process each time the ring becomes readable,
    /// with the descriptor as `si_fd` and `POLL_IN` or `POLL_HUP` as `si_code` (fcntl(2),
    /// `F_SETOWN_EX`, `F_SETSIG`). Those two are filled in for real-time signals and for any other
    /// than SIGIO.
    ///
    /// # Errors
    /// When there is no such thread or signal.
    pub fn signal_thread(&self, tid: i32, signal: i32) -> Result<()> {
        let done = self.fd.signal_thread(tid, signal);
        self.done("have a signal sent", done)
    }

    /// Has no more signals sent.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn stop_signals(&self) -> Result<()> {
        self.done("have no signal sent", self.fd.stop_signals())
    }

    /// Its value and times, and how many of its samples were lost, where the kernel reports that
    /// ([`ReadFormat::LOST`]).
    ///
    /// # Errors
    /// [`CounterInErrorState`](ErrorKind::CounterInErrorState) when it is pinned and not on the PMU.
    pub fn read(&self) -> Result<(Reading, Option<u64>)> {
        const ATTEMPTED: &str = "read it";
        let mut words = [0; WORDS];
        let len = match self.fd.read(&mut words) {
            Ok(0) => return Err(self.error(ErrorKind::CounterInErrorState, ATTEMPTED)),
            Ok(len) => len / 8,
            Err(errno) => return Err(self.error(ErrorKind::Os, ATTEMPTED).with_errno(errno)),
        };
        let mut bytes = [0; WORDS * 8];
        let (out, _) = bytes.as_chunks_mut();
        for (out, word) in out.iter_mut().zip(&words[..len]) {
            *out = word.to_ne_bytes();
        }
        let values = ReadValues::from_bytes(&bytes[..8 * len], self.attr.read_format);
        let own = values.and_then(|values| {
            let mut counters = values.iter();
            let own = counters.find(|counter| counter.id.is_none_or(|id| id == self.id))?;
            let enabled = values.time_enabled().unwrap_or(0);
            let running = values.time_running().unwrap_or(0);
            Some((Reading::new(own.value, enabled, running), own.lost))
        });
        own.ok_or_else(|| {
            self.error(ErrorKind::Os, ATTEMPTED)
                .with_reason("the kernel wrote something else than was asked for")
        })
    }

    /// Returns the fields of a read.
    pub fn read_format(&self) -> ReadFormat {
        self.attr.read_format
    }

    fn done(&self, attempted: &str, result: Result<(), i32>) -> Result<()> {
        result.map_err(|errno| {
            let kind = match errno {
                libc::EINVAL => ErrorKind::InvalidConfiguration,
                libc::ESRCH => ErrorKind::NoSuchTarget,
                libc::ENOSPC => ErrorKind::Busy,
                _ => ErrorKind::Os,
            };
            self.error(kind, attempted).with_errno(errno)
        })
    }

    fn error(&self, kind: ErrorKind, attempted: &str) -> Error {
        Error::new(kind, format!("{attempted} (a sampled counter)")).with_member(self.event)
    }
}

impl AsFd for SampledCounter {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}
