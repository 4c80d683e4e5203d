//! Opening a sampler: the requests that it accepts, and the reasons for refusing others.

use std::sync::Arc;

use quipu_hal::{Error, ErrorKind, Result, Target, X86Select};

use super::SamplerSpec;
use super::log::Log;
use super::sampler::{HwpmcSampler, Process};
use crate::abi::{CAP_INTERRUPT, Class};
use crate::backend::{HwpmcBackend, Place, refused_attribute, with_children};
use crate::driver::{Driver, Sampling};
use crate::events::Countable;
use crate::group::Counters;

/// The least period: the driver takes it for lesser ones.
const LEAST: u64 = 1000;
/// The largest: what any counter can be set to, as those of 32 bits extend their sign.
const LARGEST: u64 = (1 << 31) - 1;

impl<D: Driver> HwpmcBackend<D> {
    /// Opens a sampler of a process that is not this one, or of CPUs.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) for a period that the driver does not take,
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) for this process, [`Busy`](ErrorKind::Busy) if a sampler of this
    /// process is open; else as [`Backend::open`](quipu_hal::Backend::open).
    pub fn open_sampler(&self, spec: &SamplerSpec, target: &Target) -> Result<HwpmcSampler<D>> {
        let attempted = || format!("sample {target}");
        let refused = |kind, reason: String| Error::new(kind, attempted()).with_reason(reason);
        if spec.events.is_empty() {
            return Err(refused(
                ErrorKind::InvalidConfiguration,
                "there are no events".to_owned(),
            ));
        }
        if let Some(reason) = refused_attribute(&spec.attributes) {
            return Err(refused(ErrorKind::UnsupportedFeature, reason.to_owned()));
        }
        let mut members = Vec::with_capacity(spec.events.len());
        for (index, (event, period)) in spec.events.iter().enumerate() {
            if !(LEAST..=LARGEST).contains(period) {
                let reason = format!(
                    "hwpmc(4) takes a sample every {LEAST} to {LARGEST} events, and not every {period}"
                );
                return Err(
                    Error::new(ErrorKind::InvalidConfiguration, format!("sample {event}"))
                        .with_reason(reason)
                        .with_member(index),
                );
            }
            let mut member = self
                .resolve(event)
                .map_err(|error| error.with_member(index))?;
            interrupt(&mut member, *period, spec.call_chains);
            members.push(member);
        }
        let place = self
            .place(target, &spec.attributes)
            .map_err(|(kind, reason)| refused(kind, reason))?;
        let (cpus, pid) = match place {
            Place::Process { pid, .. } => {
                self.check_is_another(pid, target)?;
                if spec.attributes.enable_on_exec {
                    self.wait_until_asleep(pid);
                }
                (vec![None], Some(pid))
            }
            Place::Cpus(cpus) => (cpus.into_iter().map(Some).collect(), None),
        };
        let with_children = with_children(&spec.attributes);
        let mut counters = Counters::new(Arc::clone(self.shared_driver()));
        for cpu in cpus {
            for (index, member) in members.iter().enumerate() {
                let asked = &spec.events[index].0;
                self.take_counter(&mut counters, &member.requests, (cpu, pid), with_children)
                    .map_err(|errno| self.not_taken(errno, asked, target, &members[..=index]))?;
            }
        }
        let mut sampler = HwpmcSampler {
            log: Log::open(Arc::clone(self.shared_driver()))?,
            counters,
            selects: members.iter().map(Countable::select).collect(),
            infos: members.into_iter().map(|member| member.info).collect(),
            periods: spec.events.iter().map(|(_, period)| *period).collect(),
            wake_after: spec.wake_after,
            processes: pid.map(|pid| vec![Process { pid, started: None }]),
            with_children,
            addresses: Vec::new(),
        };
        if !spec.attributes.disabled || spec.attributes.enable_on_exec {
            sampler.enable()?;
        }
        Ok(sampler)
    }

    /// Samples a further process, which starts when the sampler is enabled, or at once if it is.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) unless both are processes, and this one is not; else when the
    /// driver refuses.
    pub fn attach_sampler(&self, sampler: &mut HwpmcSampler<D>, target: &Target) -> Result<()> {
        let (Some(_), Target::Process(pid) | Target::Thread(pid)) = (&sampler.processes, target)
        else {
            return Err(Error::new(
                ErrorKind::UnsupportedFeature,
                format!("sample {target} too"),
            )
            .with_reason("hwpmc(4) adds processes to those that it samples, and nothing else"));
        };
        self.check_is_another(*pid, target)?;
        for &id in sampler.counters.ids() {
            let attached = self.driver().attach(id, *pid);
            attached.map_err(|errno| self.refusal(errno, &sampler.infos[0].name, target))?;
        }
        let process = Process {
            pid: *pid,
            started: None,
        };
        sampler.processes.get_or_insert_default().push(process);
        Ok(())
    }

    /// Refuses this process, whose samples the driver gives to profil(2) alone.
    fn check_is_another(&self, pid: i32, target: &Target) -> Result<()> {
        if pid != self.driver().own_pid() {
            return Ok(());
        }
        Err(
            Error::new(ErrorKind::UnsupportedFeature, format!("sample {target}"))
                .with_reason("hwpmc(4) gives a process no samples of itself")
                .with_hint("sample it from another process, or CPUs as root"),
        )
    }
}

/// Has the requests of an event interrupt.
fn interrupt(member: &mut Countable, period: u64, call_chains: bool) {
    for request in &mut member.requests {
        request.capabilities |= CAP_INTERRUPT;
        if request.class != Class::SOFTWARE {
            request.select |= X86Select::INTERRUPT as u32;
        }
        request.sampling = Some(Sampling {
            period,
            call_chains,
        });
    }
}
