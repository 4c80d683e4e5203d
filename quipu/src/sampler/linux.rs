//! Sampling with perf_event_open(2).

use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use quipu_hal::{MaxRate, Result, Target, Woken};
use quipu_linux::LinuxBackend;
use quipu_linux::sampling::{
    self, Context, CpuMode, EventAttr, Periods, Rate, Record, SampleType, SamplerSpec, Wakeup,
};

use super::{Caller, Sample, SampleRate, SamplerBuilder, native_events};
use crate::backends::linux_with;

/// Samples in a second where no rate is set.
const USUAL_FREQUENCY: u64 = 1000;

/// An open sampler.
#[derive(Debug)]
pub(super) struct Open {
    backend: LinuxBackend,
    sampler: sampling::Sampler,
    /// Events by the ids of their counters, in the order of the ids.
    events: Vec<(u64, usize)>,
    callers: Vec<Caller>,
    /// The counters of each event.
    periods: Vec<Periods>,
    jumped: u64,
}

impl Open {
    pub(super) const BACKEND: &str = "linux";

    pub(super) fn new(builder: &SamplerBuilder) -> Result<Self> {
        let rate = match builder.rate {
            Some(SampleRate::Period(period)) => Rate::Period(period),
            Some(SampleRate::Frequency(frequency)) => Rate::Frequency(frequency),
            None => {
                let most = Rate::most_frequent().unwrap_or(USUAL_FREQUENCY);
                Rate::Frequency(most.min(USUAL_FREQUENCY))
            }
        };
        let mut spec = SamplerSpec::new(builder.events.iter().map(|e| (e.clone(), rate)));
        spec.attributes = builder.attributes;
        spec.ring_bytes = builder.room;
        spec.wakeup = builder
            .wake_after
            .map_or(Wakeup::default(), Wakeup::Samples);
        spec.sample_type |= SampleType::IDENTIFIER | SampleType::CPU | SampleType::PERIOD;
        spec.sample_type
            .set(SampleType::CALLCHAIN, builder.call_chains);
        // Counters of several threads have one id.
        spec.sample_type
            .set(SampleType::STREAM_ID, builder.attributes.inherit);
        spec.sample_type.set(SampleType::ADDR, builder.addresses);
        let backend = linux_with(native_events(builder.machine.as_deref()))?;
        let sampler = backend.open_sampler(&spec, &builder.target)?;
        let attr = |event| {
            let mut counters = sampler.counters().iter();
            let counter = counters.find(|counter| counter.event() == event);
            let bytes = counter.map(|counter| counter.attr_bytes());
            EventAttr::from_bytes(&bytes.unwrap_or_default()).ok()
        };
        let periods = (0..builder.events.len())
            .map(|event| attr(event).map_or(Periods::of(MaxRate::NONE), |attr| Periods::new(&attr)))
            .collect();
        Ok(Self {
            events: events_by_id(&sampler),
            backend,
            sampler,
            callers: Vec::new(),
            periods,
            jumped: 0,
        })
    }

    pub(super) fn attach(&mut self, target: &Target) -> Result<()> {
        self.backend.attach_sampler(&mut self.sampler, target)?;
        self.events = events_by_id(&self.sampler);
        Ok(())
    }

    pub(super) fn enable(&mut self) -> Result<()> {
        self.sampler.enable()
    }

    pub(super) fn disable(&mut self) -> Result<()> {
        self.sampler.disable()
    }

