//! The rounds of the test: one loop counted by every counter at once, and the verdict on what they say.

use std::hint::black_box;

use nix::sched::{CpuSet, sched_getaffinity, sched_setaffinity};
use nix::unistd::Pid;
use quipu_hal::{
    Error, ErrorKind, EventSpec, Filter, GroupSpec, Hardware, Part, Reading, Result, Target,
};

use super::CounterTest;
use crate::events::{EventBits, EventSource, Placement};
use crate::group::kernel_group::KernelGroup;
use crate::group::open_error;
use crate::group::open_part::{LEADERS_ARE_OVERLOOKED, RefusedMember, fits};
use crate::machine::sysfs::{CorePmu, SysfsPmus};
use crate::read::{Fds, ReadPlan, Source};
use crate::sys::{Attach, AttrFlags, OpenFailure, PerfEventAttr, event_type, perf_event_open};
use crate::targets::PlannedPart;

/// More counters than any PMU has.
const MOST: usize = 64;

/// The turns of the loop. Each is an instruction at least, as it stores its number.
const TURNS: u64 = 300_000;

/// The turns of the longer loop, which an event that does not count instructions is compared by.
const MORE_TURNS: u64 = 4 * TURNS;

/// The rounds with each number of counters: one that is taken away now and then is seen in some.
const ROUNDS: usize = 6;

/// The most instructions of a CPU in a nanosecond.
const MOST_PER_NANOSECOND: u64 = 64;

/// Tests each core PMU of this machine.
pub(super) fn of_this_machine() -> Vec<Result<CounterTest>> {
    let events = EventSource::new(SysfsPmus::new());
    let pmus = or_stand_in(events.core_pmus().all().to_vec());
    test_all(&ThisMachine { events }, &pmus)
}

/// Returns the core PMUs that sysfs shows; where it shows none, one that stands for what the kernel has.
pub(super) fn or_stand_in(mut pmus: Vec<CorePmu>) -> Vec<CorePmu> {
    if pmus.is_empty() {
        pmus.push(CorePmu {
            name: "cpu".into(),
            type_: event_type::RAW,
            cpus: Vec::new(),
        });
    }
    pmus
}

/// The machine as the test sees it.
trait Machine: Sync {
    /// Keeps the calling thread on the CPUs of a core PMU.
    fn keep_on(&self, pmu: &CorePmu) -> Result<()>;

    /// Returns the number of counters that the kernel takes a group of the event for, on the core PMU of this
    /// position.
    fn advertised(&self, pmu: usize, event: Hardware) -> Result<usize>;

    /// Opens a group of so many counters of the event, and returns what its members counted in each round that
    /// it was on the PMU for.
    fn rounds(&self, pmu: usize, event: Hardware, counters: usize) -> Vec<Vec<Reading>>;
}

/// Tests each core PMU: a single one on the calling thread, several on threads of their own, one after
/// the other.
fn test_all(machine: &impl Machine, pmus: &[CorePmu]) -> Vec<Result<CounterTest>> {
    let on_its_cpus = |i, pmu: &CorePmu| {
        machine.keep_on(pmu)?;
        test(machine, i, pmu)
    };
    let in_thread = |i, pmu: &CorePmu| {
        std::thread::scope(|scope| {
            let refused =
                |reason| Err(Error::new(ErrorKind::Os, attempted(pmu)).with_reason(reason));
            let thread = std::thread::Builder::new().spawn_scoped(scope, || on_its_cpus(i, pmu));
            match thread.map(std::thread::ScopedJoinHandle::join) {
                Ok(Ok(test)) => test,
                Ok(Err(_)) => refused("its thread panicked".to_owned()),
                Err(error) => refused(format!("there is no thread for it: {error}")),
            }
        })
    };
    let mut tests = Vec::with_capacity(pmus.len());
    for (i, pmu) in pmus.iter().enumerate() {
        tests.push(match pmus.len() {
            1 => test(machine, i, pmu),
            _ => in_thread(i, pmu),
        });
    }
    tests
}

fn attempted(pmu: &CorePmu) -> String {
    format!("test the counters of {}", pmu.name)
}

