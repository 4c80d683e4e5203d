//! CPU time that no counter saw. When an ordinary user's process executes a program that has more rights than its user, or
//! that the user may not read, Linux ends the counters that are attached to it (`begin_new_exec` in `fs/exec.c`): their
//! values and times stand still, and look like those of a program that did nothing.

use std::time::Duration;

use quipu::command::Exit;
use quipu::{Count, Counts, Event, EventSet, Filter, Software, Target};
use quipu_shell::target::Scope;
use quipu_shell::tasks;

use super::aggregate::AggregateBy;
use super::plan::Plan;
use super::rows::Row;
use super::sets::Sets;

/// The CPU time of a process beyond that of its counters, which start in exec(2) or after a fork, and end before the
/// process does: 60 us were measured. A machine that takes longer to make the process of a command takes longer for these.
const BESIDE_COUNTERS: Duration = Duration::from_micros(250);

/// An exec(2) takes so many times as long at most, which counts if no witness has seen it.
const EXEC: u32 = 4;

/// A context switch takes less than this part of it beside the counters, which count from after it to before the next: 6 to
/// 8 us were measured of a program that waits for a disk.
const SWITCHES: u32 = 20;

/// The time by which the ends of an interval may differ for counters and for CPU times, where others run in between: beside
/// builds on two CPUs an interval of 20 ms lacked more than the millisecond of an exec(2).
const BETWEEN_INTERVALS: Duration = Duration::from_millis(10);

/// The name that stands in the place of a backend's where a count is wait4(2)'s.
pub(super) const WAIT4: &str = "wait4";

/// Returns the reason, and the way out.
pub(super) fn why() -> String {
    format!("{}; as root, count whole CPUs (-a)", tasks::COUNTERS_END)
}

/// The CPU time of what is counted, as the system accounts for it.
#[derive(Debug)]
pub(super) struct CpuTime {
    processes: Vec<Process>,
    /// Forks of the whole machine until the beginning, and until the last interval.
    forks: [u64; 2],
    /// The CPU time of a process beyond that of its counters.
    beside: Duration,
    /// A counter that ends as the others do, and counts exec(2) too.
    witness: Option<Witness>,
    /// True if the last interval had no counters any more.
    pub(super) has_ended: bool,
}

/// A counter of the command that is enabled before it executes. Of what others lack of a command, exec(2) is most: of
/// 1,000 runs of true(1) beside four busy loops on two CPUs, counters that start there lacked 0.77 to 1.12 ms, and this
/// one 0.07 to 0.17 ms.
#[derive(Debug)]
struct Witness {
    set: EventSet,
    counts: Counts,
    /// The time it was enabled, at the last look and at the end of the last interval.
    now: Duration,
    before: Duration,
}

#[derive(Debug)]
struct Process {
    id: i32,
    begun: Duration,
    /// At the end of the last interval.
    before: Duration,
    now: Duration,
    /// Context switches of its first thread, likewise; at the last two since the beginning.
    switches_begun: u64,
    switches_before: u64,
    switches: u64,
}

/// The CPU time of an interval, or of all of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    cpu: Duration,
    /// The CPU time beyond that of counters, of a process.
    beside: Duration,
    /// The CPU time with counters, if there is a witness of it.
    witnessed: Duration,
    /// The number of processes that were made on the whole machine.
    forks: u32,
    /// The number of context switches, as far as it is known.
    switches: u32,
    /// CPU time in which nothing is missed: a process that ends takes some behind its counters. An exec(2) that ends
    /// them can be all that a command does.
    least: Duration,
    /// The time by which its ends may differ for counters.
    apart: Duration,
    /// True if there were no counters any more before.
    has_ended: bool,
}

/// The part of a span that a counter did not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Uncounted {
    Nothing,
    Part,
    /// All, or nearly so: what is counted of exec(2) itself is no count of the program.
    All,
}

