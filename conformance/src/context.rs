//! The context of a check: the fixture, and the steps that most checks have in common.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use quipu_hal::{
    Attributes, Capabilities, Error, ErrorKind, EventSpec, Features, Group, GroupSpec, ReadBuf,
    Reading, Simultaneity, Target, TargetKinds,
};

use crate::verdict::{Missing, Outcome, Stop, ensure_eq};
use crate::{Ability, Fixture, WorkingCounters, Workload};

/// A group chosen at run time.
pub(crate) type BoxGroup = Box<dyn Group>;

/// The fixture as checks use it: an ability that it lacks ends the check as skipped.
pub(crate) struct Context<'a> {
    fixture: &'a dyn Fixture,
    jump: OnceLock<Reading>,
    relies_on_all_counters: AtomicBool,
}

/// Counts while work that was prepared is done.
pub(crate) fn count_prepared(
    group: &mut dyn Group,
    prepared: impl IntoIterator<Item = Workload>,
) -> Outcome {
    group.enable()?;
    for work in prepared {
        work();
    }
    group.disable()?;
    Ok(())
}

impl<'a> Context<'a> {
    pub(crate) fn new(fixture: &'a dyn Fixture) -> Self {
        Self {
            fixture,
            jump: OnceLock::new(),
            relies_on_all_counters: AtomicBool::new(false),
        }
    }