    pub(super) fn drain(&mut self, mut each: impl FnMut(&Sample<'_>)) -> Result<()> {
        let layout = *self.sampler.layout();
        for ring in self.sampler.rings_mut() {
            for record in &mut ring.records() {
                let Record::Sample(sample) = record?.decode(&layout)? else {
                    continue;
                };
                let own_mode = sample.misc().cpu_mode() == CpuMode::Kernel;
                self.callers.clear();
                let frames = sample.callchain().into_iter().flat_map(|c| c.frames());
                // The first one is the instruction itself.
                self.callers.extend(frames.skip(1).map(|frame| Caller {
                    return_address: frame.address,
                    in_kernel: match frame.context {
                        Context::Unknown => own_mode,
                        context => context == Context::Kernel,
                    },
                }));
                let id = sample.id().unwrap_or(0);
                let event = self.events.binary_search_by_key(&id, |(id, _)| *id);
                let event = event.map_or(0, |at| self.events[at].1);
                let excess = self.periods[event].check_sample(&sample);
                let jumped = excess.is_some_and(|excess| excess.is_beyond(0));
                self.jumped += u64::from(jumped);
                let thread = sample.thread();
                each(&Sample {
                    event,
                    ip: sample.ip().unwrap_or(0),
                    in_kernel: own_mode,
                    pid: thread.map_or(-1, |thread| thread.pid),
                    tid: thread.map_or(-1, |thread| thread.tid),
                    cpu: sample.cpu().unwrap_or(0),
                    time: sample.time().unwrap_or(0),
                    period: if jumped {
                        0
                    } else {
                        sample.period().unwrap_or(1)
                    },
                    address: sample.addr(),
                    callers: &self.callers,
                });
            }
        }
        Ok(())
    }

    pub(super) fn wait_any(open: &mut [&mut Self], timeout: Option<Duration>) -> Result<Woken> {
        let mut samplers: Vec<_> = open.iter_mut().map(|open| &mut open.sampler).collect();
        sampling::Sampler::wait_any(&mut samplers, timeout)
    }

    pub(super) fn jumped(&self) -> u64 {
        self.jumped
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.sampler.rings().iter().map(AsFd::as_fd)
    }

    pub(super) fn lost(&self) -> u64 {
        let said = self.sampler.rings().iter().map(|ring| {
            let losses = ring.losses();
            losses.records + losses.samples
        });
        // The counters themselves know better where the kernel tells (Linux 6.0).
        let counted = self.sampler.counters().iter();
        let counted: Option<u64> = counted.map(|counter| counter.read().ok()?.1).sum();
        said.sum::<u64>().max(counted.unwrap_or(0))
    }
}

/// Returns the events by the ids of their counters, in the order of the ids.
fn events_by_id(sampler: &sampling::Sampler) -> Vec<(u64, usize)> {
    let counters = sampler.counters().iter();
    let mut events: Vec<_> = counters.map(|c| (c.id(), c.event())).collect();
    events.sort_unstable();
    events
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use crate::Sampler;

    /// Page faults that may occur once a second at most: the time between two tells whether they jumped.
    #[test]
    fn a_period_beyond_the_bound_is_no_period_and_is_counted() {
        const PAGES: usize = 100;
        let mut builder = Sampler::builder();
        builder.events("page-faults:u").expect("an event");
        let mut open = match Open::new(builder.rate(SampleRate::Period(1))) {
            Ok(open) => open,
            Err(why) => {
                let _ = writeln!(std::io::stderr(), "SKIP a period beyond the bound: {why:#}");
                return;
            }
        };
        open.periods = vec![Periods::of(MaxRate::per_second(1))];
        open.enable().expect("it is open");
        // No page is larger on Linux.
        let mut memory = vec![0u8; PAGES << 16];
        for byte in memory.iter_mut().step_by(1 << 16) {
            *byte = 1;
        }
        open.disable().expect("it is open");
        std::hint::black_box(memory);
        let (mut last, mut jumped, mut samples) = (0, 0, 0);
        open.drain(|sample| {
            let is_beyond = 1_000_000_000 > sample.time - last + MaxRate::LAG;
            assert_eq!(sample.period, u64::from(!is_beyond));
            jumped += u64::from(is_beyond);
            samples += 1;
            last = sample.time;
        })
        .expect("records");
        assert!(samples > 1, "{samples}");
        let sampler = Sampler { open };
        assert_eq!((sampler.jumped(), sampler.lost()), (jumped, 0));
    }
}
