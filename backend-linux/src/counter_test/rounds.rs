//! The rounds of the test: one loop counted by every counter at once, and the verdict on what they say.

use std::hint::black_box;

use quipu_hal::{
    Error, ErrorKind, EventSpec, Filter, GroupSpec, Hardware, Part, Reading, Result, Target,
};
use std::sync::OnceLock;

use super::CounterTest;
use crate::event_bits::EventBits;
use crate::kernel_group::{KernelGroup, ReadPlan};
use crate::open::{LEADERS_ARE_OVERLOOKED, RefusedMember, fits, idle_attr};
use crate::open_error;
use crate::parts::PlannedPart;
use crate::sys::{Attach, AttrFlags, CounterFd, OpenFailure, PerfEventAttr, perf_event_open};
use crate::sysfs::SysfsPmus;

/// More counters than any PMU has.
const MOST: usize = 64;

/// The turns of the loop. Each is an instruction at least, as it stores its number.
const TURNS: u64 = 300_000;

/// The rounds with each number of counters: one that is taken away now and then is seen in some.
const ROUNDS: usize = 6;

/// The most instructions of a CPU in a nanosecond.
const MOST_PER_NANOSECOND: u64 = 64;

/// Tests the counters of this machine.
pub(super) fn of_this_machine() -> Result<CounterTest> {
    if SysfsPmus::new().core_pmus().len() > 1 {
        return Err(Error::new(ErrorKind::UnsupportedFeature, ATTEMPTED)
            .with_reason("the machine has several kinds of core, each with counters of its own"));
    }
    let advertised = open(MOST)?.1;
    let found = find(advertised, |counters| {
        let Ok((mut group, opened)) = open(counters) else {
            return Vec::new();
        };
        (0..ROUNDS)
            .filter_map(|_| round(&mut group, opened))
            .collect()
    });
    found.ok_or_else(|| {
        Error::new(ErrorKind::Busy, ATTEMPTED)
            .with_reason(format!("others hold all of its {advertised} counters"))
    })
}

const ATTEMPTED: &str = "test the counters of the PMU";

/// Finds how many counters count, of so many that are advertised. `rounds` opens a group of so many and
/// returns what its members counted in each round that it was on the PMU for. `None` if it never is.
fn find(
    advertised: usize,
    mut rounds: impl FnMut(usize) -> Vec<Vec<Reading>>,
) -> Option<CounterTest> {
    let mut tested = 0;
    let mut counters = advertised;
    while counters > 0 {
        let counting = rounds(counters).iter().map(|r| counting(r)).min();
        match counting {
            None => counters -= 1,
            Some(counting) => {
                tested = tested.max(counters);
                if counting == counters {
                    break;
                }
                // With fewer, others may be the ones that are missing: it is tried.
                counters = counting.min(counters - 1);
            }
        }
    }
    (tested > 0).then_some(CounterTest {
        advertised,
        tested,
        counting: counters,
    })
}

/// Returns how many members of a round counted. They counted the same loop, so that one that is short of the
/// others did not count all of it; one that is beyond what a CPU can do did not count either.
fn counting(round: &[Reading]) -> usize {
    let possible = |r: &&Reading| r.value <= r.time_running.saturating_mul(MOST_PER_NANOSECOND);
    let most = round.iter().filter(possible).map(|r| r.value).max();
    let Some(most) = most.filter(|most| *most >= TURNS) else {
        return 0;
    };
    let whole = |r: &&Reading| possible(r) && r.value >= most - most / 64;
    round.iter().filter(whole).count()
}

/// Counts the loop once. `None` when the group was not on the PMU for all of it.
fn round(group: &mut KernelGroup, members: usize) -> Option<Vec<Reading>> {
    let mut words = vec![0; ReadPlan::Snapshot.words(members)];
    let mut before = vec![Reading::default(); members];
    let mut after = before.clone();
    group.disable().ok()?;
    group.read(&mut words, &mut before).ok()?;
    group.start().ok()?;
    work();
    group.disable().ok()?;
    group.read(&mut words, &mut after).ok()?;
    let pairs = after.iter().zip(&before);
    let counted: Vec<_> = pairs.map(|(after, before)| after.since(before)).collect();
    let whole = |r: &Reading| r.time_running > 0 && r.time_running >= r.time_enabled;
    counted.iter().all(whole).then_some(counted)
}

#[inline(never)]
fn work() {
    let mut turn = 0;
    while turn < TURNS {
        turn = black_box(turn + 1);
    }
}

