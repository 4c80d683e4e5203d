//! The time on the CPU and off it together, where a recording has both: as an event of its own.

use quipu_viewers::{OFF_CPU, Unit};

use super::cut_chains::CutChains;
use super::profile::{EventProfile, Profile, Seen};
use super::stacks::Stack;

/// The name of the event.
pub(super) const NAME: &str = "wall-time";

impl Profile {
    /// Adds the event before the others if there are samples of one clock and of the time off the CPU, both in nanoseconds.
    /// The innermost frame of the stack of a sleep says so.
    pub(super) fn add_wall_time(&mut self) {
        let only = |unit| {
            let events = self.events.iter();
            let mut seen = events.filter(|event| event.unit == unit && event.total.samples > 0);
            seen.next().filter(|_| seen.next().is_none())
        };
        let (Some(on), Some(off)) = (only(Unit::CpuTime), only(Unit::Time)) else {
            return;
        };
        let mut both = EventProfile {
            name: NAME.to_owned(),
            unit: Unit::Time,
            lost: on.lost + off.lost,
            jumped: on.jumped + off.jumped,
            throttled: on.throttled.clone(),
            total: on.total,
            ..EventProfile::default()
        };
        both.total.add(off.total);
        for (stack, weight) in on.stacks.iter() {
            both.stacks.add(stack, weight);
        }
        let asleep = self.functions.place(Seen::stand_in(OFF_CPU)) as u32;
        for (stack, weight) in off.stacks.iter() {
            let lists = &mut self.stacks.lists;
            let frames = [&[asleep], lists.get(stack.leaf)].concat();
            let leaf = lists.number(&frames);
            both.stacks.add(Stack { leaf, ..stack }, weight);
        }
        let cut = on.cut.as_ref().or(off.cut.as_ref());
        let pieces = (&self.functions, &self.stacks);
        both.cut = cut.and_then(|cut| CutChains::of(&both, pieces, cut.source));
        self.events.insert(0, both);
    }
}
