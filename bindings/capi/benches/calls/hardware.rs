//! Calls on counters of the CPU, where it has some: instructions that these counters themselves count, of
//! reads in user space beside the bare loop over mapped pages, and of user and kernel for calls of the kernel.

use quipu::{Count, Counts, EventSet};

use crate::contenders::{Contender, Kind, Step, named};
use crate::figures::{make, prepare};

/// Two measurements differ by so many steps.
const STEPS: u32 = 1000;

/// A counter of instructions around what is measured.
struct Meter {
    set: EventSet,
    counts: Counts,
}

impl Meter {
    fn open(event: &str) -> Result<Self, String> {
        let told = |error: quipu::Error| format!("{error:#}");
        let mut builder = EventSet::builder();
        let mut set = builder
            .events(event)
            .and_then(|builder| builder.open())
            .map_err(told)?;
        if let Some(error) = set.events()[0].error() {
            return Err(format!("{error:#}"));
        }
        set.enable().map_err(told)?;
        let counts = set.counts();
        Ok(Self { set, counts })
    }

    fn read(&mut self) -> Result<u128, String> {
        let told = |error: quipu::Error| format!("{error:#}");
        self.set.read(&mut self.counts).map_err(told)?;
        let event = self.counts.get(0).ok_or("there is no event")?;
        match event.total().map_err(told)? {
            Count::Exact(value) => Ok(value),
            total => Err(format!("the instructions are not exact: {total:?}")),
        }
    }

    /// Returns the instructions of a step: the difference of many and of one, divided by their number.
    fn of(&mut self, by: &str, step: Step, events: usize) -> Result<f64, String> {
        let kind = Kind::Hardware;
        let mut contender = named(by)?;
        prepare(&mut *contender, kind, step, events)?;
        let mut steps = |contender: &mut dyn Contender, steps: u32| -> Result<f64, String> {
            let before = self.read()?;
            for _ in 0..steps {
                make(contender, kind, step, events)?;
            }
            Ok((self.read()? - before) as f64)
        };
        // What is found out once, such as the quicker way to read, is no part of a step.
        steps(&mut *contender, 10)?;
        let least = |figures: [Result<f64, String>; 3]| -> Result<f64, String> {
            figures
                .into_iter()
                .try_fold(f64::INFINITY, |least, figure| Ok(least.min(figure?)))
        };
        // Interrupts add some: the least of three is without.
        let one = least([(); 3].map(|()| steps(&mut *contender, 1)))?;
        let many = least([(); 3].map(|()| steps(&mut *contender, STEPS + 1)))?;
        contender.close();
        Ok((many - one) / f64::from(STEPS))
    }

    /// Returns the instructions of a step of a contender, without what calling one takes.
    fn net(&mut self, by: &str, step: Step, events: usize) -> Result<f64, String> {
        Ok(self.of(by, step, events)? - self.of("idle", step, events)?)
    }
}

/// Prints the rows of calls on counters of the CPU, or the reason why there are none.
pub(crate) fn rows() {
    println!("instructions of calls, on counters of the CPU");
    if let Err(reason) = user_reads() {
        println!("SKIP reads in user space: {reason}");
    }
    if let Err(reason) = calls() {
        println!("SKIP calls of the kernel: {reason}");
    }
}

/// Reads in user space, and what they come to, beside the bare loop.
fn user_reads() -> Result<(), String> {
    let mut meter = Meter::open("instructions:u")?;
    let times = has_times()?;
    for events in [1, 4] {
        let bare = meter.net("mapped", Step::Read, events)?;
        let mut row = |what: &str, by: &str, step: Step, most: f64| -> Result<(), String> {
            let own = meter.net(by, step, events)?;
            let name = format!("{what} of {events} in user space, {by}");
            match (times, events) {
                // The bare loop reads values alone where the page tells no times.
                (false, 1) if step == Step::Exact => {
                    println!("  {name}, page without times: {own:.1} (at most 120)");
                }
                (false, _) => println!("  {name}, page without times: {own:.1}, bare {bare:.1}"),
                (true, _) => println!(
                    "  {name} / bare ({own:.1} and {bare:.1}): {:.2} (at most {most})",
                    own / bare
                ),
            }
            Ok(())
        };
        row("read", "EventSet", Step::Read, 1.3)?;
        row("read with totals", "EventSet", Step::Total, 1.5)?;
        row("exact values", "EventSet", Step::Exact, 1.1)?;
        row("read with totals", "C", Step::Total, 3.0)?;
    }
    Ok(())
}

/// Returns true if mapped pages tell times.
fn has_times() -> Result<bool, String> {
    let mut raw = crate::contenders::Raw::load()?;
    raw.open(Kind::Hardware, 1)?;
    let has_times = raw.has_times();
    raw.close();
    Ok(has_times)
}

/// Calls of the kernel, with its instructions, beside the bare ones.
fn calls() -> Result<(), String> {
    let mut meter = Meter::open("instructions")?;
    for (what, step, by, events, most) in [
        ("start and stop", Step::StartStop, "EventSet", 1, 1.05),
        ("start and stop", Step::StartStop, "EventSet", 4, 1.05),
        ("open and close", Step::OpenClose, "linux", 1, 1.1),
        ("open and close", Step::OpenClose, "EventSet", 1, 1.2),
        ("open and close", Step::OpenClose, "EventSet", 4, 1.2),
    ] {
        let [own, raw] = [by, "raw"].map(|by| meter.net(by, step, events));
        let (own, raw) = (own?, raw?);
        println!(
            "  {what} of {events}, {by} / raw ({own:.0} and {raw:.0}): {:.2} (at most {most})",
            own / raw
        );
    }
    Ok(())
}