/// Tests a core PMU on the calling thread.
fn test(machine: &impl Machine, i: usize, pmu: &CorePmu) -> Result<CounterTest> {
    let of = |event| -> Result<CounterTest> {
        let advertised = machine.advertised(i, event)?;
        let found = find(event, advertised, |counters| {
            machine.rounds(i, event, counters)
        });
        let (tested, counting) = found.ok_or_else(|| {
            Error::new(ErrorKind::Busy, attempted(pmu))
                .with_reason(format!("others hold all of its {advertised} counters"))
        })?;
        Ok(CounterTest {
            pmu: pmu.name.clone(),
            event,
            advertised,
            tested,
            counting,
        })
    };
    match of(Hardware::Instructions) {
        // One of the counters may count nothing but instructions, and another may be the dead one.
        Ok(test) if test.has_dead_counters() => Ok(of(Hardware::Branches)
            .ok()
            .filter(|branches| branches.has_dead_counters() && branches.counting < test.counting)
            .unwrap_or(test)),
        Err(error) if error.kind() == ErrorKind::UnsupportedEvent => {
            of(Hardware::Cycles).map_err(|_| error)
        }
        other => other,
    }
}

/// Finds how many counters of an event were tested and how many of them count, of so many that are
/// advertised. `rounds` returns what a group of so many counted in each round. `None` if it never is on the PMU.
fn find(
    event: Hardware,
    advertised: usize,
    mut rounds: impl FnMut(usize) -> Vec<Vec<Reading>>,
) -> Option<(usize, usize)> {
    let mut tested = 0;
    let mut counters = advertised;
    while counters > 0 {
        let rounds = rounds(counters);
        let mut each: Vec<_> = rounds.iter().map(|r| counting(event, r)).collect();
        each.sort_unstable();
        // Cycles go on while an emulator reads one counter after the other: less than half of the rounds may
        // be spoiled by that.
        let verdict = match event {
            Hardware::Instructions => 0,
            _ => each.len().saturating_sub(1) / 2,
        };
        match each.get(verdict).copied() {
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
    (tested > 0).then_some((tested, counters))
}

/// Returns how many members of a round counted. They counted the same loop, so that one that is short of the
/// others did not count all of it; one that is beyond what a CPU can do did not count either.
fn counting(event: Hardware, round: &[Reading]) -> usize {
    let least = match event {
        Hardware::Instructions => TURNS,
        _ => 1,
    };
    let possible = |r: &&Reading| r.value <= r.time_running.saturating_mul(MOST_PER_NANOSECOND);
    let most = round.iter().filter(possible).map(|r| r.value).max();
    let Some(most) = most.filter(|most| *most >= least) else {
        return 0;
    };
    let whole = |r: &&Reading| possible(r) && r.value >= most - most / 64;
    round.iter().filter(whole).count()
}

/// Returns what the members of a group counted of the loop; of another event than instructions how much more
/// they counted of a longer loop, which is 0 where it was not more. `None` when the group was not on the
/// PMU for all of it.
fn round(
    event: Hardware,
    mut count: impl FnMut(u64) -> Option<Vec<Reading>>,
) -> Option<Vec<Reading>> {
    let once = count(TURNS)?;
    if event == Hardware::Instructions {
        return Some(once);
    }
    let mut more = count(MORE_TURNS)?;
    for (more, once) in more.iter_mut().zip(&once) {
        more.value = more.value.saturating_sub(once.value);
    }
    Some(more)
}

/// Counts a loop of so many turns once. `None` when the group was not on the PMU for all of it.
fn count(group: &mut KernelGroup, members: usize, turns: u64) -> Option<Vec<Reading>> {
    let mut before = vec![Reading::default(); members];
    let mut after = before.clone();
    group.disable().ok()?;
    group.read(&mut before).ok()?;
    group.start().ok()?;
    work(turns);
    group.disable().ok()?;
    group.read(&mut after).ok()?;
    let pairs = after.iter().zip(&before);
    let counted: Vec<_> = pairs.map(|(after, before)| after.since(before)).collect();
    let whole = |r: &Reading| r.time_running > 0 && r.time_running >= r.time_enabled;
    counted.iter().all(whole).then_some(counted)
}

fn work(turns: u64) {
    let mut turn = 0;
    while turn < turns {
        turn = black_box(turn + 1);
    }
}

/// This machine, by its kernel.
struct ThisMachine {
    events: EventSource,
}

impl ThisMachine {
    /// Returns the bits of the event on a core PMU.
    fn bits(&self, pmu: usize, event: Hardware) -> EventBits {
        match self.events.core_pmus().place_hardware(event) {
            Placement::Anywhere(bits) => Some(bits),
            placement => placement.on_core(pmu),
        }
        .unwrap_or(EventBits::hardware(event))
    }

    /// Opens a pinned group of up to so many counters in user mode; returns how many it has.
    fn open(&self, pmu: usize, event: Hardware, most: usize) -> Result<(KernelGroup, usize)> {
        open(&self.events, event, self.bits(pmu, event), most)
    }
}

impl Machine for ThisMachine {
    fn keep_on(&self, pmu: &CorePmu) -> Result<()> {
        let refused = |reason: String| {
            Err(Error::new(ErrorKind::NoSuchTarget, attempted(pmu)).with_reason(reason))
        };
        let this_thread = Pid::from_raw(0);
        let may = match sched_getaffinity(this_thread) {
            Ok(may) => may,
            Err(errno) => {
                let error = std::io::Error::from(errno);
                return refused(format!("the CPUs of this thread are not known: {error}"));
            }
        };
        let mut wanted = CpuSet::new();
        for cpu in &pmu.cpus {
            let cpu = *cpu as usize;
            if may.is_set(cpu) == Ok(true) {
                wanted.set(cpu).expect("a CPU that is in a set");
            }
        }
        // The kernel refuses a set of no CPUs.
        if sched_setaffinity(this_thread, &wanted).is_err() {
            return refused("this thread may run on none of its CPUs".to_owned());
        }
        Ok(())
    }

    fn advertised(&self, pmu: usize, event: Hardware) -> Result<usize> {
        Ok(self.open(pmu, event, MOST)?.1)
    }

    fn rounds(&self, pmu: usize, event: Hardware, counters: usize) -> Vec<Vec<Reading>> {
        let Ok((mut group, opened)) = self.open(pmu, event, counters) else {
            return Vec::new();
        };
        (0..ROUNDS)
            .filter_map(|_| round(event, |turns| count(&mut group, opened, turns)))
            .collect()
    }
}

/// Opens a pinned group of up to so many counters of an event in user mode; returns how many it has.
fn open(
    events: &EventSource,
    event: Hardware,
    bits: EventBits,
    most: usize,
) -> Result<(KernelGroup, usize)> {
    let attach = Attach::thread(0);
    let member = PerfEventAttr {
        read_format: ReadPlan::Snapshot.format(),
        ..bits.idle_attr()
    };
    let mut leader = member;
    leader.flags |= AttrFlags::PINNED;
    let mut sibling = member;
    sibling.flags -= AttrFlags::DISABLED;
    let first = perf_event_open(&leader, attach, None)
        .map_err(|failure| refusal(events, event, bits, &leader, failure))?;
    let mut siblings = Vec::new();
    while siblings.len() + 1 < most
        && let Ok(next) = perf_event_open(&sibling, attach, Some(&first))
    {
        siblings.push(next);
    }
    if LEADERS_ARE_OVERLOOKED && fits(&sibling, attach, &first, &mut perf_event_open).is_err() {
        siblings.pop();
    }
    let members = siblings.len() + 1;
    let source = Source::new(ReadPlan::Snapshot, Fds::new(first, siblings))
        .map_err(|errno| refusal(events, event, bits, &leader, OpenFailure::NoId(errno)))?;
    let group = KernelGroup::new(source, false);
    Ok((group, members))
}

/// Returns the error for a kernel that does not count this event.
fn refusal(
    events: &EventSource,
    event: Hardware,
    bits: EventBits,
    attr: &PerfEventAttr,
    failure: OpenFailure,
) -> Error {
    let attach = Attach::thread(0);
    let refused = RefusedMember {
        member: 0,
        attr: Box::new(*attr),
        attach,
        failure,
    };
    let planned = PlannedPart {
        attach,
        part: Part::whole(),
        bits: vec![bits],
    };
    let event = EventSpec::new(event).with_filter(Filter::USER_ONLY);
    let (spec, target) = (GroupSpec::single(event), Target::CurrentThread);
    open_error::explain(&refused, &spec, &target, &planned, events)
}

#[cfg(test)]
mod tests;
