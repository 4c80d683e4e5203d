//! Looks at groups that count: their registers are read, verified, and what they counted is added.

use std::sync::Arc;

use quipu_hal::{Error, ErrorKind, Result};

use super::super::group_state::CounterState;
use super::super::scheduled_group::ScheduledGroup;
use super::{CpuContext, NEVER, Scratch, accumulate};
use crate::Pmu;
use crate::clock::nanoseconds;

/// Looks at a group that counts. CPUs that are set together are not all looked at, which takes threads that get
/// there: what zeroes a counter zeroes it everywhere, so that one CPU shows it on which the event occurs. Where it
/// does not, and now and then to keep what was counted, all are looked at, for a thousandth of the time at most.
/// Returns false if the interval was lost.
pub(super) fn look_at<P: Pmu>(
    at: &CpuContext<'_, P>,
    group: &Arc<ScheduledGroup>,
    scratch: &mut Scratch,
    sweep_from: &mut u64,
) -> bool {
    const KEPT_EVERY: u64 = 10_000_000_000;
    const UNSEEN: u64 = 100_000_000;
    const SHARE: u64 = 1_000;
    if !at.pmu.sets_all_cpus() {
        return refresh_group(at, group, scratch, true);
    }
    scratch.take_slots(group);
    let shown = match at.pmu.look_here(&scratch.slots, &mut scratch.raw) {
        Ok(shown) => shown,
        Err(e) => return !lost_by(group, e),
    };
    let now = at.clock.now();
    group.looks.look(now, shown);
    let kept_at = group.state().last_known_at();
    let is_wanted = match shown {
        true => now.saturating_sub(kept_at) >= KEPT_EVERY,
        false => group.looks.unseen_for(now) >= UNSEEN,
    };
    if !is_wanted || now < *sweep_from {
        return true;
    }
    let kept = refresh_group(at, group, scratch, true);
    let end = at.clock.now();
    *sweep_from = end.saturating_add(end.saturating_sub(now).saturating_mul(SHARE));
    kept
}

/// Keeps an error for the next caller, and returns true if the interval was lost by it.
fn lost_by(group: &ScheduledGroup, error: Error) -> bool {
    let lost = error.kind() == ErrorKind::Interference;
    if lost {
        group.discard_interval();
    }
    group.set_fault(error);
    lost
}

/// Reads a group that counts, and verifies it if that is asked; returns false if its interval was lost.
pub(super) fn refresh_group<P: Pmu>(
    at: &CpuContext<'_, P>,
    group: &Arc<ScheduledGroup>,
    scratch: &mut Scratch,
    verify: bool,
) -> bool {
    let began = verify.then(|| at.clock.now());
    scratch.take_slots(group);
    let looked = at.pmu.look_at(&group.cpus, &scratch.slots);
    match looked.and_then(|()| accumulate_each(at, group, scratch, verify, false)) {
        Ok(()) => {
            if let Some(began) = began {
                let took = began..at.clock.now();
                let interval = at.pmu.read_verify_interval().map_or(NEVER, nanoseconds);
                for state in &group.states {
                    state.verified(&took, interval);
                }
            }
            true
        }
        Err(e) => !lost_by(group, e),
    }
}

/// Reads a group on each of its CPUs, verifies it if that is asked, and adds what it has counted. Of CPUs that are
/// set together, one that was not reached keeps the counts it had; if it has stopped, the interval is lost.
pub(super) fn accumulate_each<P: Pmu>(
    at: &CpuContext<'_, P>,
    group: &Arc<ScheduledGroup>,
    scratch: &mut Scratch,
    verify: bool,
    stopped: bool,
) -> Result<()> {
    let mut result = Ok(());
    for (&cpu, state) in group.cpus.iter().zip(&group.states) {
        let known_at = state.last_known_at();
        scratch.take_slots(group);
        scratch.known.clear();
        let counters = state.counters.iter();
        scratch.known.extend(counters.map(CounterState::last_known));
        let Scratch {
            slots, raw, known, ..
        } = &mut *scratch;
        let read = at.pmu.read(cpu, slots, raw);
        let done = read
            .and_then(|()| match verify {
                true => at.pmu.verify(at.cpu, slots),
                false => Ok(()),
            })
            .and_then(|()| accumulate(at, (cpu, group, state), raw, known, known_at, stopped));
        if let Err(e) = done {
            if stopped {
                state.discard_interval();
            }
            let goes_on = !stopped && at.pmu.sets_all_cpus() && is_out_of_reach(&e);
            if result.is_ok() && !goes_on {
                result = Err(e);
            }
        }
    }
    result
}

/// Returns true for the error of a CPU that could not be reached, though all are set together.
pub(in crate::virtual_pmu) fn is_out_of_reach(error: &Error) -> bool {
    error.kind() == ErrorKind::WrongThread
}
