//! Sampling with hwpmc(4).

use std::fmt;
use std::iter;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use quipu_hal::{Error, ErrorKind, Result, Target, Woken};
use quipu_hwpmc::{Hwpmc, HwpmcBackend, HwpmcSampler, SamplerSpec};

use super::{Caller, Sample, SampleRate, SamplerBuilder, native_events};
use crate::backends::hwpmc_with;

/// The events between two samples where no rate is set.
const USUAL_PERIOD: u64 = 1_000_003;

/// The bytes of a sample without callers, by which room is counted.
const SAMPLE_BYTES: usize = 40;

/// An open sampler.
pub(super) struct Open {
    backend: HwpmcBackend<Hwpmc>,
    sampler: HwpmcSampler<Hwpmc>,
    callers: Vec<Caller>,
}

impl Open {
    pub(super) const BACKEND: &str = "hwpmc";

    pub(super) fn new(builder: &SamplerBuilder) -> Result<Self> {
        let refused =
            |reason| Error::new(ErrorKind::UnsupportedFeature, "sample").with_reason(reason);
        let period = match builder.rate {
            Some(SampleRate::Period(period)) => period,
            Some(SampleRate::Frequency(_)) => {
                return Err(refused(
                    "hwpmc(4) takes a sample every so many events, and not so many in a second",
                )
                .with_hint("set a period"));
            }
            None => USUAL_PERIOD,
        };
        if builder.addresses {
            return Err(refused("hwpmc(4) does not report the addresses of data"));
        }
        let mut spec = SamplerSpec::new(builder.events.iter().map(|event| (event.clone(), period)));
        spec.attributes = builder.attributes;
        spec.call_chains = builder.call_chains;
        spec.wake_after = match builder.wake_after {
            Some(samples) => samples.max(1) as usize,
            None => (builder.room / 2 / SAMPLE_BYTES).max(1),
        };
        let backend = hwpmc_with(native_events(builder.machine.as_deref()))?;
        let sampler = backend.open_sampler(&spec, &builder.target)?;
        Ok(Self {
            backend,
            sampler,
            callers: Vec::new(),
        })
    }

    pub(super) fn attach(&mut self, target: &Target) -> Result<()> {
        self.backend.attach_sampler(&mut self.sampler, target)
    }

    pub(super) fn enable(&mut self) -> Result<()> {
        self.sampler.enable()
    }

    pub(super) fn disable(&mut self) -> Result<()> {
        self.sampler.disable()
    }

    pub(super) fn drain(&mut self, mut each: impl FnMut(&Sample<'_>)) -> Result<()> {
        let callers = &mut self.callers;
        self.sampler.drain(|sample| {
            let (ip, returns) = match sample.addresses {
                [ip, returns @ ..] => (*ip, returns),
                [] => (0, &[][..]),
            };
            callers.clear();
            callers.extend(returns.iter().map(|&return_address| Caller {
                return_address,
                in_kernel: sample.in_kernel,
            }));
            each(&Sample {
                event: sample.event,
                ip,
                in_kernel: sample.in_kernel,
                pid: sample.pid,
                tid: sample.tid,
                cpu: sample.cpu,
                time: sample.time,
                period: sample.period,
                address: None,
                callers,
            });
        })
    }

    pub(super) fn wait_any(open: &mut [&mut Self], timeout: Option<Duration>) -> Result<Woken> {
        // A process has one log, and with it one sampler.
        match open {
            [] => Ok(Woken::Ended),
            [open, ..] => open.sampler.wait(timeout),
        }
    }

    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        iter::once(self.sampler.descriptor())
    }

    /// Returns 0: a sample stands for its period, whatever the counter says.
    pub(super) fn jumped(&self) -> u64 {
        0
    }

    pub(super) fn lost(&self) -> u64 {
        self.sampler.lost()
    }
}

impl fmt::Debug for Open {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Open")
            .field("sampler", &self.sampler)
            .finish_non_exhaustive()
    }
}