    pub(crate) fn fixture(&self) -> &'a dyn Fixture {
        self.fixture
    }

    pub(crate) fn capabilities(&self) -> &'a Capabilities {
        self.fixture.backend().capabilities()
    }

    pub(crate) fn need(&self, features: Features) -> Outcome {
        let missing = features.difference(self.capabilities().features);
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Missing::Features(missing).into())
        }
    }

    pub(crate) fn need_target(&self, kinds: TargetKinds) -> Outcome {
        let missing = kinds.difference(self.capabilities().targets);
        if missing.is_empty() {
            Ok(())
        } else {
            Err(Missing::Target(missing).into())
        }
    }

    /// The first event with an exact workload.
    pub(crate) fn exact(&self) -> Outcome<EventSpec> {
        let events = self.fixture.exact_events();
        events.into_iter().next().ok_or(Ability::ExactEvent.into())
    }

    /// The first event with an exact workload of so many occurrences that fits so many times at once.
    pub(crate) fn exact_for(&self, members: usize, times: u64) -> Outcome<EventSpec> {
        let fits = |event: &EventSpec| self.room_of([event.clone()], members) == members;
        let events = self.fixture.exact_events();
        let mut fitting = events.iter().filter(|event| fits(event));
        let occurs = |event: &&EventSpec| self.fixture.workload(event, times).is_some();
        if let Some(event) = fitting.clone().find(occurs) {
            return Ok(event.clone());
        }
        // None does: the reason is that of the first.
        match fitting.next() {
            Some(event) => self.workload(event, times).map(|_| event.clone()),
            None => self.exact().and_then(|_| Err(too_few())),
        }
    }

    /// An event with an exact workload, which nothing else causes.
    pub(crate) fn undisturbed(&self) -> Outcome<EventSpec> {
        let mut events = self.fixture.exact_events().into_iter();
        let found = events.find(|event| !self.fixture.has_other_causes(event));
        found.ok_or(Ability::UndisturbedEvent.into())
    }

    /// Two events with exact workloads.
    pub(crate) fn exact_pair(&self) -> Outcome<[EventSpec; 2]> {
        let mut events = self.fixture.exact_events().into_iter();
        match (events.next(), events.next()) {
            (Some(first), Some(second)) => Ok([first, second]),
            _ => Err(Ability::TwoExactEvents.into()),
        }
    }

    pub(crate) fn slot_event(&self) -> Outcome<EventSpec> {
        self.need(Features::HARDWARE_EVENTS)?;
        self.fixture.slot_event().ok_or(Ability::SlotEvent.into())
    }

    pub(crate) fn slots(&self) -> Outcome<usize> {
        match self.fixture.slots().or(self.capabilities().slots) {
            Some(0) => Err(Missing::Inapplicable("there is no counter that can be set").into()),
            Some(slots) => Ok(slots),
            None => Err(Missing::Slots.into()),
        }
    }

    /// Returns the number of `wanted` counters of an exact event that can be on the PMU at once.
    pub(crate) fn room(&self, wanted: usize) -> usize {
        self.room_of(self.fixture.exact_events(), wanted)
    }

    fn room_of(&self, events: impl IntoIterator<Item = EventSpec>, wanted: usize) -> usize {
        let counters = |event: EventSpec| {
            let own = self.fixture.counters_of(&event);
            own.or(self.capabilities().slots)
        };
        let limits = events.into_iter().filter_map(counters);
        limits.fold(wanted, usize::min)
    }

    pub(crate) fn need_room(&self, wanted: usize) -> Outcome {
        if self.room(wanted) == wanted {
            Ok(())
        } else {
            Err(too_few())
        }
    }

    pub(crate) fn unsupported(&self) -> Outcome<EventSpec> {
        let events = self.fixture.unsupported_events();
        let event = events.into_iter().next().ok_or(Ability::UnsupportedEvent)?;
        Ok(EventSpec::new(event))
    }

    pub(crate) fn resources(&self) -> Outcome<u64> {
        self.fixture
            .resources()
            .ok_or(Ability::ResourceProbe.into())
    }

    pub(crate) fn now(&self) -> Outcome<u64> {
        self.fixture.now().ok_or(Ability::ManualClock.into())
    }

    pub(crate) fn expected_count(&self, event: &EventSpec) -> Outcome<u64> {
        self.fixture
            .expected_count(event)
            .ok_or(Ability::ExpectedCount.into())
    }

    /// Lets some turns of the rotation pass, unless that takes too long.
    pub(crate) fn pass_turns(&self, turns: u64) -> Outcome {
        self.need_turns(turns)?;
        self.pass(turns * self.fixture.rotation_interval());
        Ok(())
    }

    /// Skips the check where so many turns would take a minute.
    fn need_turns(&self, wanted: u64) -> Outcome {
        const LONGEST: u64 = 60_000_000_000;
        let interval = self.fixture.rotation_interval();
        if self.fixture.now().is_none() && wanted.saturating_mul(interval) > LONGEST {
            return Err(Missing::Turns { interval, wanted }.into());
        }
        Ok(())
    }

    /// Lets the target run for so many nanoseconds, however much of the CPU others have meanwhile.
    pub(crate) fn pass(&self, nanoseconds: u64) {
        let Some(start) = self.fixture.time_on_cpu() else {
            return self.fixture.pass(nanoseconds);
        };
        let mut left = nanoseconds;
        while left > 0 {
            self.fixture.pass(left);
            let ran = self.fixture.time_on_cpu().unwrap_or_default() - start;
            left = nanoseconds.saturating_sub(ran);
        }
    }

    /// Lets so many turns pass where the clock stands still meanwhile. Elsewhere a rotation may be
    /// late: until each group has run for `enough` turns, or for a multiple of `turns` in all.
    pub(crate) fn pass_turns_until_run(
        &self,
        groups: &mut [BoxGroup],
        turns: u64,
        enough: u64,
    ) -> Outcome {
        const LATENESS: u64 = 8;
        if self.fixture.now().is_some() {
            return self.pass_turns(turns);
        }
        let mut before = Vec::new();
        for group in &mut *groups {
            before.push(self.reading(&mut **group)?);
        }
        let step = groups.len() as u64;
        self.need_turns(step * enough)?;
        let enough = enough * self.fixture.rotation_interval();
        for _ in 0..(turns * LATENESS).div_ceil(step) {
            self.pass_turns(step)?;
            let mut all = true;
            for (group, before) in groups.iter_mut().zip(&before) {
                all &= self.reading(&mut **group)?.since(before).time_running >= enough;
            }
            if all {
                break;
            }
        }
        Ok(())
    }

    /// Returns the number of times that the event of a counted loop occurs in so many rounds, and a
    /// little around them: the least of several tries, as interrupts may add to it.
    pub(crate) fn counted_loop(&self, rounds: u64) -> Outcome<u64> {
        let mut least: Option<u64> = None;
        for _ in 0..20 {
            let (event, work) = self
                .fixture
                .counted_loop(rounds)
                .ok_or(Ability::CountedLoop)?;
            let mut group = self.open_stopped(&event)?;
            group.enable()?;
            work();
            group.disable()?;
            let seen = self.reading(&mut *group)?;
            if seen.count().exact().is_some() {
                least = Some(least.map_or(seen.value, |least| least.min(seen.value)));
            }
        }
        least.ok_or_else(|| Stop::Fail("alone, and never on the PMU all the time".into()))
    }

    /// Makes an exact event occur.
    pub(crate) fn cause(&self, event: &EventSpec, times: u64) -> Outcome {
        self.workload(event, times)?();
        Ok(())
    }

    /// Prepares work in which an exact event occurs.
    pub(crate) fn workload(&self, event: &EventSpec, times: u64) -> Outcome<Workload> {
        let workload = self.fixture.workload(event, times);
        workload.ok_or_else(|| match self.fixture.workload(event, 1) {
            Some(_) => Ability::SoManyOccurrences.into(),
            None => Ability::ExactEvent.into(),
        })
    }

    /// Reads a group into a buffer of its own.
    pub(crate) fn read(&self, group: &mut dyn Group) -> Outcome<ReadBuf> {
        let mut buf = group.read_buf();
        group.read(&mut buf)?;
        self.note_jumps(&buf);
        Ok(buf)
    }

    /// Reads a group after there have been other threads than its own. A backend that
    /// [counts them too](crate::Fixture::counts_other_threads), and no other, may refuse it.
    pub(crate) fn read_after_other_threads(&self, group: &mut dyn Group) -> Outcome {
        let mut buf = group.read_buf();
        match group.read(&mut buf) {
            Err(error)
                if error.kind() == ErrorKind::UnsupportedFeature
                    && self.fixture.counts_other_threads() => {}
            read => read?,
        }
        self.note_jumps(&buf);
        Ok(())
    }

    /// Reads the first member in the first part.
    pub(crate) fn reading(&self, group: &mut dyn Group) -> Outcome<Reading> {
        let buf = self.read(group)?;
        match buf.parts().len().min(buf.members()) {
            0 => Err(Stop::Fail("the reading is empty".into())),
            _ => Ok(buf[0][0]),
        }
    }

    /// Returns the values of the first part, in member order.
    pub(crate) fn values(&self, group: &mut dyn Group) -> Outcome<Vec<u64>> {
        let buf = self.read(group)?;
        Ok(buf[0].iter().map(|r| r.value).collect())
    }

    /// Keeps the first value that no counter can have reached in the time it ran.
    fn note_jumps(&self, buf: &ReadBuf) {
        if !self.fixture.counters_may_jump() || self.jump.get().is_some() {
            return;
        }
        let mut readings = (0..buf.parts().len()).flat_map(|part| &buf[part]);
        if let Some(jump) = readings.find(|reading| has_jumped(reading)) {
            self.jump.get_or_init(|| *jump);
        }
    }

    /// Returns the first reading of an impossible value, if there was one.
    pub(crate) fn jump(&self) -> Option<Reading> {
        self.jump.get().copied()
    }

    /// Skips the check where some counters of the PMU are known not to count.
    pub(crate) fn need_working_counters(&self) -> Outcome {
        self.relies_on_all_counters.store(true, Ordering::Relaxed);
        self.dead_counters().map_or(Ok(()), |dead| Err(dead.into()))
    }

    /// Returns true once the check has relied on every counter to count.
    pub(crate) fn relies_on_all_counters(&self) -> bool {
        self.relies_on_all_counters.load(Ordering::Relaxed)
    }

    /// Returns what is missing where some counters of the PMU do not count.
    pub(crate) fn dead_counters(&self) -> Option<Missing> {
        let WorkingCounters {
            advertised,
            working,
        } = self.fixture.working_counters()?;
        (working < advertised).then_some(Missing::WorkingCounters {
            advertised,
            working,
        })
    }

    /// Counts with a group while an event occurs, and not what preparing that takes, as memory that is allocated.
    pub(crate) fn count(&self, group: &mut dyn Group, event: &EventSpec, times: u64) -> Outcome {
        self.count_all(group, [(event, times)])
    }

    /// Counts while several events occur one after the other. All of it is prepared before the group counts: that is work too,
    /// of the kernel's for one.
    pub(crate) fn count_all<'e>(
        &self,
        group: &mut dyn Group,
        work: impl IntoIterator<Item = (&'e EventSpec, u64)>,
    ) -> Outcome {
        let prepared: Vec<_> = work
            .into_iter()
            .map(|(event, times)| self.workload(event, times))
            .collect::<Outcome<_>>()?;
        count_prepared(group, prepared)
    }

    /// Opens a counter of an event, and counts while the event occurs.
    pub(crate) fn measure(&self, event: &EventSpec, times: u64) -> Outcome<BoxGroup> {
        let mut group = self.open_stopped(event)?;
        self.count(&mut *group, event, times)?;
        Ok(group)
    }

    /// Fails the check unless the first member says `wanted`.
    pub(crate) fn ensure_value(&self, group: &mut dyn Group, wanted: u64, what: &str) -> Outcome {
        ensure_eq!(self.reading(group)?.value, wanted, "{what}");
        Ok(())
    }

    /// Opens a group on the usual target.
    pub(crate) fn open(&self, spec: &GroupSpec) -> Outcome<BoxGroup> {
        self.open_on(spec, &self.fixture.target())
    }

    /// Opens a group on a target that the backend must claim to have.
    pub(crate) fn open_on(&self, spec: &GroupSpec, target: &Target) -> Outcome<BoxGroup> {
        self.need_target(target.kind())?;
        Ok(self.fixture.backend().open(spec, target)?)
    }

    /// Opens a group of one that does not count yet.
    pub(crate) fn open_stopped(&self, event: &EventSpec) -> Outcome<BoxGroup> {
        self.open(&stopped([event.clone()]))
    }

    /// Ensures that a backend which does not claim a feature refuses a group that asks for it. Skips where it is claimed,
    /// as `inapplicable` says.
    pub(crate) fn refused_without(
        &self,
        feature: Features,
        inapplicable: &'static str,
        asking: impl FnOnce(EventSpec) -> GroupSpec,
    ) -> Outcome {
        if self.capabilities().features.contains(feature) {
            return Err(Missing::Inapplicable(inapplicable).into());
        }
        let error = self.refusal(&asking(self.exact()?), &self.fixture().target())?;
        ensure_eq!(
            error.kind(),
            ErrorKind::UnsupportedFeature,
            "the kind of \"{error}\""
        );
        Ok(())
    }

    /// The error of an opening that has to be refused.
    pub(crate) fn refusal(&self, spec: &GroupSpec, target: &Target) -> Outcome<Error> {
        match self.fixture.backend().open(spec, target) {
            Err(error) => Ok(error),
            Ok(_) => {
                let names: Vec<_> = spec
                    .members
                    .iter()
                    .map(|m| format!("{:?}", m.event))
                    .collect();
                Err(Stop::Fail(format!(
                    "{} on {target} was opened instead of refused",
                    names.join(", ")
                )))
            }
        }
    }
}

