//! Sets of counters, and what a map of events says by default.

use quipu_hal::{
    CpuIdentity, CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap, Filter, MaxRate,
    ResolvedEvent, Result, Scheme, SlotClass, SlotSet, ValueKind, X86Select,
};

const CLASSES: [SlotClass; 3] = [SlotClass::General, SlotClass::Fixed, SlotClass::FreeRunning];

#[test]
fn a_set_holds_what_was_added() {
    for class in CLASSES {
        for number in [0, 1, 31, 63] {
            let set = SlotSet::one(class, number);
            assert!(!set.is_empty());
            for other in CLASSES {
                for counter in [0, 1, 31, 63, 64, 255] {
                    let is_it = other == class && counter == number;
                    assert_eq!(set.contains(other, counter), is_it);
                }
            }
        }
        // There are no more than 64.
        assert!(SlotSet::one(class, 64).is_empty());
    }
    assert!(SlotSet::EMPTY.is_empty() && !SlotSet::ANY_GENERAL.is_empty());
    assert!(SlotSet::ANY_GENERAL.contains(SlotClass::General, 63));
    assert!(!SlotSet::ANY_GENERAL.contains(SlotClass::Fixed, 0));
}

#[test]
fn sets_are_joined_and_cut() {
    let [general, fixed, free] = CLASSES.map(|class| SlotSet::one(class, 1));
    // The same number in two classes are two counters.
    assert!(!general.union(fixed).is_empty() && !fixed.union(free).is_empty());
    let mixed = general.union(fixed).union(free);
    assert_eq!(mixed.union(mixed), mixed);
    for class in CLASSES {
        assert!(mixed.contains(class, 1));
        let shared = mixed.intersection(SlotSet::one(class, 1));
        assert_eq!(shared, SlotSet::one(class, 1));
        assert!(mixed.intersection(SlotSet::one(class, 2)).is_empty());
    }
    let low = SlotSet::general(0b0011);
    assert_eq!(
        low.union(SlotSet::general(0b0110)),
        SlotSet::general(0b0111)
    );
    assert_eq!(
        low.intersection(SlotSet::general(0b0110)),
        SlotSet::general(0b0010)
    );
    assert_eq!(
        SlotSet::EMPTY
            .with(SlotClass::General, 0)
            .with(SlotClass::General, 1),
        low
    );
}

/// A map of nothing.
struct Nothing(CpuModel);

impl EventMap for Nothing {
    fn cpu(&self) -> &CpuModel {
        &self.0
    }

    fn resolve(&self, event: &Event, _: Filter) -> Result<ResolvedEvent> {
        Err(Error::new(
            ErrorKind::UnsupportedEvent,
            format!("count {event}"),
        ))
    }
}

#[test]
fn a_map_knows_little_by_default() {
    let identity = CpuIdentity::Arm { midr: 0x410f_d083 };
    let map = Nothing(CpuModel::new(identity, Scheme::Armv8, Vec::new()));
    let encoding = Encoding::X86(X86Select::new(0xc0, 0));
    let slots = map.slots_of(&encoding).expect("any counter");
    assert_eq!(slots, SlotSet::ANY_GENERAL);
    assert_eq!(map.max_rate(&encoding), MaxRate::of(&encoding));
    assert!(map.max_rate(&encoding) != MaxRate::NONE);
    assert!(map.uncore("cas_count_read").is_none());
    assert!(!map.has_event("INST_RETIRED"));
}

#[test]
fn events_are_described_as_asked() {
    let plain = EventInfo::counter("x");
    assert_eq!(
        (plain.kind, plain.honours),
        (ValueKind::Counter, Filter::all())
    );
    let info = EventInfo::counter("x")
        .with_unit("ns")
        .as_gauge()
        .with_max_rate(Some(7))
        .occurring_in(Filter::KERNEL)
        .honouring(Filter::USER);
    assert_eq!(
        (&*info.unit, info.kind, info.max_rate),
        ("ns", ValueKind::Gauge, Some(7))
    );
    assert_eq!(
        (info.occurs_in, info.honours),
        (Filter::KERNEL, Filter::USER)
    );
}
