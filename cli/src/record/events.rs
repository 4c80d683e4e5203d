//! Which events are sampled, and how often.

use quipu::{Attributes, Event, EventSpec, Hardware, NativeEvents, Software};
use quipu_hal::{Backend, Features, Precision, text};
use quipu_linux::LinuxBackend;
use quipu_linux::sampling::{Rate, SampledEvent};

use crate::event_text::{self, EventText, Said};
use crate::failure::Failure;

use super::options::Options;
use super::tracepoints;

/// Samples in a second unless something else is asked for, as perf has it.
const USUAL_FREQUENCY: u64 = 4000;

/// The events to sample.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Events {
    pub(super) list: Vec<SampledEvent>,
    /// The rate that the text of each event says.
    own_rates: Vec<Option<Rate>>,
    /// The attributes that the events ask for: pinned, exclusive.
    pub(super) attributes: Attributes,
    /// Notes on the choice for the user.
    pub(super) notes: Vec<String>,
}

/// Returns the events that are asked for, or the best clock that there is.
pub(super) fn events(options: &Options, backend: &LinuxBackend) -> Result<Events, Failure> {
    let mut events = if options.event.is_empty() {
        let features = Backend::capabilities(backend).features;
        default_event(features.contains(Features::HARDWARE_EVENTS))
    } else {
        named(&options.event)?
    };
    let most = Rate::most_frequent();
    let mut too_high = None;
    for (sampled, own) in events.list.iter_mut().zip(&events.own_rates) {
        sampled.rate = own.unwrap_or_else(|| rate(options, &sampled.event.event));
        if let (Rate::Frequency(wanted), Some(most)) = (&mut sampled.rate, most)
            && *wanted > most
        {
            too_high = Some((std::mem::replace(wanted, most), most));
        }
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

fn default_event(has_pmu: bool) -> Events {
    let (event, note) = if has_pmu {
        let cycles = EventSpec::new(Hardware::Cycles);
        (cycles.with_precision(Precision::Best), None)
    } else {
        let note = "there is no CPU PMU here: sampling cpu-clock instead of cycles";
        (EventSpec::new(Software::CpuClock), Some(note))
    };
    Events {
        list: vec![sampled(event)],
        own_rates: vec![None],
        attributes: Attributes::default(),
        notes: note.into_iter().map(str::to_owned).collect(),
    }
}

fn sampled(event: EventSpec) -> SampledEvent {
    SampledEvent::new(event, Rate::Frequency(USUAL_FREQUENCY))
}

fn named(texts: &[String]) -> Result<Events, Failure> {
    let (mut list, mut own_rates) = (Vec::new(), Vec::new());
    let mut attributes: Option<Attributes> = None;
    for text in texts {
        let text = EventText::read(text, &event_text::tracepoints).map_err(Failure::usage)?;
        let groups =
            text::parse_list_with(&text.list, &|name| NativeEvents::this().ends_in_mask(name))
                .map_err(|e| Failure::usage(format_args!("{e:#}")))?;
        for (group, said) in groups.into_iter().zip(text.said) {
            let [event] = group.members.as_slice() else {
                return Err(Failure::usage(format_args!(
                    "{group} is a group: events are sampled one by one, so leave the braces out"
                )));
            };
            if attributes.is_some_and(|others| others != group.attributes) {
                return Err(Failure::usage(
                    "all events are recorded into one ring buffer: pin all of them (:D) or none, and likewise :e",
                ));
            }
            attributes = Some(group.attributes);
            list.push(sampled(event.clone()));
            own_rates.push(match said {
                Said {
                    period: Some(period),
                    ..
                } => Some(Rate::Period(period)),
                Said {
                    frequency: Some(frequency),
                    ..
                } => Some(Rate::Frequency(frequency)),
                _ => None,
            });
        }
    }
    Ok(Events {
        list,
        own_rates,
        attributes: attributes.unwrap_or_default(),
        notes: Vec::new(),
    })
}

/// Returns the rate that is asked for, which the kernel may not allow.
fn rate(options: &Options, event: &Event) -> Rate {
    match (options.count, options.frequency) {
        (Some(period), _) => Rate::Period(period),
        (None, Some(frequency)) => Rate::Frequency(frequency),
        // Each of them means something, and there is no knowing how often they happen.
        (None, None) if is_single(event) => Rate::Period(1),
        (None, None) => Rate::Frequency(USUAL_FREQUENCY),
    }
}

/// Tracepoints and breakpoints.
fn is_single(event: &Event) -> bool {
    matches!(event, Event::Breakpoint(_)) || tracepoints::parts(event).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(event: &str) -> Options {
        Options {
            event: vec![event.into()],
            ..Options::default()
        }
    }

    fn rates(options: &Options) -> Vec<Rate> {
        let events = named(&options.event).expect("well-formed");
        let rates = events.list.iter().map(|e| rate(options, &e.event.event));
        rates.collect()
    }

    #[test]
    fn without_a_pmu_the_clock_is_sampled_and_that_is_said() {
        let (with, without) = (default_event(true), default_event(false));
        assert_eq!(with.list[0].event.to_string(), "cycles:P");
        assert_eq!(with.notes, [""; 0]);
        assert_eq!(without.list[0].event.to_string(), "cpu-clock");
        assert!(without.notes[0].contains("no CPU PMU"));
    }

    #[test]
    fn what_happens_singly_is_sampled_singly() {
        let mut options = options("sched:sched_switch,mem:0x1000:x");
        assert_eq!(rates(&options), [Rate::Period(1); 2]);
        options.count = Some(7);
        assert_eq!(rates(&options), [Rate::Period(7); 2]);
        options.count = None;
        options.frequency = Some(10);
        assert_eq!(rates(&options), [Rate::Frequency(10); 2]);
    }

    #[test]
    fn groups_and_mixed_attributes_are_refused() {
        for (text, word) in [
            ("{cs,faults}", "braces"),
            ("cs:D,faults", "pin"),
            ("cs,,cs", "4"),
        ] {
            let failure = named(&[text.into()]).expect_err(text);
            assert!(failure.to_string().contains(word), "{failure}");
        }
        let both = named(&["cs:D,faults:D".into()]).expect("all are pinned");
        assert!(both.attributes.pinned);
    }
}
