//! Raw bits, which no name goes with.

use quipu_events::Interface;
use quipu_hal::{Encoding, ErrorKind, Event, EventMap, Filter, RawEvent, SlotSet};

use crate::names::events;

#[test]
fn raw_bits_are_passed_on() {
    let raw = Event::Raw(RawEvent::new(0x3f24));
    let skl = events("intel-skl", Interface::Msr);
    let Encoding::X86(word) = skl.resolve(&raw, Filter::all()).unwrap().encoding else {
        panic!();
    };
    assert_eq!(word.select, 0x0043_3f24);
    let offcore = Event::Raw(RawEvent::new(0x1b7).with_extra([0x10001, 0, 0]));
    let Encoding::X86(word) = skl.resolve(&offcore, Filter::all()).unwrap().encoding else {
        panic!();
    };
    assert_eq!(word.extra[0].address, 0x1a6);
}

#[test]
fn raw_bits_go_to_the_counters_that_count_them() {
    let slots = |cpu, interface, bits| {
        let raw = Event::Raw(RawEvent::new(bits));
        let resolved = events(cpu, interface).resolve(&raw, Filter::all());
        resolved.unwrap().slots
    };
    // L1D_PEND_MISS.PENDING, with a counter mask or without; FB_FULL is for all.
    for bits in [0x148, 0x0100_0148] {
        let pending = slots("intel-hsw", Interface::Msr, bits);
        assert_eq!(pending, SlotSet::general(0b100), "{bits:#x}");
    }
    let any = slots("intel-hsw", Interface::Msr, 0x248);
    assert_eq!(any, SlotSet::ANY_GENERAL);
    // Floating point operations of family 15h; an event that no table has.
    assert_eq!(
        slots("amd-15h", Interface::Msr, 0xff03),
        SlotSet::general(0b1000)
    );
    assert_eq!(
        slots("intel-hsw", Interface::Msr, 0xeb),
        SlotSet::ANY_GENERAL
    );
    assert_eq!(
        slots("intel-hsw", Interface::Linux, 0x148),
        SlotSet::ANY_GENERAL
    );
}

#[test]
fn where_raw_bits_count_is_what_the_filter_says() {
    let select = |cpu, bits, filter| {
        let raw = Event::Raw(RawEvent::new(bits));
        let resolved = events(cpu, Interface::Msr).resolve(&raw, filter);
        match resolved.unwrap().encoding {
            Encoding::X86(word) => word.select,
            other => panic!("{other:?}"),
        }
    };
    let of = |levels| Filter::all().with_levels(levels);
    for bits in [0xc0, 0x41_00c0, 0x42_00c0, 0x43_00c0, 0x53_00c0] {
        assert_eq!(select("intel-skl", bits, of(Filter::USER)), 0x41_00c0);
        assert_eq!(select("intel-skl", bits, of(Filter::KERNEL)), 0x42_00c0);
    }
    // Guest only, which is a unit mask on Intel.
    assert_eq!(
        select("amd-zen3", 1 << 40 | 0x76, of(Filter::USER)),
        0x41_0076
    );
    let pentium = |bits| {
        let raw = Event::Raw(RawEvent::new(bits));
        let resolved = events("intel-p5", Interface::Msr).resolve(&raw, of(Filter::USER));
        resolved.map(|resolved| resolved.encoding)
    };
    let function = quipu_hal::P5Function(0x196);
    assert_eq!(pentium(0x156).unwrap(), Encoding::P5(function));
    let refused = pentium(0x1016).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
}