impl CpuTime {
    /// Begins with the CPU times of now, if counters of processes and their children are about to count without a break.
    pub(super) fn begin(plan: &Plan, command: Option<i32>) -> Option<Self> {
        let process = |target: &Target| match target {
            Target::Process(id) => Some(*id),
            _ => None,
        };
        let ids: Vec<i32> = match &plan.scope {
            Scope::Command => vec![command?],
            Scope::Tasks(targets) if plan.by != AggregateBy::Thread => {
                targets.iter().map(process).collect::<Option<_>>()?
            }
            _ => return None,
        };
        if !plan.inherits() || plan.delay.is_some() || plan.control.is_some() {
            return None;
        }
        let processes = ids.into_iter().map(|id| {
            let begun = tasks::cpu_time(id)?;
            Some(Process {
                id,
                begun,
                before: begun,
                now: begun,
                switches_begun: tasks::context_switches(id).unwrap_or(0),
                switches_before: 0,
                switches: 0,
            })
        });
        let processes = processes.collect::<Option<Vec<Process>>>()?;
        let of_command = processes.iter().filter(|_| plan.scope == Scope::Command);
        let beside = of_command.map(|process| process.begun).sum::<Duration>();
        Some(Self {
            processes,
            forks: [tasks::forks()?; 2],
            beside: beside.max(BESIDE_COUNTERS),
            witness: command.and_then(Witness::of),
            has_ended: false,
        })
    }

    /// Notes the CPU times of now, before counters are read: they have counted no less. Those of a process that has ended
    /// stay.
    pub(super) fn look(&mut self) {
        for process in &mut self.processes {
            process.now = tasks::cpu_time(process.id).unwrap_or(process.now);
            if let Some(switches) = tasks::context_switches(process.id) {
                process.switches = switches.saturating_sub(process.switches_begun);
            }
        }
        if let Some(witness) = &mut self.witness {
            witness.look();
        }
    }

    /// Returns the interval up to the last look; the only one of a command that has ended is the whole time.
    pub(super) fn interval(&self, exit: Option<&Exit>) -> Span {
        let processes = self.processes.iter();
        if exit.is_some()
            && processes
                .clone()
                .all(|process| process.before == process.begun)
        {
            return self.whole(exit);
        }
        let switches = processes.clone();
        let switches = switches.map(|process| process.switches - process.switches_before);
        Span {
            cpu: processes
                .map(|process| process.now.saturating_sub(process.before))
                .sum(),
            beside: self.beside,
            witnessed: self
                .witness
                .as_ref()
                .map_or(Duration::ZERO, |witness| witness.now - witness.before),
            forks: number(forks_since(self.forks[1])),
            switches: number(switches.sum()),
            least: self.beside * EXEC,
            apart: BETWEEN_INTERVALS,
            has_ended: self.has_ended,
        }
    }

    /// Begins another interval, when the counters have been read.
    pub(super) fn begin_interval(&mut self) {
        self.look();
        for process in &mut self.processes {
            process.before = process.now;
            process.switches_before = process.switches;
        }
        if let Some(witness) = &mut self.witness {
            witness.before = witness.now;
        }
        self.forks[1] += forks_since(self.forks[1]);
    }

    /// Returns the whole time; that of a command that has ended is wait4(2)'s.
    pub(super) fn whole(&self, exit: Option<&Exit>) -> Span {
        let processes = self.processes.iter();
        let begun: Duration = processes.clone().map(|process| process.begun).sum();
        let (now, switches) = match exit {
            Some(exit) => (exit.user_time + exit.system_time, exit.context_switches),
            None => (
                processes.clone().map(|process| process.now).sum(),
                processes.map(|process| process.switches).sum(),
            ),
        };
        Span {
            cpu: now.saturating_sub(begun),
            beside: self.beside,
            witnessed: self
                .witness
                .as_ref()
                .map_or(Duration::ZERO, |witness| witness.now),
            forks: number(forks_since(self.forks[0])),
            switches: number(switches),
            least: match exit {
                Some(_) => Duration::ZERO,
                None => self.beside * EXEC,
            },
            apart: Duration::ZERO,
            has_ended: false,
        }
    }
}

impl Witness {
    /// Returns that of a command that has not executed yet.
    fn of(command: i32) -> Option<Self> {
        let mut set = EventSet::builder();
        set.events("dummy:u").ok()?;
        set.target(Target::Process(command)).inherit(true);
        let mut set = set.open_all().ok()?;
        set.enable().ok()?;
        Some(Self {
            counts: set.counts(),
            set,
            now: Duration::ZERO,
            before: Duration::ZERO,
        })
    }

    fn look(&mut self) {
        if self.set.read(&mut self.counts).is_err() {
            return;
        }
        let parts = self.counts.events().filter_map(|event| event.parts().ok());
        let longest = parts
            .flatten()
            .map(|(_, reading)| reading.time_enabled)
            .max();
        self.now = longest.map_or(self.now, Duration::from_nanos);
    }
}

