//! Drivers and event maps that are wrong, and what is not given back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use quipu_conformance::fixtures::{Altered, SimFixture};
use quipu_hal::{
    Backend, CpuModel, Encoding, Error, ErrorKind, Event, EventMap, Filter, Group, GroupSpec,
    ResolvedEvent, Result, Simultaneity, SlotClass, SlotSet, Target,
};
use quipu_pmu::{Access, InUse, Pmu, SimPmu, SimRegister, Slot};

use super::tamper::{Defect, Mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        driver(
            "wrap-lost",
            "counters are said to be wider than they are",
            |driver| {
                driver.width = Some(48);
            },
        ),
        driver(
            "stop-forgets",
            "counters stop at the value they started from",
            |driver| {
                driver.stop_forgets = true;
            },
        ),
        driver(
            "leftovers-counted",
            "counters are not cleared, and start at 0 all the same",
            |driver| {
                driver.leftovers = true;
            },
        ),
        driver(
            "device-not-taken",
            "the device is used without taking it",
            |driver| {
                driver.take = false;
            },
        ),
        driver(
            "found-set-shunned",
            "counters that were found set are left to others, though they may be used",
            |driver| {
                driver.shun_found = true;
            },
        ),
        driver("device-kept", "the device is never given back", |driver| {
            driver.give_back = false;
        }),
        driver(
            "registers-cleared",
            "registers are cleared instead of put back",
            |driver| {
                driver.put_back = false;
            },
        ),
        driver(
            "written-value-counted",
            "a counter that went back, because another program wrote it, is read as if it had gone on",
            |driver| {
                driver.goes_on = Some(Default::default());
            },
        ),
        driver(
            "looks-missing",
            "counters are looked at when they are read, however long that takes",
            |driver| {
                driver.looks = false;
            },
        ),
        driver(
            "interference-hidden",
            "registers that another program changed are read as if unchanged",
            |driver| {
                driver.swallow = |e| e.kind() == ErrorKind::Interference;
            },
        ),
        driver(
            "errors-swallowed",
            "errors of the device are taken for success",
            |driver| {
                driver.swallow = |e| e.kind() == ErrorKind::Os;
            },
        ),
        driver(
            "errno-lost",
            "errors of the device lose their number",
            |driver| {
                driver.keep_errno = false;
            },
        ),
        map(
            "constraint-ignored",
            "every event may go on every slot",
            |event| {
                event.slots = SlotSet::ANY_GENERAL;
            },
        ),
        map(
            "no-backtracking",
            "an event that may go on some slots is put on the first",
            |event| {
                let first = (0..4).find(|&n| event.slots.contains(SlotClass::General, n));
                if event.slots != SlotSet::ANY_GENERAL {
                    event.slots = SlotSet::general(1 << first.unwrap_or_default());
                }
            },
        ),
        map("unhurried", "no event is known to be fast", |event| {
            event.info.max_rate = None;
        }),
        map(
            "honours-nothing",
            "no event is known to honour a filter",
            |event| {
                event.info.honours = Filter::empty();
            },
        ),
        Mutant::of("group-leaked", "every closed group is kept", Leaked),
        Mutant::of(
            "refusal-leaks",
            "a group that is refused leaves its leader open",
            RefusalLeaks,
        ),
        Mutant::of(
            "refusal-disturbs",
            "a refusal stops what counts",
            RefusalDisturbs::default(),
        ),
    ]
}

/// The simulated PMU, used in another way than it should be.
pub(crate) struct Driver {
    pmu: SimPmu,
    slots: Vec<Slot>,
    pub(crate) width: Option<u8>,
    /// A slot whose counter stays at 0.
    pub(crate) dead: Option<usize>,
    /// A slot whose counter jumps by 2^47 while it counts.
    pub(crate) jumping: Option<usize>,
    /// The last values of the slots, where they are never seen to go back.
    goes_on: Option<[AtomicU64; 4]>,
    stop_forgets: bool,
    leftovers: bool,
    take: bool,
    give_back: bool,
    put_back: bool,
    keep_errno: bool,
    shun_found: bool,
    looks: bool,
    swallow: fn(&Error) -> bool,
}

fn driver(name: &'static str, defect: &'static str, break_it: fn(&mut Driver)) -> Mutant {
    Mutant::of_parts(name, defect, move || broken(break_it))
}

/// A fixture over registers that are used, or behave, in another way than they should.
pub(crate) fn broken(break_it: fn(&mut Driver)) -> SimFixture {
    SimFixture::altered(Altered {
        driver: |pmu: SimPmu| {
            let mut driver = Driver {
                slots: pmu.slots().to_vec(),
                pmu,
                width: None,
                dead: None,
                jumping: None,
                goes_on: None,
                stop_forgets: false,
                leftovers: false,
                take: true,
                give_back: true,
                put_back: true,
                keep_errno: true,
                shun_found: false,
                looks: true,
                swallow: |_| false,
            };
            break_it(&mut driver);
            if let Some(width) = driver.width {
                driver.slots.iter_mut().for_each(|slot| slot.width = width);
            }
            driver
        },
        map: |map| map,
        backend: |backend| backend,
    })
}

impl Driver {
    fn done(&self, result: Result<()>) -> Result<()> {
        match result {
            Err(error) if (self.swallow)(&error) => Ok(()),
            Err(error) if !self.keep_errno => Err(Error::new(error.kind(), error.attempted())),
            result => result,
        }
    }

