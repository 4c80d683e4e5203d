//! Text of every representable event reads back as that event, and no text does harm.

use proptest::prelude::*;
use quipu_hal::{
    Attributes, Breakpoint, BreakpointAccess, CacheEvent, Event, EventSpec, Filter, GroupSpec,
    Hardware, PmuEvent, Precision, Probe, RawEvent, Software, Term, TermValue,
};
use quipu_text::{NoNames, nearest, parse, parse_event, parse_list, parse_spec};

fn list(text: &str) -> quipu_hal::Result<Vec<GroupSpec>> {
    parse_list(text, &NoNames)
}

/// Strings of any characters, and strings of pieces that mean something.
fn text() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "a",
        "u",
        "k",
        "p",
        "D",
        "e",
        ":",
        "::",
        "-",
        "=",
        ",",
        "/",
        "{",
        "}",
        "'",
        "\\",
        " ",
        "\n",
        "\u{0}",
        "0x",
        "1",
        "7f",
        "r",
        "raw",
        "mem:",
        "tracepoint:",
        "cycles",
        "L1-dcache",
        "-loads",
        "config",
        "config1",
        "sched",
        "name",
        "period",
        "freq=1",
        "kprobe",
        "l1d",
        "REPLACEMENT",
        "_",
        ".",
        "*",
        "?",
        "é",
        "\u{202e}",
    ]);
    prop_oneof![
        any::<String>(),
        "\\PC{0,12}",
        "[a-zA-Z0-9_.:=-]{0,12}",
        prop::collection::vec(pieces, 0..8).prop_map(|pieces| pieces.concat()),
    ]
}

/// Names that are the beginning of other events, and of native ones that begin as a cache's.
#[test]
fn names_before_modifiers_read_back() {
    let names = [
        "kprobe",
        "uretprobe",
        "mem",
        "tracepoint",
        "raw",
        "r",
        "u",
        "L1D:PENDING",
        "Branch:rs",
    ];
    let none = Filter::all().with_levels(Filter::empty());
    for (name, filter) in names
        .into_iter()
        .flat_map(|name| [(name, Filter::USER_ONLY), (name, none)])
    {
        let event = EventSpec::new(Event::Named(name.into())).with_filter(filter);
        let mut group = GroupSpec::single(event);
        group.attributes.pinned = true;
        let text = group.to_string();
        assert_eq!(list(&text), Ok(vec![group]), "{text}");
    }
}

fn event() -> impl Strategy<Value = Event> {
    let word = || prop_oneof![Just(0), Just(1), any::<u64>()];
    let value = prop_oneof![
        any::<u64>().prop_map(TermValue::Number),
        (0..20u64).prop_map(TermValue::Number),
        text().prop_map(TermValue::Text),
    ];
    let term = (text(), prop::option::of(value)).prop_map(|(name, value)| Term { name, value });
    let pmu = prop_oneof![Just("raw".to_owned()), Just("cpu".to_owned()), text()];
    let caches: Vec<_> = CacheEvent::all().collect();
    prop_oneof![
        prop::sample::select(Hardware::ALL.to_vec()).prop_map(Event::from),
        prop::sample::select(Software::ALL.to_vec()).prop_map(Event::from),
        prop::sample::select(caches).prop_map(Event::from),
        (word(), word(), word(), word()).prop_map(|(config, config1, config2, config3)| {
            RawEvent::new(config)
                .with_extra([config1, config2, config3])
                .into()
        }),
        (
            any::<u64>(),
            any::<u8>(),
            prop::sample::select(BreakpointAccess::ALL.to_vec())
        )
            .prop_map(|(address, len, access)| Breakpoint {
                address,
                len,
                access
            }
            .into()),
        (pmu, prop::collection::vec(term, 0..4))
            .prop_map(|(pmu, terms)| PmuEvent { pmu, terms }.into()),
        (text(), text()).prop_map(|(system, name)| Event::Tracepoint { system, name }),
        text().prop_map(Event::Named),
        (
            prop::option::of(text()),
            prop::option::of(text()),
            word(),
            any::<bool>()
        )
            .prop_map(|(object, symbol, offset, on_return)| {
                let mut probe = Probe::kernel("");
                probe.object = object.map(Into::into);
                probe.symbol = symbol;
                probe.on_return = on_return;
                probe.at(offset).into()
            }),
    ]
}

/// A tracepoint with a condition.
fn conditional() -> impl Strategy<Value = EventSpec> {
    let name = || "[a-z][a-z0-9_]{0,8}";
    let tracepoint = prop_oneof![
        (name(), name()).prop_map(|(system, name)| Event::Named(format!("{system}:{name}"))),
        (text(), text()).prop_map(|(system, name)| Event::Tracepoint { system, name }),
    ];
    (tracepoint, text()).prop_map(|(event, text)| EventSpec::new(event).with_condition(text))
}