fn number(counted: u64) -> u32 {
    u32::try_from(counted).unwrap_or(u32::MAX)
}

/// Returns the number of forks of the machine since there were so many.
fn forks_since(before: u64) -> u64 {
    tasks::forks().unwrap_or(before).saturating_sub(before)
}

impl Span {
    /// Returns the part of the time in which a counter was not there that was enabled for so long in all.
    fn uncounted(self, enabled: Duration) -> Uncounted {
        if self.cpu <= self.least && !self.has_ended {
            return Uncounted::Nothing;
        }
        // Of scripts that do nothing but fork, counters had two thirds at least.
        let of_forks = self.beside.saturating_mul(self.forks);
        let of_switches = (self.beside / SWITCHES).saturating_mul(self.switches);
        let of_both = of_forks.saturating_add(of_switches).min(self.cpu / 5 * 2);
        let beside = self.beside * EXEC + of_both + self.cpu / 20 + self.apart;
        let longest = enabled.max(self.witnessed);
        let lacks_a_fifth = self.cpu.saturating_sub(longest) > self.cpu / 5;
        if (enabled < self.cpu / 10 && lacks_a_fifth) || (self.has_ended && enabled.is_zero()) {
            Uncounted::All
        } else if longest.saturating_add(beside) < self.cpu {
            Uncounted::Part
        } else {
            Uncounted::Nothing
        }
    }

    /// Returns the times enabled and running, in nanoseconds, with what was not counted as time not running.
    #[cfg(target_os = "linux")]
    pub(super) fn times(self, [enabled, running]: [u64; 2]) -> [u64; 2] {
        let whole = enabled.max(self.cpu.as_nanos() as u64);
        match self.uncounted(Duration::from_nanos(enabled)) {
            Uncounted::Nothing => [enabled, running],
            Uncounted::Part => [whole, running],
            Uncounted::All => [whole, 0],
        }
    }

    /// Marks the counts of processes that lack a part of this time. What wait4(2) knows of a command that has ended stands
    /// in their place. Returns true if there were no counters any more.
    pub(super) fn mark(self, sets: &Sets, rows: &mut [Row], exit: Option<&Exit>) -> bool {
        let of_processes = |row: &Row| {
            let event = sets.named(&row.name);
            event.filter(|(index, _)| sets.follows_processes(*index))
        };
        // All counters of a task end at once: one alone has its own reason, as a pinned one without room has.
        let longest = rows.iter().filter(|row| of_processes(row).is_some());
        let longest = longest.map(|row| row.enabled).max().unwrap_or(0);
        if self.uncounted(Duration::from_nanos(longest)) == Uncounted::Nothing {
            return false;
        }
        let mut has_ended = false;
        for row in rows {
            let (Some((_, event)), Some(value)) = (of_processes(row), row.count.value()) else {
                continue;
            };
            let enabled = Duration::from_nanos(row.enabled);
            let uncounted = self.uncounted(enabled);
            if uncounted == Uncounted::Nothing {
                continue;
            }
            has_ended |= uncounted == Uncounted::All;
            let in_every_mode =
                event.fell_back_to_user() || row.spec.filter.contains(Filter::LEVELS);
            let known = exit
                .filter(|_| in_every_mode)
                .and_then(|exit| known_at_exit(row, exit));
            if let Some(value) = known {
                if event.fell_back_to_user() {
                    row.name = row.name.strip_suffix(":u").unwrap_or(&row.name).into();
                }
                row.backend = Some(WAIT4);
                row.count = Count::Exact(value);
                row.time = self.cpu.as_nanos() as u64;
                (row.enabled, row.running) = (row.time, row.time);
            } else if uncounted == Uncounted::All {
                row.count = Count::NotCounted;
                row.running = 0;
                row.reason = Some(why());
            } else {
                row.count = Count::of_parts(value, row.count.is_estimate(), 1, 2);
                row.disturbance = Some(format!(
                    "{enabled:.1?} of {:.1?} on CPUs were counted: {}",
                    self.cpu,
                    why()
                ));
            }
        }
        has_ended
    }
}