/// Opens a pinned group of up to so many counters of instructions in user mode; returns how many it has.
fn open(most: usize) -> Result<(KernelGroup, usize)> {
    let bits = EventBits::hardware(Hardware::Instructions);
    let attach = Attach::thread(0);
    let member = PerfEventAttr {
        read_format: ReadPlan::Snapshot.format(),
        ..idle_attr(bits)
    };
    let mut leader = member;
    leader.flags |= AttrFlags::PINNED;
    let mut sibling = member;
    sibling.flags -= AttrFlags::DISABLED;
    let first =
        perf_event_open(&leader, attach, None).map_err(|failure| refusal(&leader, failure))?;
    let mut fds: Vec<CounterFd> = vec![first];
    while fds.len() < most
        && let Ok(next) = perf_event_open(&sibling, attach, fds.first())
    {
        fds.push(next);
    }
    if LEADERS_ARE_OVERLOOKED && fits(&sibling, attach, &fds, &mut perf_event_open).is_err() {
        fds.pop();
    }
    let members = fds.len();
    let group = KernelGroup::new(ReadPlan::Snapshot, false, fds)
        .map_err(|errno| refusal(&leader, OpenFailure::Errno(errno)))?;
    Ok((group, members))
}

/// Returns the error for a kernel that counts no instructions.
fn refusal(attr: &PerfEventAttr, failure: OpenFailure) -> Error {
    let bits = EventBits::hardware(Hardware::Instructions);
    let attach = Attach::thread(0);
    let refused = RefusedMember {
        member: 0,
        attr: Box::new(*attr),
        attach,
        failure,
    };
    let event = EventSpec::new(Hardware::Instructions).with_filter(Filter::USER_ONLY);
    let planned = PlannedPart {
        attach,
        part: Part::whole(),
        bits: vec![bits],
    };
    let (spec, target) = (GroupSpec::single(event), Target::CurrentThread);
    open_error::explain(&refused, &spec, &target, &planned, &OnceLock::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRUTH: u64 = 3 * TURNS;

    fn read(value: u64) -> Reading {
        Reading::new(value, 1_000_000, 1_000_000)
    }

    /// A PMU of so many counters, some held by others, whose counter `n` counts by `count(n, round)`.
    fn machine(
        advertised: usize,
        held: usize,
        count: impl Fn(usize, usize) -> u64,
    ) -> Option<CounterTest> {
        let mut seen = 0;
        find(advertised, |counters| {
            if counters > advertised - held {
                return Vec::new();
            }
            let mut rounds = Vec::new();
            for _ in 0..ROUNDS {
                rounds.push((0..counters).map(|n| read(count(n, seen))).collect());
                seen += 1;
            }
            rounds
        })
    }

    #[test]
    fn counters_that_do_not_count_are_found() {
        let test = |advertised, tested, counting| {
            Some(CounterTest {
                advertised,
                tested,
                counting,
            })
        };
        // Each is a machine's: counters, those that others hold, and what the counters say.
        type Count = fn(usize, usize) -> u64;
        let machines: [(usize, usize, Count, _); 9] = [
            (6, 0, |_, _| TRUTH, test(6, 6, 6)),
            // Interrupts make differences of one or two.
            (
                6,
                0,
                |n, round| TRUTH + (n * round % 3) as u64,
                test(6, 6, 6),
            ),
            (6, 1, |_, _| TRUTH, test(6, 5, 5)),
            (6, 6, |_, _| TRUTH, None),
            (6, 0, |n, _| if n == 5 { 0 } else { TRUTH }, test(6, 6, 5)),
            // Dead, but for one round in three.
            (
                6,
                0,
                |n, round| if n == 5 && round % 3 > 0 { 900 } else { TRUTH },
                test(6, 6, 5),
            ),
            // Whichever comes last is short, and one more with it in the first rounds.
            (
                4,
                0,
                |n, _| if n > 1 { TRUTH * 7 / 10 } else { TRUTH },
                test(4, 4, 2),
            ),
            (
                4,
                0,
                |n, _| if n == 0 { 1 << 47 } else { TRUTH },
                test(4, 4, 0),
            ),
            (4, 0, |_, _| 0, test(4, 4, 0)),
        ];
        for (i, (advertised, held, count, found)) in machines.into_iter().enumerate() {
            assert_eq!(machine(advertised, held, count), found, "machine {i}");
        }
    }

    #[test]
    fn the_counters_of_this_machine() {
        match of_this_machine() {
            Ok(test) => {
                assert!(test.counting <= test.tested && test.tested <= test.advertised);
                assert!(test.advertised <= MOST);
            }
            Err(e) => {
                let lacking = [
                    ErrorKind::UnsupportedEvent,
                    ErrorKind::UnsupportedFeature,
                    ErrorKind::NoPermission,
                    ErrorKind::Busy,
                ];
                assert!(lacking.contains(&e.kind()), "{e:#}");
            }
        }
    }

    /// The loop is no shorter than the verdict takes it to be, nor longer than a CPU can do in its time.
    #[test]
    fn a_round_of_the_real_loop_is_judged_by_its_own_measure() {
        let start = std::time::Instant::now();
        work();
        assert!(start.elapsed().as_nanos() as u64 >= TURNS / MOST_PER_NANOSECOND);
        assert_eq!(counting(&[read(TURNS), read(TURNS - TURNS / 32)]), 1);
        assert_eq!(counting(&[read(TURNS), read(TURNS - 2)]), 2);
        assert_eq!(counting(&[read(TURNS - 1); 2]), 0);
    }
}
