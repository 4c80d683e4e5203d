//! From LIKWID's names of groups and events to those that are counted here.

use quipu::NativeEvents;

/// A group of events: what is measured until the program asks for the next one.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct EventGroup {
    /// The events, as they are counted.
    pub(crate) events: Vec<String>,
}

/// The groups of events that LIKWID_EVENTS asks for.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Request {
    pub(crate) groups: Vec<EventGroup>,
    /// Sentences on what has no counterpart.
    pub(crate) missing: Vec<String>,
}

/// Groups of LIKWID that consist of events which are here under other names on any CPU. Others measure what depends on the
/// CPU's own events, whose sums would have LIKWID's name and another meaning.
const GROUPS: [(&str, &str); 7] = [
    ("BRANCH", "instructions,cycles,branches,branch-misses"),
    ("CLOCK", "instructions,cycles,task-clock"),
    ("FLOPS_DP", "instructions,cycles,PAPI_DP_OPS"),
    ("FLOPS_SP", "instructions,cycles,PAPI_SP_OPS"),
    (
        "ICACHE",
        "instructions,cycles,L1-icache-loads,L1-icache-load-misses",
    ),
    (
        "TLB_DATA",
        "instructions,cycles,dTLB-loads,dTLB-load-misses",
    ),
    (
        "TLB_INSTR",
        "instructions,cycles,iTLB-loads,iTLB-load-misses",
    ),
];

/// Events of LIKWID that are not named as by the CPU's vendor.
const EVENTS: [(&str, &str); 5] = [
    ("INSTR_RETIRED_ANY", "instructions"),
    ("CPU_CLK_UNHALTED_CORE", "cycles"),
    ("CPU_CLK_UNHALTED_REF", "ref-cycles"),
    ("ACTUAL_CPU_CLOCK", "msr/aperf/"),
    ("MAX_CPU_CLOCK", "msr/mperf/"),
];

/// Returns what a value of LIKWID_EVENTS asks for: groups with `|` between them, each the name of one or a list of events.
pub(crate) fn parse(text: &str) -> Request {
    parse_with(text, native_name)
}

fn parse_with(text: &str, native: impl Fn(&str) -> Option<String>) -> Request {
    let mut request = Request::default();
    for asked in text
        .split('|')
        .map(str::trim)
        .filter(|asked| !asked.is_empty())
    {
        let mut group = EventGroup::default();
        match GROUPS.iter().find(|(name, _)| *name == asked) {
            Some((_, events)) => group.events.extend(events.split(',').map(str::to_owned)),
            None if is_name_of_group(asked) && native(asked).is_none() => {
                request.missing.push(format!("no group {asked}"));
            }
            None => {
                for event in asked.split(',').map(str::trim) {
                    match event_of(event, &native) {
                        Ok(event) => group.events.push(event),
                        Err(reason) => request.missing.push(format!("{event}: {reason}")),
                    }
                }
            }
        }
        if !group.events.is_empty() {
            request.groups.push(group);
        }
    }
    request
}

/// Returns true of what LIKWID would look for a file of.
fn is_name_of_group(asked: &str) -> bool {
    asked
        .bytes()
        .all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

/// Returns the event that stands for `EVENT:COUNTER` of LIKWID, or for a name of Quipu's, which is taken as it is.
fn event_of(asked: &str, native: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut words = asked.split(':');
    let name = words.next().unwrap_or_default();
    let Some(counter) = words.next().filter(|counter| is_counter(counter)) else {
        return Ok(asked.to_owned());
    };
    if let Some(option) = words.next() {
        return Err(format!("the option {option} has no counterpart"));
    }
    if let Some((_, event)) = EVENTS.iter().find(|(likwid, _)| *likwid == name) {
        return Ok((*event).to_owned());
    }
    native(name).ok_or_else(|| format!("this CPU has no event that is named so (of {counter})"))
}

/// Returns true of the name of a register: FIXC0, PMC1, MBOX0C1, PWR0.
fn is_counter(word: &str) -> bool {
    let is_of_name = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
    word.starts_with(|first: char| first.is_ascii_uppercase())
        && word.ends_with(|last: char| last.is_ascii_digit())
        && word.bytes().all(is_of_name)
}

/// Returns the CPU's event of a name in which LIKWID has underscores for all that is no letter and no digit.
fn native_name(likwid: &str) -> Option<String> {
    let plain = |name: &str| -> String {
        let plain = |letter: char| {
            if letter.is_ascii_alphanumeric() {
                letter
            } else {
                '_'
            }
        };
        name.chars()
            .map(plain)
            .map(|letter| letter.to_ascii_uppercase())
            .collect()
    };
    let tables = NativeEvents::this().tables().ok()?;
    let event = tables.iter().find_map(|table| {
        let mut events = table.events().into_iter();
        events.find(|event| plain(&event.name) == likwid)
    });
    event.map(|event| event.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (Vec<Vec<String>>, Vec<String>) {
        let native = |name: &str| (name == "L2_RQSTS_MISS").then(|| "L2_RQSTS.MISS".to_owned());
        let request = parse_with(text, native);
        let groups = request.groups.into_iter().map(|group| group.events);
        (groups.collect(), request.missing)
    }

    #[test]
    fn events_have_the_names_of_here() {
        let (groups, missing) = parsed(
            "INSTR_RETIRED_ANY:FIXC0,L2_RQSTS_MISS:PMC0,page-faults:u,NONE:PMC1,L2_RQSTS_MISS:PMC2:EDGEDETECT",
        );
        assert_eq!(groups, [["instructions", "L2_RQSTS.MISS", "page-faults:u"]]);
        assert_eq!(
            missing,
            [
                "NONE:PMC1: this CPU has no event that is named so (of PMC1)",
                "L2_RQSTS_MISS:PMC2:EDGEDETECT: the option EDGEDETECT has no counterpart",
            ]
        );
    }

    #[test]
    fn groups_are_counted_where_their_meaning_is_that_of_events_here() {
        let (groups, missing) = parsed("BRANCH|MEM|page-faults");
        let branch = ["instructions", "cycles", "branches", "branch-misses"].map(str::to_owned);
        assert_eq!(groups, [branch.to_vec(), vec!["page-faults".to_owned()]]);
        assert_eq!(missing, ["no group MEM"]);
    }

    /// A name that no parser takes would turn all others off.
    #[test]
    fn each_counterpart_is_the_text_of_an_event() {
        let groups = GROUPS.iter().map(|(_, events)| *events);
        for events in groups.chain(EVENTS.iter().map(|(_, event)| *event)) {
            quipu::EventSet::builder().events(events).expect(events);
        }
    }
}