/// Returns what wait4(2) says of a command's event.
fn known_at_exit(row: &Row, exit: &Exit) -> Option<u128> {
    let Event::Software(event) = row.event() else {
        return None;
    };
    Some(match event {
        Software::TaskClock => {
            let all = exit.user_time + exit.system_time;
            all.saturating_sub(exit.time_before).as_nanos()
        }
        Software::PageFaults => u128::from(exit.minor_faults) + u128::from(exit.major_faults),
        Software::MinorFaults => exit.minor_faults.into(),
        Software::MajorFaults => exit.major_faults.into(),
        Software::ContextSwitches => exit.context_switches.into(),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uncounted(cpu: u64, forks: u32, enabled: u64) -> Uncounted {
        uncounted_of(cpu, (forks, 0), enabled)
    }

    fn uncounted_of(cpu: u64, (forks, switches): (u32, u32), enabled: u64) -> Uncounted {
        let span = Span {
            forks,
            switches,
            ..span(cpu, 0)
        };
        span.uncounted(Duration::from_micros(enabled))
    }

    fn span(cpu: u64, witnessed: u64) -> Span {
        Span {
            cpu: Duration::from_micros(cpu),
            beside: BESIDE_COUNTERS,
            witnessed: Duration::from_micros(witnessed),
            forks: 1,
            switches: 0,
            least: Duration::ZERO,
            apart: Duration::ZERO,
            has_ended: false,
        }
    }

    /// Times as they were measured on Linux 6.18.
    #[test]
    fn programs_that_end_their_counters_are_told_from_others() {
        use Uncounted::{All, Nothing, Part};
        // A static program that exits at once, a dynamic one, one that runs for a second.
        assert_eq!(uncounted(416, 1, 78), Nothing);
        assert_eq!(uncounted(800, 1, 579), Nothing);
        assert_eq!(uncounted(1_001_012, 1, 998_404), Nothing);
        // Shells that make processes which do nothing, and threads.
        assert_eq!(uncounted(8_481, 21, 5_803), Nothing);
        assert_eq!(uncounted(442_598, 2_001, 326_374), Nothing);
        assert_eq!(uncounted(156_268, 201, 147_273), Nothing);
        // Counters that ended, of a short program, a long one, and a part of a script.
        assert_eq!(uncounted(750, 1, 13), All);
        assert_eq!(uncounted(51_534, 1, 22), All);
        assert_eq!(uncounted(153_755, 3, 51_955), Part);
        // A program that waits for a disk, and one whose counters ended, which did so as often.
        assert_eq!(uncounted_of(273_270, (1, 5_336), 227_990), Nothing);
        assert_eq!(uncounted_of(273_270, (1, 40), 227_990), Part);
        assert_eq!(uncounted_of(273_270, (1, 5_336), 91_090), Part);
        assert_eq!(uncounted_of(273_270, (1, 5_336), 21), All);
        // Beside whatever many other processes of the machine.
        assert_eq!(uncounted(153_755, 1000, 51_955), Part);
        // What has not run has not been missed, and neither has the end of a process that was asleep.
        assert_eq!(uncounted(0, 0, 0), Nothing);
        let asleep = Span {
            least: BESIDE_COUNTERS * EXEC,
            ..span(400, 0)
        };
        assert_eq!(asleep.uncounted(Duration::ZERO), Nothing);
        // An interval whose ends were apart, and one that lacks more.
        let interval = |cpu, enabled| {
            let apart = BETWEEN_INTERVALS;
            let span = Span {
                apart,
                ..span(cpu, 0)
            };
            span.uncounted(Duration::from_micros(enabled))
        };
        assert_eq!(interval(18_000, 9_070), Nothing);
        assert_eq!(interval(50_000, 9_070), Part);
    }

    /// A machine whose processor was away while a command executed.
    #[test]
    fn what_the_witness_saw_is_not_missing() {
        use Uncounted::{All, Nothing, Part};
        let uncounted = |cpu, witnessed, enabled| {
            span(cpu, witnessed).uncounted(Duration::from_micros(enabled))
        };
        assert_eq!(uncounted(2_200, 0, 501), Part);
        assert_eq!(uncounted(2_200, 2_100, 501), Nothing);
        assert_eq!(uncounted(2_200, 2_100, 80), Nothing);
        assert_eq!(uncounted(51_534, 1_800, 22), All);
        assert_eq!(uncounted(153_755, 52_300, 51_955), Part);
        assert_eq!(uncounted(153_755, 153_500, 51_955), Nothing);
    }
}
