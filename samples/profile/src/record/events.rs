//! Which events are sampled, and how often.

use quipu::{Attributes, Event, EventSpec, Filter, Hardware, Machine, NativeEvents, Software};
use quipu_hal::{Backend, Features, Precision};
use quipu_linux::LinuxBackend;
use quipu_linux::sampling::{Rate, SampledEvent};
use quipu_text::Settings;

use quipu_shell::{Failure, WithTracepoints};

use super::off_cpu;
use super::options::{Frequency, Options};
use super::tracepoints;

/// Samples in a second unless something else is asked for, as perf has it.
const USUAL_FREQUENCY: u64 = 4000;

/// The events to sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Events {
    pub(super) list: Vec<SampledEvent>,
    /// The settings beside each event in its text.
    settings: Vec<Settings>,
    /// The attributes that the events ask for: pinned, exclusive.
    pub(super) attributes: Attributes,
    /// True if a group is sampled by its leader, whose samples hold the values of the others (`:S`).
    pub(super) reads_groups: bool,
    /// True for members of groups that are sampled one by one where there is no room for the group (`:W`).
    pub(super) weak: Vec<bool>,
    /// Notes on the choice for the user.
    pub(super) notes: Vec<String>,
}

/// Returns the events that are asked for, or the best clock that there is: with times off the CPU, that of nanoseconds.
pub(super) fn events(options: &Options, backend: &LinuxBackend) -> Result<Events, Failure> {
    let mut events = if options.sampling.event.is_empty() && options.off_cpu {
        // In the unit of the time off the CPU.
        of_one(EventSpec::new(Software::CpuClock), None)
    } else if options.sampling.event.is_empty() {
        let features = Backend::capabilities(backend).features;
        default_event(match features.contains(Features::HARDWARE_EVENTS) {
            true => Machine::this()
                .check_sampling(&Hardware::Cycles.into())
                .map_err(|e| e.reason().unwrap_or(e.attempted()).to_owned()),
            false => Err("there is no CPU PMU here".to_owned()),
        })
    } else {
        named(&options.sampling.event)?
    };
    let most = Rate::most_frequent();
    let mut too_high = None;
    for (sampled, settings) in events.list.iter_mut().zip(&events.settings) {
        if sampled.rate != Rate::Never {
            sampled.rate =
                own_rate(settings).map_or_else(|| rate(options, &sampled.event.event), Ok)?;
        }
        if let (Rate::Frequency(wanted), Some(most)) = (&mut sampled.rate, most)
            && *wanted > most
        {
            too_high = Some((std::mem::replace(wanted, most), most));
        }
    }
    let level = match (options.all_user, options.all_kernel) {
        (true, _) => Some(Filter::USER),
        (_, true) => Some(Filter::KERNEL),
        _ => None,
    };
    if let Some(level) = level {
        let narrowed = events
            .list
            .iter_mut()
            .filter(|sampled| has_levels(&sampled.event));
        narrowed.for_each(|sampled| sampled.event.filter = sampled.event.filter.with_levels(level));
    }
    if options.off_cpu {
        events.list.push(off_cpu::event());
        let mut named = Settings::default();
        named.name = Some(off_cpu::NAME.to_owned());
        events.settings.push(named);
        events.weak.push(false);
    }
    if let Some((wanted, most)) = too_high {
        let limit = format!(
            "{wanted} samples a second are more than the kernel allows: kernel.perf_event_max_sample_rate is {most}"
        );
        if options.strict_freq {
            return Err(Failure::usage(limit));
        }
        events.notes.push(format!("{limit}; taking {most}"));
    }
    Ok(events)
}

/// Returns the cycles of the CPU, or the clock if these cannot be sampled, for this reason.
fn default_event(cycles: Result<(), String>) -> Events {
    let (event, note) = match cycles {
        Ok(()) => {
            let cycles = EventSpec::new(Hardware::Cycles);
            (cycles.with_precision(Precision::Best), None)
        }
        Err(reason) => {
            let note = format!("{reason}: sampling cpu-clock instead of cycles");
            (EventSpec::new(Software::CpuClock), Some(note))
        }
    };
    of_one(event, note)
}

fn of_one(event: EventSpec, note: Option<String>) -> Events {
    Events {
        list: vec![sampled(event)],
        settings: vec![Settings::default()],
        attributes: Attributes::default(),
        reads_groups: false,
        weak: vec![false],
        notes: note.into_iter().collect(),
    }
}

fn sampled(event: EventSpec) -> SampledEvent {
    SampledEvent::new(event, Rate::Frequency(USUAL_FREQUENCY))
}

fn named(texts: &[String]) -> Result<Events, Failure> {
    let mut events = Events {
        list: Vec::new(),
        settings: Vec::new(),
        attributes: Attributes::default(),
        reads_groups: false,
        weak: Vec::new(),
        notes: Vec::new(),
    };
    let mut scheduling: Option<(bool, bool)> = None;
    for text in texts {
        let groups = quipu_text::parse(text, &WithTracepoints(&**NativeEvents::this()))
            .map_err(|e| Failure::usage(format_args!("{e:#}")))?;
        for group in groups {
            let asked = group.attributes;
            let own = (asked.pinned, asked.exclusive);
            if *scheduling.get_or_insert(own) != own {
                return Err(Failure::usage(
                    "all events are recorded into one ring buffer: pin all of them (:D) or none, and likewise :e",
                ));
            }
            let by_leader = asked.sampled_by_leader && group.members.len() > 1;
            events.reads_groups |= by_leader;
            for (at, parsed) in group.members.into_iter().enumerate() {
                let mut member = sampled(parsed.spec);
                member.is_member = at > 0;
                if by_leader && at > 0 {
                    member.rate = Rate::Never;
                }
                events.list.push(member);
                events.settings.push(parsed.settings);
                events.weak.push(asked.weak);
            }
        }
    }
    let (pinned, exclusive) = scheduling.unwrap_or_default();
    events.attributes = events
        .attributes
        .with_pinned(pinned)
        .with_exclusive(exclusive);
    Ok(events)
}

