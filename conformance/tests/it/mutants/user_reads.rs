//! Reads in user space that are not what the system counts.

use std::sync::{Arc, OnceLock};
use std::thread::{self, ThreadId};

use quipu_conformance::fixtures::{Altered, SimFixture};
use quipu_hal::{
    Backend, Capabilities, Features, Group, GroupSpec, ReadBuf, Result, Target, TargetKinds,
};
use quipu_pmu::SimPmu;

use super::tamper::{Defect, Mutant, TamperedBackend};

/// The number of the simulated event that is counted on any slot.
const STEADY: u32 = 1;

pub(crate) fn mutants() -> Vec<Mutant> {
    let falsified = |falsify: fn(&mut ReadBuf, &ReadBuf)| Flaws {
        falsify,
        ..Flaws::NONE
    };
    vec![
        mutant(
            "user-reads-too-high",
            "values in user space are one too high",
            falsified(|now, _| {
                for reading in &mut now[0] {
                    reading.value += 1;
                }
            }),
        ),
        mutant(
            "user-reads-stale",
            "values in user space are those of the read before",
            falsified(Clone::clone_from),
        ),
        mutant(
            "user-reads-reversed",
            "members in user space come in the wrong order",
            falsified(|now, _| {
                for (i, reading) in now[0].iter_mut().rev().enumerate() {
                    reading.value += i as u64;
                }
            }),
        ),
        mutant(
            "user-reads-ignore-reset",
            "times in user space go on over a reset",
            falsified(|now, _| {
                for reading in &mut now[0] {
                    reading.time_enabled = reading.raw_time_enabled;
                    reading.time_running = reading.raw_time_running;
                }
            }),
        ),
        mutant(
            "user-reads-while-stopped",
            "a stopped group is read in user space",
            Flaws {
                while_stopped: true,
                ..Flaws::NONE
            },
        ),
        mutant(
            "user-reads-on-any-thread",
            "a thread's counters are read in user space on any thread",
            Flaws {
                on_any_thread: true,
                ..Flaws::NONE
            },
        ),
        mutant(
            "user-reads-of-inherited",
            "an inherited group is read in user space",
            Flaws {
                of_inherited: true,
                ..Flaws::NONE
            },
        ),
    ]
}

/// Nothing wrong: what the mutants are made of.
pub(crate) fn proper() -> Mutant {
    mutant("user-reads", "nothing is wrong", Flaws::NONE)
}

#[derive(Clone, Copy)]
struct Flaws {
    /// Makes the result of a read in user space from the true one and the one before.
    falsify: fn(&mut ReadBuf, &ReadBuf),
    while_stopped: bool,
    on_any_thread: bool,
    of_inherited: bool,
}

impl Flaws {
    const NONE: Self = Self {
        falsify: |_, _| {},
        while_stopped: false,
        on_any_thread: false,
        of_inherited: false,
    };
}

fn mutant(name: &'static str, defect: &'static str, flaws: Flaws) -> Mutant {
    Mutant::of_parts(name, defect, move || {
        let pmu = Arc::new(OnceLock::new());
        let simulated = Arc::clone(&pmu);
        SimFixture::altered(Altered {
            driver: move |pmu: SimPmu| simulated.get_or_init(|| pmu).clone(),
            map: |map| map,
            backend: move |inner: Box<dyn Backend>| -> Box<dyn Backend> {
                Box::new(TamperedBackend::new(
                    inner,
                    InUserSpace {
                        flaws,
                        pmu,
                        stopped: false,
                        owner: None,
                        before: None,
                    },
                ))
            },
        })
    })
}

/// Reads in user space over the simulated PMU. An event occurs at each of them, as it does when the
/// reader is what is counted.
#[derive(Clone)]
struct InUserSpace {
    flaws: Flaws,
    pmu: Arc<OnceLock<SimPmu>>,
    stopped: bool,
    /// The thread that started it.
    owner: Option<ThreadId>,
    /// The result of the last read in user space.
    before: Option<ReadBuf>,
}

impl InUserSpace {
    fn is_elsewhere(&self) -> bool {
        self.owner
            .is_some_and(|owner| owner != thread::current().id())
    }

    fn occur(&self) {
        if let Some(pmu) = self.pmu.get() {
            pmu.happen(STEADY, 0, 1, 0);
        }
    }
}

impl Defect for InUserSpace {
    const USER_READS: bool = true;

    fn capabilities(&self, mut capabilities: Capabilities) -> Capabilities {
        capabilities.features |= Features::USER_READS;
        if self.flaws.of_inherited {
            capabilities.features |= Features::INHERIT;
            capabilities.targets |= TargetKinds::CURRENT_THREAD;
        }
        capabilities
    }

    fn open(
        &self,
        inner: &dyn Backend,
        spec: &GroupSpec,
        target: &Target,
    ) -> Result<Box<dyn Group>> {
        let mut spec = spec.clone();
        spec.attributes.inherit &= !self.flaws.of_inherited;
        inner.open(&spec, target)
    }

    fn enable(&mut self, group: &mut dyn Group) -> Result<()> {
        self.stopped = false;
        self.owner = Some(thread::current().id());
        group.enable()
    }

    fn disable(&mut self, group: &mut dyn Group) -> Result<()> {
        self.stopped = true;
        group.disable()
    }

    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        if self.before.is_some() && !self.is_elsewhere() {
            self.occur();
        }
        group.read(out)
    }

    fn read_in_user_space(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<bool> {
        if self.stopped && !self.flaws.while_stopped
            || self.is_elsewhere() && !self.flaws.on_any_thread
        {
            return Ok(false);
        }
        self.occur();
        group.read(out)?;
        let seen = out.clone();
        (self.flaws.falsify)(out, self.before.as_ref().unwrap_or(&seen));
        self.before = Some(seen);
        Ok(true)
    }
}
