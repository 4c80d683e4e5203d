//! What a check works with: the subject, and the steps that most checks have in common.

use quipu_hal::{
    Attributes, Capabilities, Error, EventSpec, Features, Group, GroupSpec, ReadBuf, Reading,
    Simultaneity, Target, TargetKinds,
};

use crate::verdict::{Missing, Outcome, Stop};
use crate::{Ability, Subject};

/// A group chosen at run time.
pub(crate) type BoxGroup = Box<dyn Group>;

/// The subject as the checks see it: what it cannot do ends the check as skipped.
pub(crate) struct Bench<'a> {
    subject: &'a dyn Subject,
}

impl<'a> Bench<'a> {
    pub(crate) fn new(subject: &'a dyn Subject) -> Self {
        Self { subject }
    }

    pub(crate) fn subject(&self) -> &'a dyn Subject {
        self.subject
    }

    pub(crate) fn capabilities(&self) -> &'a Capabilities {
        self.subject.backend().capabilities()
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
        let events = self.subject.exact_events();
        events.into_iter().next().ok_or(Ability::ExactEvent.into())
    }

    /// An event with an exact workload, which nothing else causes.
    pub(crate) fn undisturbed(&self) -> Outcome<EventSpec> {
        let mut events = self.subject.exact_events().into_iter();
        let found = events.find(|event| !self.subject.has_other_causes(event));
        found.ok_or(Ability::UndisturbedEvent.into())
    }

    /// Two events with exact workloads.
    pub(crate) fn exact_pair(&self) -> Outcome<[EventSpec; 2]> {
        let mut events = self.subject.exact_events().into_iter();
        match (events.next(), events.next()) {
            (Some(first), Some(second)) => Ok([first, second]),
            _ => Err(Ability::TwoExactEvents.into()),
        }
    }

    pub(crate) fn slot_event(&self) -> Outcome<EventSpec> {
        self.need(Features::HARDWARE_EVENTS)?;
        self.subject.slot_event().ok_or(Ability::SlotEvent.into())
    }

    pub(crate) fn slots(&self) -> Outcome<usize> {
        let slots = self.subject.slots().or(self.capabilities().slots);
        slots.ok_or(Missing::Slots.into())
    }

    /// How many of `wanted` counters can be on the PMU at once.
    pub(crate) fn room(&self, wanted: usize) -> usize {
        self.capabilities()
            .slots
            .map_or(wanted, |slots| slots.min(wanted))
    }

    pub(crate) fn need_room(&self, wanted: usize) -> Outcome {
        if self.room(wanted) == wanted {
            Ok(())
        } else {
            Err(Missing::Inapplicable("there are too few slots").into())
        }
    }

    pub(crate) fn unsupported(&self) -> Outcome<EventSpec> {
        let events = self.subject.unsupported_events();
        let event = events.into_iter().next().ok_or(Ability::UnsupportedEvent)?;
        Ok(EventSpec::new(event))
    }

    pub(crate) fn resources(&self) -> Outcome<u64> {
        self.subject
            .resources()
            .ok_or(Ability::ResourceProbe.into())
    }

    pub(crate) fn now(&self) -> Outcome<u64> {
        self.subject.now().ok_or(Ability::ManualClock.into())
    }

    pub(crate) fn occurred(&self, event: &EventSpec) -> Outcome<u64> {
        self.subject.occurred(event).ok_or(Ability::Truth.into())
    }

    /// Lets some turns of the rotation pass.
    pub(crate) fn pass_turns(&self, turns: u64) {
        self.subject.pass(turns * self.subject.rotation_interval());
    }

    /// How often the event of a counted loop occurs in so many rounds, and a little around them: the
    /// least of several tries, as interrupts may add to it.
    pub(crate) fn counted_loop(&self, rounds: u64) -> Outcome<u64> {
        let mut least = None;
        for _ in 0..20 {
            let (event, work) = self
                .subject
                .counted_loop(rounds)
                .ok_or(Ability::CountedLoop)?;
            let mut group = self.open_stopped(&event)?;
            group.enable()?;
            work();
            group.disable()?;
            let seen = reading(&mut *group)?;
            if let Some(counted) = seen.scaled().exact() {
                least = Some(least.map_or(counted, |least: u64| least.min(counted)));
            }
        }
        least.ok_or_else(|| Stop::Fail("alone, and never on the PMU all the time".into()))
    }

    /// Makes an exact event occur.
    pub(crate) fn cause(&self, event: &EventSpec, times: u64) -> Outcome {
        let workload = self.subject.workload(event, times);
        workload.ok_or(Ability::ExactEvent)?();
        Ok(())
    }

    /// Opens a group on the usual target.
    pub(crate) fn open(&self, spec: &GroupSpec) -> Outcome<BoxGroup> {
        self.open_on(spec, &self.subject.target())
    }

    /// Opens a group on a target that the backend must claim to have.
    pub(crate) fn open_on(&self, spec: &GroupSpec, target: &Target) -> Outcome<BoxGroup> {
        self.need_target(target.kind())?;
        Ok(self.subject.backend().open(spec, target)?)
    }

    /// Opens a group of one that does not count yet.
    pub(crate) fn open_stopped(&self, event: &EventSpec) -> Outcome<BoxGroup> {
        self.open(&stopped([event.clone()]))
    }

    /// The error of an opening that has to be refused.
    pub(crate) fn refusal(&self, spec: &GroupSpec, target: &Target) -> Outcome<Error> {
        match self.subject.backend().open(spec, target) {
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

/// Skips the check unless readings of the group are of one moment.
pub(crate) fn need_atomic(bench: &Bench<'_>, group: &dyn Group) -> Outcome {
    match group.simultaneity() {
        Simultaneity::Atomic => Ok(()),
        _ if bench.capabilities().simultaneity < Simultaneity::Atomic => {
            Err(Missing::Simultaneity(Simultaneity::Atomic).into())
        }
        _ => Err(Missing::Inapplicable("groups of these events are not atomic").into()),
    }
}

/// A group that does not count before it is enabled.
pub(crate) fn stopped(members: impl IntoIterator<Item = EventSpec>) -> GroupSpec {
    GroupSpec::new(members).with_attributes(Attributes {
        disabled: true,
        ..Attributes::default()
    })
}

/// A group that stays on the PMU.
pub(crate) fn pinned(members: impl IntoIterator<Item = EventSpec>) -> GroupSpec {
    GroupSpec::new(members).with_attributes(Attributes {
        pinned: true,
        ..Attributes::default()
    })
}

/// Reads a group into a buffer of its own.
pub(crate) fn read(group: &mut dyn Group) -> Outcome<ReadBuf> {
    let mut buf = group.read_buf();
    group.read(&mut buf)?;
    Ok(buf)
}

/// Reads the first member in the first part.
pub(crate) fn reading(group: &mut dyn Group) -> Outcome<Reading> {
    let buf = read(group)?;
    match buf.parts().len().min(buf.members()) {
        0 => Err(Stop::Fail("the reading is empty".into())),
        _ => Ok(*buf.get(0, 0)),
    }
}

/// The values of the first part, in member order.
pub(crate) fn values(group: &mut dyn Group) -> Outcome<Vec<u64>> {
    let buf = read(group)?;
    Ok(buf.part(0).iter().map(|r| r.value).collect())
}
