//! The groups of a schedule that are to be on, each event with its slot.

use std::sync::Arc;

use super::super::scheduled_group::ScheduledGroup;
use super::{CpuContext, Schedule};
use crate::assign::{Matching, bits};
use crate::{InUse, Pmu};

impl Schedule {
    /// Selects the groups to be on: every pinned group that fits, every one that needs no counter, and the ring from
    /// its front up to the first that does not fit. Slots that are in use are the last choice, or none. So the work
    /// depends on the slots, not on the number of waiting groups.
    pub(super) fn plan<P: Pmu>(
        &self,
        at: &CpuContext<'_, P>,
        in_use: InUse,
        next: &mut Vec<Arc<ScheduledGroup>>,
    ) -> Matching {
        let shared = at.shared();
        let matching = Matching::new().with_last_choice(in_use.found);
        let mut matching = matching.with_shared(shared);
        let (mut first, mut alone) = (true, false);
        let mut take = |group: &Arc<ScheduledGroup>| {
            let needs_counters = group.needs_counters(shared);
            let shut_out = alone || group.exclusive && !first;
            if needs_counters && shut_out || next.iter().any(|other| group.conflicts(other)) {
                return false;
            }
            let counts = group.is_active();
            let members = group.members.iter();
            let events = members.map(|member| member.allowed & !in_use.taken);
            let preferred = group.slots().map(|slot| counts.then_some(slot));
            let fits = matching.add_all(events.zip(preferred)).is_ok();
            if fits {
                if needs_counters {
                    (first, alone) = (false, group.exclusive);
                }
                next.push(Arc::clone(group));
            }
            fits
        };
        for group in self.pinned.iter().chain(&self.unlimited) {
            take(group);
        }
        let _first_that_waits = self.ring.iter().find(|group| !take(group));
        self.with_room_for_disabled(&matching, next, in_use)
    }

    /// Has slots that no open group needs count the events of groups that were just started too.
    pub(super) fn place_witnesses<P: Pmu>(
        &self,
        at: &CpuContext<'_, P>,
        in_use: InUse,
        matching: &Matching,
        started: &[Arc<ScheduledGroup>],
    ) {
        let shared = at.shared();
        let enabled = self.pinned.iter().chain(&self.unlimited);
        let open = enabled.chain(self.ring.iter()).chain(self.disabled.iter());
        let events: usize = open.map(|group| group.members.len()).sum();
        if matching.events() < events {
            return;
        }
        let slots = (0..events).map(|event| matching.slot_of(event));
        let needed = slots.fold(in_use.found | in_use.taken, |all, slot| all | 1 << slot);
        let mut free = !needed & !shared;
        for group in started.iter().filter(|group| group.is_active()) {
            for (slot, member) in group.slots().zip(&*group.members) {
                let mut others = bits(free & member.allowed);
                if shared >> slot & 1 == 0
                    && let Some(by) = others.find(|&by| at.pmu.witness(at.cpu, slot, by))
                {
                    free &= !(1 << by);
                }
            }
        }
    }

    /// Returns a matching in which disabled groups find room, in the order of the list up to the first that does not
    /// fit: so groups that are enabled one after the other do not move for those that follow. Neither do groups that
    /// count already, nor is a counter used for it that is the last choice.
    fn with_room_for_disabled(
        &self,
        matching: &Matching,
        next: &[Arc<ScheduledGroup>],
        in_use: InUse,
    ) -> Matching {
        let mut roomy = *matching;
        let _first_without_room = self.disabled.iter().find(|group| {
            let events = group.members.iter();
            let events = events.map(|member| (member.allowed & !in_use.taken, None));
            roomy.add_all(events).is_err()
        });
        let last_choices = |of: &Matching| {
            let slots = (0..matching.events()).map(|event| of.slot_of(event));
            slots.filter(|slot| in_use.found >> slot & 1 == 1).count()
        };
        let mut event = 0;
        let stay = next.iter().all(|group| {
            let first = event;
            event += group.members.len();
            let stays = |event| roomy.slot_of(event) == matching.slot_of(event);
            !group.is_active() || (first..event).all(stays)
        });
        match stay && last_choices(&roomy) <= last_choices(matching) {
            true => roomy,
            false => *matching,
        }
    }
}