fn spec() -> impl Strategy<Value = EventSpec> {
    let precision = prop::sample::select(vec![
        Precision::Any,
        Precision::Constant,
        Precision::RequestedZero,
        Precision::RequiredZero,
        Precision::Best,
    ]);
    let event = prop_oneof![
        9 => event().prop_map(EventSpec::new),
        1 => conditional(),
    ];
    (event, 0..64u8, precision).prop_map(|(event, bits, precision)| {
        event
            .with_filter(Filter::from_bits_retain(bits))
            .with_precision(precision)
    })
}

fn group() -> impl Strategy<Value = GroupSpec> {
    let members = prop::collection::vec(spec(), 1..4);
    (members, any::<bool>(), any::<bool>()).prop_map(|(members, pinned, exclusive)| {
        GroupSpec::new(members).with_attributes(
            Attributes::default()
                .with_pinned(pinned)
                .with_exclusive(exclusive),
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn an_event_reads_back(event in event()) {
        let text = event.to_string();
        prop_assert_eq!(parse_event(&text), Ok(event), "{}", text);
    }

    /// A name stands in quotes if, and only if, it would read otherwise without: `kprobe` is a name, and `kprobe:u` a probe.
    #[test]
    fn names_are_quoted_only_where_they_would_read_otherwise(name in text()) {
        let named = Event::Named(name.clone());
        let reads = |written: &str| parse_spec(written, &NoNames).is_ok_and(|spec| spec.event == named);
        let stands = !name.contains(['\'', '{', ' ', '\n']) && reads(&name) && reads(&format!("{name}:u"));
        prop_assert_eq!(named.to_string() == name, stands, "{}", named);
    }

    #[test]
    fn an_event_with_modifiers_reads_back(spec in spec()) {
        let text = spec.to_string();
        prop_assert_eq!(parse_spec(&text, &NoNames), Ok(spec.clone()), "{}", &text);
        prop_assert_eq!(list(&text), Ok(vec![spec.into()]), "{}", text);
    }

    #[test]
    fn groups_read_back_alone_and_in_a_list(groups in prop::collection::vec(group(), 1..4)) {
        for group in &groups {
            let text = group.to_string();
            prop_assert_eq!(list(&text), Ok(vec![group.clone()]), "{}", text);
        }
        let texts: Vec<_> = groups.iter().map(ToString::to_string).collect();
        prop_assert_eq!(list(&texts.join(",")), Ok(groups), "{:?}", texts);
    }

    #[test]
    fn any_text_is_refused_with_a_place_or_reads_back(text in text()) {
        if let Ok(groups) = parse(&text, &NoNames) {
            for member in groups.iter().flat_map(|group| &group.members) {
                prop_assert!(text.contains(member.as_written));
                prop_assert_eq!(member.as_written.trim(), member.as_written);
                let alone = parse(member.as_written, &NoNames);
                let alone = alone.map(|groups| groups[0].members[0].spec.event.clone());
                prop_assert_eq!(alone.as_ref(), Ok(&member.spec.event));
            }
        }
        match list(&text) {
            Ok(groups) => {
                let texts: Vec<_> = groups.iter().map(ToString::to_string).collect();
                prop_assert_eq!(list(&texts.join(",")), Ok(groups), "{:?}", texts);
            }
            Err(error) => {
                let reason = error.reason().unwrap_or_default();
                let place = reason.strip_prefix("at character ").and_then(|r| r.split(':').next());
                let place: usize = place.and_then(|p| p.parse().ok()).unwrap_or(0);
                prop_assert!((1..=text.chars().count() + 1).contains(&place), "{}", error);
            }
        }
        prop_assert!(nearest(&text, [text.as_str(), "INST_RETIRED.ANY"]).len() <= 3);
    }
}

/// Every text that repeats one piece thousands of times is read or refused; the error does
/// not repeat it.
#[test]
fn long_text_does_no_harm() {
    for piece in [
        "{",
        "}",
        "'",
        "\\",
        ":",
        "u",
        "p",
        "-",
        "/",
        ",",
        "a",
        "r",
        "0",
        "é",
        "a,",
        "{a},",
        "a:",
        "a/",
        "'a'",
        "cpu/a,",
        "mem:1",
        "u:",
        "-loads",
        "'\\u{41}'",
        "tracepoint:a:",
        " ",
    ] {
        for start in ["", "r", "cycles:", "cpu/", "'", "{", "L1-dcache", "mem:0x"] {
            let text = start.to_owned() + &piece.repeat(20_000);
            match list(&text) {
                Ok(groups) => assert!(!groups.is_empty()),
                Err(error) => assert!(
                    format!("{error:#}").len() < 2_000,
                    "{start}{piece}: too long"
                ),
            }
            assert!(nearest(&text, []).is_empty());
            let named = Event::Named(text);
            assert_eq!(parse_event(&named.to_string()), Ok(named));
        }
    }
}