impl Events {
    /// Returns the names of the events for people: what they were called, else as they are written.
    pub(super) fn names(&self) -> Vec<Option<String>> {
        self.settings
            .iter()
            .map(|settings| settings.name.clone())
            .collect()
    }
}

/// Returns the rate that the text of an event says.
fn own_rate(settings: &Settings) -> Option<Rate> {
    let period = settings.period.map(Rate::Period);
    period.or(settings.frequency.map(Rate::Frequency))
}

/// Returns the rate that is asked for, which the kernel may not allow.
fn rate(options: &Options, event: &Event) -> Result<Rate, Failure> {
    Ok(match (options.sampling.count, options.sampling.frequency) {
        (Some(period), _) => Rate::Period(period),
        (None, Some(Frequency::Of(frequency))) => Rate::Frequency(frequency),
        (None, Some(Frequency::Max)) => Rate::most_frequent().map(Rate::Frequency).ok_or_else(|| {
            Failure::usage(
                "-F max: the kernel does not tell its limit (kernel.perf_event_max_sample_rate); name a number",
            )
        })?,
        // Each of them means something, and there is no knowing how often they happen.
        (None, None) if is_single(event) => Rate::Period(1),
        (None, None) => Rate::Frequency(USUAL_FREQUENCY),
    })
}

/// Returns true for an event that happens in user mode and in the kernel and was not asked for in some of them. What
/// only the kernel does has no other level: its switches, its tracepoints.
fn has_levels(event: &EventSpec) -> bool {
    use Software as S;
    let of_kernel = match &event.event {
        Event::Software(event) => matches!(
            event,
            S::ContextSwitches | S::CpuMigrations | S::CgroupSwitches
        ),
        event => tracepoints::parts(event).is_some(),
    };
    !of_kernel && event.filter.contains(Filter::LEVELS)
}

/// Tracepoints and breakpoints.
fn is_single(event: &Event) -> bool {
    matches!(event, Event::Breakpoint(_)) || tracepoints::parts(event).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SamplingOptions;

    fn options(event: &str) -> Options {
        Options {
            sampling: SamplingOptions {
                event: vec![event.into()],
                ..SamplingOptions::default()
            },
            ..Options::default()
        }
    }

    fn rates(options: &Options) -> Vec<Rate> {
        let events = named(&options.sampling.event).expect("well-formed");
        let rates = events.list.iter().map(|e| rate(options, &e.event.event));
        rates.map(|rate| rate.expect("a rate")).collect()
    }

    #[test]
    fn without_a_pmu_the_clock_is_sampled_and_that_is_said() {
        let none = Err("there is no CPU PMU here".to_owned());
        let (with, without) = (default_event(Ok(())), default_event(none));
        assert_eq!(with.list[0].event.to_string(), "cycles:P");
        assert_eq!(with.notes, [""; 0]);
        assert_eq!(without.list[0].event.to_string(), "cpu-clock");
        assert!(without.notes[0].contains("no CPU PMU"));
    }

    #[test]
    fn what_happens_singly_is_sampled_singly() {
        let mut options = options("sched:sched_switch,mem:0x1000:x");
        assert_eq!(rates(&options), [Rate::Period(1); 2]);
        options.sampling.count = Some(7);
        assert_eq!(rates(&options), [Rate::Period(7); 2]);
        options.sampling.count = None;
        options.sampling.frequency = Some(Frequency::Of(10));
        assert_eq!(rates(&options), [Rate::Frequency(10); 2]);
    }

    #[test]
    fn the_leader_of_a_group_samples_for_its_members() {
        let of = |text: &str| {
            let events = named(&[text.into()]).expect(text);
            let members = events
                .list
                .iter()
                .map(|e| (e.is_member, e.rate == Rate::Never));
            (members.collect::<Vec<_>>(), events.reads_groups)
        };
        let (lead, own, none) = ((false, false), (true, false), (true, true));
        assert_eq!(of("{cs,faults},cs"), (vec![lead, own, lead], false));
        assert_eq!(of("{cs,faults}:S,cs"), (vec![lead, none, lead], true));
        assert_eq!(of("{cs}:S,{cs,cs}"), (vec![lead, lead, own], false));
    }

    #[test]
    fn what_only_the_kernel_does_keeps_its_level() {
        let has = |text: &str| {
            let events = named(&[text.into()]).expect(text);
            has_levels(&events.list[0].event)
        };
        assert!(has("cycles") && has("faults") && has("cpu-clock"));
        assert!(!has("cs") && !has("sched:sched_switch") && !has("cycles:u") && !has("faults:k"));
    }

    #[test]
    fn mixed_attributes_are_refused() {
        for (text, word) in [("cs:D,faults", "pin"), ("cs,,cs", "4")] {
            let failure = named(&[text.into()]).expect_err(text);
            assert!(failure.to_string().contains(word), "{failure}");
        }
        let both = named(&["cs:D,faults:D".into()]).expect("all are pinned");
        assert!(both.attributes.pinned);
    }
}