    /// Replaces the values by those that faulty hardware has.
    fn spoil(&self, slots: &[usize], raw: &mut [u64]) {
        for (slot, raw) in slots.iter().zip(raw) {
            if self.dead == Some(*slot) {
                *raw = 0;
            }
            if self.jumping == Some(*slot) {
                *raw |= 1 << 47;
            }
            if let Some(last) = &self.goes_on {
                let before = last[*slot].load(Ordering::Relaxed);
                if *raw < before {
                    *raw = before + 1_000;
                }
                last[*slot].store(*raw, Ordering::Relaxed);
            }
        }
    }
}

impl Pmu for Driver {
    fn name(&self) -> &'static str {
        self.pmu.name()
    }

    fn slots(&self) -> &[Slot] {
        &self.slots
    }

    fn cpus(&self) -> &[u32] {
        self.pmu.cpus()
    }

    fn current_cpu(&self) -> Result<u32> {
        self.pmu.current_cpu()
    }

    fn access(&self) -> Access {
        self.pmu.access()
    }

    fn simultaneity(&self) -> Simultaneity {
        self.pmu.simultaneity()
    }

    fn prepare(&self, encoding: &Encoding) -> Result<SlotSet> {
        self.pmu.prepare(encoding)
    }

    fn in_use(&self, cpu: u32) -> InUse {
        let in_use = self.pmu.in_use(cpu);
        if self.shun_found {
            // One is left, so that single counters count.
            return InUse::new(0, in_use.found & !1);
        }
        in_use
    }

    fn look_interval(&self) -> Option<Duration> {
        self.pmu.look_interval().filter(|_| self.looks)
    }

    fn acquire(&self, cpu: u32) -> Result<()> {
        if self.take {
            self.done(self.pmu.acquire(cpu))
        } else {
            Ok(())
        }
    }

    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()> {
        self.done(self.pmu.program(cpu, slot, encoding))
    }

    fn clear(&self, cpu: u32, slot: usize) -> Result<()> {
        if self.leftovers {
            Ok(())
        } else {
            self.done(self.pmu.clear(cpu, slot))
        }
    }

    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        self.done(self.pmu.start(cpu, slots, raw))?;
        if let Some(last) = &self.goes_on {
            for (slot, raw) in slots.iter().zip(&*raw) {
                last[*slot].store(*raw, Ordering::Relaxed);
            }
        }
        if self.leftovers {
            raw.fill(0);
        }
        Ok(())
    }

    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        self.done(self.pmu.stop(cpu, slots, raw))?;
        self.spoil(slots, raw);
        if self.stop_forgets {
            raw.fill(0);
        }
        Ok(())
    }

    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        self.done(self.pmu.read(cpu, slots, raw))?;
        self.spoil(slots, raw);
        Ok(())
    }

    fn release(&self, cpu: u32) -> Result<()> {
        if !self.give_back {
            return Ok(());
        }
        self.done(self.pmu.release(cpu))?;
        if !self.put_back {
            let cleared = SimRegister {
                select: 0,
                counting: false,
                raw: 0,
            };
            (0..self.slots.len()).for_each(|slot| self.pmu.overwrite(cpu, slot, cleared));
        }
        Ok(())
    }
}

/// An event map whose answers are changed.
struct Map(Arc<dyn EventMap>, fn(&mut ResolvedEvent));

fn map(name: &'static str, defect: &'static str, change: fn(&mut ResolvedEvent)) -> Mutant {
    Mutant::of_parts(name, defect, move || {
        SimFixture::altered(Altered {
            driver: |pmu| pmu,
            map: |map| Arc::new(Map(map, change)) as Arc<dyn EventMap>,
            backend: |backend| backend,
        })
    })
}

impl EventMap for Map {
    fn cpu(&self) -> &CpuModel {
        self.0.cpu()
    }

    fn resolve(&self, event: &Event, filter: Filter) -> Result<ResolvedEvent> {
        let mut resolved = self.0.resolve(event, filter)?;
        (self.1)(&mut resolved);
        Ok(resolved)
    }
}

type Opened = Result<Box<dyn Group>>;

#[derive(Clone)]
struct Leaked;

impl Defect for Leaked {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        let mut kept = inner.open(spec, target)?;
        kept.disable()?;
        std::mem::forget(kept);
        inner.open(spec, target)
    }
}

#[derive(Clone)]
struct RefusalLeaks;

impl Defect for RefusalLeaks {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        inner.open(spec, target).inspect_err(|_| {
            if let Some(leader) = spec.members.first()
                && let Ok(leader) = inner.open(&GroupSpec::single(leader.clone()), target)
            {
                std::mem::forget(leader);
            }
        })
    }
}

/// Counts the refusals; a group that was opened before the last one is stopped when it is next used.
#[derive(Clone, Default)]
struct RefusalDisturbs {
    refusals: Arc<AtomicU64>,
    seen: Option<u64>,
}

impl Defect for RefusalDisturbs {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        inner.open(spec, target).inspect_err(|_| {
            self.refusals.fetch_add(1, Ordering::Relaxed);
        })
    }

    fn disable(&mut self, group: &mut dyn Group) -> Result<()> {
        group.disable()?;
        let refusals = self.refusals.load(Ordering::Relaxed);
        if self
            .seen
            .replace(refusals)
            .is_some_and(|seen| seen < refusals)
        {
            group.reset()?;
        }
        Ok(())
    }

    fn enable(&mut self, group: &mut dyn Group) -> Result<()> {
        self.seen = Some(self.refusals.load(Ordering::Relaxed));
        group.enable()
    }
}
