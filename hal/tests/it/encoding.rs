//! Encodings: the bits of each field.

use quipu_hal::{Armv8Event, FixedCounter, P5Function, X86Select};

#[test]
fn both_functions_share_one_register() {
    let hits = P5Function::new(0x29).with_flags(P5Function::USER | P5Function::KERNEL);
    let stalls = P5Function::new(0x19).with_flags(P5Function::USER | P5Function::CLOCKS);
    assert_eq!((hits.0, stalls.0), (0xe9, 0x199));
    assert_eq!(P5Function::cesr(hits, stalls), 0x0199_00e9);
    assert_eq!(hits.event(), 0x29);
}

#[test]
fn a_flag_that_is_set_stays_set() {
    let p5 = P5Function::new(0x29).with_flags(P5Function::USER);
    assert_eq!(p5.with_flags(P5Function::USER), p5);
    let arm = Armv8Event::new(0x11).with_flags(Armv8Event::EXCLUDE_EL1);
    assert_eq!(arm.with_flags(Armv8Event::EXCLUDE_EL1), arm);
    let x86 = X86Select::new(0x3c, 0).with_flags(X86Select::USER);
    assert_eq!(x86.clone().with_flags(X86Select::USER), x86);
}

#[test]
fn each_counter_has_four_bits() {
    let cycles = FixedCounter {
        index: 1,
        control: FixedCounter::USER | FixedCounter::KERNEL,
    };
    assert_eq!(cycles.control_bits(), 0x30);
}

#[test]
fn filters_sit_above_the_event_number() {
    let event = Armv8Event::new(0x8031).with_flags(Armv8Event::EXCLUDE_EL1 | 0xff);
    assert_eq!(event.0, 0x8000_8031);
    assert_eq!(event.event(), 0x8031);
}

#[test]
fn fields_sit_where_the_manuals_put_them() {
    let amd = X86Select::new(0x1c7, 0x02).with_flags(X86Select::USER | X86Select::ENABLE);
    assert_eq!(amd.select, 0x1_0041_02c7);
    assert_eq!((amd.event(), amd.unit_mask()), (0x1c7, 0x02));
    let intel = X86Select::new(0xa3, 0x04)
        .with_counter_mask(4)
        .with_flags(X86Select::KERNEL | X86Select::INVERT);
    assert_eq!(intel.select, 0x0482_04a3);
    assert_eq!(intel.counter_mask(), 4);
    assert_eq!(
        intel.clone().with_second_unit_mask(3).select,
        0x300_0482_04a3
    );
    let full = intel.with_counter_mask(0xff).with_second_unit_mask(0xff);
    assert_eq!(full.select, 0xff00_ff82_04a3);
    let other = full.with_counter_mask(4).with_second_unit_mask(3);
    assert_eq!(other.select, 0x300_0482_04a3);
}

/// `IA32_PERFEVTSELx` and AMD's `PerfEvtSel`, `IA32_FIXED_CTR_CTRL`, the Pentium's CESR and `PMEVTYPER<n>_EL0`.
#[test]
fn flags_are_the_bits_of_the_manuals() {
    for (flag, bit) in [
        (X86Select::USER, 16),
        (X86Select::KERNEL, 17),
        (X86Select::EDGE, 18),
        (X86Select::PIN, 19),
        (X86Select::INTERRUPT, 20),
        (X86Select::ANY_THREAD, 21),
        (X86Select::ENABLE, 22),
        (X86Select::INVERT, 23),
        (X86Select::IN_TRANSACTION, 32),
        (X86Select::IN_TRANSACTION_CHECKPOINTED, 33),
        (X86Select::EQUAL, 36),
        (X86Select::GUEST_ONLY, 40),
        (X86Select::HOST_ONLY, 41),
        (FixedCounter::KERNEL.into(), 0),
        (FixedCounter::USER.into(), 1),
        (FixedCounter::ANY_THREAD.into(), 2),
        (FixedCounter::INTERRUPT.into(), 3),
        (P5Function::KERNEL.into(), 6),
        (P5Function::USER.into(), 7),
        (P5Function::CLOCKS.into(), 8),
        (Armv8Event::EXCLUDE_EL1.into(), 31),
        (Armv8Event::EXCLUDE_EL0.into(), 30),
        (Armv8Event::INCLUDE_EL2.into(), 27),
    ] {
        assert_eq!(flag, 1 << bit);
    }
}
