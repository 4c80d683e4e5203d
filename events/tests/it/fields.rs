//! The fields of encodings.

use quipu_events::{Field, describe};
use quipu_hal::{
    Armv8Event, Encoding, ExtraRegister, FixedCounter, P5Function, PerfConfig, Scheme, X86Select,
};

type Shown = Vec<(&'static str, u64, Option<u64>)>;

fn shown(scheme: Scheme, encoding: &Encoding) -> Shown {
    let triple = |field: Field| (field.name, field.bits, field.value);
    describe(scheme, encoding).into_iter().map(triple).collect()
}

#[test]
fn a_select_word_has_its_fields_and_registers() {
    let flags = X86Select::USER | X86Select::KERNEL | X86Select::EDGE | X86Select::PIN;
    let more = X86Select::INTERRUPT | X86Select::ANY_THREAD | X86Select::ENABLE | X86Select::INVERT;
    let mut word = X86Select::new(0x1b7, 0x02)
        .with_flags(flags | more)
        .with_counter_mask(3)
        .with_second_unit_mask(5);
    word.extra.push(ExtraRegister {
        address: 0x1a6,
        value: 0x1_0001,
    });
    let fields = shown(Scheme::IntelArchitectural, &Encoding::X86(word));
    assert_eq!(
        fields,
        [
            ("event", 0xb7, Some(0xb7)),
            ("unit mask", 0x200, Some(2)),
            ("USR: user mode", 1 << 16, None),
            ("OS: kernel mode", 1 << 17, None),
            ("E: edge", 1 << 18, None),
            ("PC: pin control", 1 << 19, None),
            ("INT: interrupt", 1 << 20, None),
            ("ANY: any thread", 1 << 21, None),
            ("EN: enable", 1 << 22, None),
            ("INV: invert", 1 << 23, None),
            ("counter mask", 3 << 24, Some(3)),
            ("bits 32-39 (AMD: event bits 8-11)", 1 << 32, Some(1)),
            ("bits 40-47 (Intel: second unit mask)", 5 << 40, Some(5)),
            ("extra register", 0x1_0001, Some(0x1a6)),
        ]
    );
}

#[test]
fn functions_and_fixed_counters_have_their_flags() {
    let function = P5Function::new(0x16).with_flags(P5Function::USER | P5Function::CLOCKS);
    assert_eq!(
        shown(Scheme::P5, &Encoding::P5(function)),
        [
            ("event", 0x16, Some(0x16)),
            ("U: user mode", 0x80, None),
            ("C: clocks instead of events", 0x100, None),
        ]
    );
    let kernel = P5Function::new(0).with_flags(P5Function::KERNEL);
    assert_eq!(
        shown(Scheme::P5, &Encoding::P5(kernel)),
        [("event", 0, Some(0)), ("K: kernel mode", 0x40, None)]
    );
    let mut fixed = FixedCounter {
        index: 1,
        control: FixedCounter::KERNEL | FixedCounter::ANY_THREAD,
    };
    let scheme = Scheme::IntelArchitectural;
    assert_eq!(
        shown(scheme, &Encoding::Fixed(fixed)),
        [("kernel mode", 1, None), ("any thread", 4, None)]
    );
    fixed.control = FixedCounter::USER | FixedCounter::INTERRUPT;
    assert_eq!(
        shown(scheme, &Encoding::Fixed(fixed)),
        [("user mode", 2, None), ("interrupt", 8, None)]
    );
}

#[test]
fn arm_events_have_sixteen_bits() {
    let all = Armv8Event::INCLUDE_EL2 | Armv8Event::EXCLUDE_EL0 | Armv8Event::EXCLUDE_EL1;
    let event = Armv8Event::new(0xc123).with_flags(all);
    assert_eq!(
        shown(Scheme::Armv8, &Encoding::Armv8(event)),
        [
            ("event", 0xc123, Some(0xc123)),
            ("NSH: count at EL2", 1 << 27, None),
            ("U: not at EL0", 1 << 30, None),
            ("P: not at EL1", 1 << 31, None),
        ]
    );
    let perf = PerfConfig::new(PerfConfig::RAW, 0x3_c123);
    assert_eq!(
        shown(Scheme::Armv8, &Encoding::Perf(perf)),
        [("event", 0xc123, Some(0xc123))]
    );
}

#[test]
fn words_of_linux_are_shown_where_they_are_not_zero() {
    let perf = PerfConfig::new(PerfConfig::RAW, 0x01c0).with_config1(7);
    let x86: Shown = vec![("event", 0xc0, Some(0xc0)), ("unit mask", 0x100, Some(1))];
    let mut expected = x86.clone();
    expected.push(("config1", 7, Some(7)));
    assert_eq!(shown(Scheme::Amd10h, &Encoding::Perf(perf)), expected);
    let perf = PerfConfig::new(PerfConfig::RAW, 0x01c0)
        .with_config2(8)
        .with_config3(9);
    let mut expected = x86;
    expected.push(("config2", 8, Some(8)));
    expected.push(("config3", 9, Some(9)));
    assert_eq!(shown(Scheme::Amd10h, &Encoding::Perf(perf)), expected);
}
