//! The time on the CPU and off it together, where a recording has both: as an event of its own.

use quipu_viewers::{OFF_CPU, Unit};

use super::cut_chains::CutChains;
use super::profile::{EventProfile, Functions, Profile, Seen, Stack};

/// The name of the event.
pub(super) const NAME: &str = "wall-time";

impl Profile {
    /// Adds the event before the others if there are samples of one clock and of the time off the CPU, both in nanoseconds.
    /// The innermost frame of the stack of a sleep says so.
    pub(super) fn add_wall_time(&mut self) {
        let only = |unit| {
            let mut events = self.events.iter();
            let mut events = events
                .by_ref()
                .filter(|event| event.unit == unit && !event.stacks.is_empty());
            events.next().filter(|_| events.next().is_none())
        };
        if let (Some(on), Some(off)) = (only(Unit::CpuTime), only(Unit::Time)) {
            let both = together(&mut self.functions, on, off);
            self.events.insert(0, both);
        }
    }
}

fn together(functions: &mut Functions, on: &EventProfile, off: &EventProfile) -> EventProfile {
    let mut both = EventProfile {
        name: NAME.to_owned(),
        unit: Unit::Time,
        lost: on.lost + off.lost,
        jumped: on.jumped + off.jumped,
        total: on.total,
        stacks: on.stacks.clone(),
        ..EventProfile::default()
    };
    both.total.add(off.total);
    let asleep = functions.place(Seen::stand_in(OFF_CPU));
    for (stack, weight) in &off.stacks {
        let frames = [asleep].into_iter().chain(stack.frames.iter().copied());
        let stack = Stack {
            frames: frames.collect(),
            ..stack.clone()
        };
        both.stacks.entry(stack).or_default().add(*weight);
    }
    let cut = on.cut.as_ref().or(off.cut.as_ref());
    both.cut = cut.and_then(|cut| CutChains::of(&both, functions, cut.source));
    both
}