/// Returns true for a value that no counter reaches in the time it ran: more than 64 events in a
/// nanosecond.
pub(crate) fn has_jumped(reading: &Reading) -> bool {
    const MOST_PER_NANOSECOND: u64 = 64;
    reading.time_running > 0 && reading.value / MOST_PER_NANOSECOND > reading.time_running
}

/// Skips the check unless readings of the group are of one moment.
pub(crate) fn need_atomic(context: &Context<'_>, group: &dyn Group) -> Outcome {
    match group.simultaneity() {
        Simultaneity::Atomic => Ok(()),
        _ if context.capabilities().simultaneity < Simultaneity::Atomic => {
            Err(Missing::Simultaneity(Simultaneity::Atomic).into())
        }
        _ => Err(Missing::Inapplicable("groups of these events are not atomic").into()),
    }
}

/// A group that does not count before it is enabled.
pub(crate) fn stopped(members: impl IntoIterator<Item = EventSpec>) -> GroupSpec {
    GroupSpec::new(members).with_attributes(Attributes::default().with_disabled(true))
}

/// A group that stays on the PMU.
pub(crate) fn pinned(members: impl IntoIterator<Item = EventSpec>) -> GroupSpec {
    GroupSpec::new(members).with_attributes(Attributes::default().with_pinned(true))
}

fn too_few() -> Stop {
    Missing::Inapplicable("too few counters can count the same event at once").into()
}
