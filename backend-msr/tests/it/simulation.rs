//! The simulated register file behaves as the manuals say: no driver involved.

use quipu_hal::ErrorKind;
use quipu_msr::MsrBus;
use quipu_msr::sim::{Generation, Level, SimulatedMsrs, Stretch};

/// Versions 2, 4 and 6 of [`Generation::ALL`].
const V2: Generation = Generation::ALL[3];
const V4: Generation = Generation::ALL[5];
const V6: Generation = Generation::ALL[7];

fn write(bus: &SimulatedMsrs, address: u32, value: u64) {
    bus.write(0, address, value).unwrap();
}

fn read(bus: &SimulatedMsrs, address: u32) -> u64 {
    bus.read(0, address).unwrap()
}

fn faults(bus: &SimulatedMsrs, address: u32, value: u64) {
    let before = bus.dump(0);
    let error = bus.write(0, address, value).unwrap_err();
    assert_eq!(
        (error.kind(), error.errno()),
        (ErrorKind::UnsupportedFeature, Some(5))
    );
    assert_eq!(bus.dump(0), before);
}

#[test]
fn registers_that_are_not_there_fault() {
    for (generation, missing) in [
        (Generation::P5, vec![0x186, 0xc1, 0x38f, 0xc001_0000]),
        (Generation::P6, vec![0x11, 0x188, 0x38f, 0xc001_0000]),
        (Generation::ALL[2], vec![0x188, 0x309, 0x38d, 0x38f, 0x4c1]),
        (V4, vec![0x18e, 0x30c, 0x1900, 0xc001_0000]),
        (Generation::AmdK7, vec![0x186, 0xc001_0200, 0xc000_0301]),
        (Generation::Amd15h, vec![0xc001_020c, 0xc000_0301]),
    ] {
        let bus = SimulatedMsrs::new(generation, 1);
        for address in missing {
            assert_eq!(
                bus.read(0, address).unwrap_err().errno(),
                Some(5),
                "{address:#x}"
            );
            faults(&bus, address, 0);
        }
    }
}

#[test]
fn reserved_bits_fault() {
    let v2 = SimulatedMsrs::new(V2, 1);
    faults(&v2, 0x186, 1 << 32);
    faults(&v2, 0x186, 1 << 21);
    faults(&v2, 0x38f, 1 << 2);
    faults(&v2, 0x38d, 1 << 12);
    faults(&v2, 0x38e, 0);
    faults(&v2, 0x309, 1 << 40);
    write(&SimulatedMsrs::new(V4, 1), 0x186, 1 << 21);
    faults(&SimulatedMsrs::new(V4, 1), 0x186, 1 << 36);
    write(&SimulatedMsrs::new(V6, 1), 0x186, 1 << 36 | 1 << 47);
    faults(
        &SimulatedMsrs::new(Generation::AmdK7, 1),
        0xc001_0000,
        1 << 32,
    );
    write(
        &SimulatedMsrs::new(Generation::Amd10h, 1),
        0xc001_0000,
        0xf << 32,
    );
    faults(&SimulatedMsrs::new(Generation::P5, 1), 0x11, 1 << 10);
}

#[test]
fn narrow_writes_are_sign_extended_and_full_ones_are_not() {
    let bus = SimulatedMsrs::new(V4, 1);
    write(&bus, 0xc1, 0x8000_0000);
    assert_eq!(read(&bus, 0xc1), 0xffff_8000_0000);
    write(&bus, 0xc1, 0xabc_7fff_ffff);
    assert_eq!(read(&bus, 0xc1), 0x7fff_ffff);
    write(&bus, 0x4c1, 0x8000_0000);
    assert_eq!(read(&bus, 0xc1), 0x8000_0000);
    faults(&bus, 0x4c1, 1 << 48);
}

#[test]
fn enables_gate() {
    let run = |bus: &SimulatedMsrs| bus.run(0, &Stretch::new(Level::User, 10).occurring(0xc0, 1));
    let p6 = SimulatedMsrs::new(Generation::P6, 1);
    write(&p6, 0x187, 0x41_00c0);
    run(&p6);
    assert_eq!(read(&p6, 0xc2), 0);
    write(&p6, 0x186, 1 << 22);
    run(&p6);
    assert_eq!([0xc1, 0xc2].map(|a| read(&p6, a)), [0, 10]);

    let v4 = SimulatedMsrs::new(V4, 1);
    write(&v4, 0x186, 0x41_00c0);
    run(&v4);
    assert_eq!(read(&v4, 0xc1), 0);
    write(&v4, 0x38f, 1);
    run(&v4);
    assert_eq!(read(&v4, 0xc1), 10);
    write(&v4, 0x186, 0x01_00c0);
    run(&v4);
    assert_eq!(read(&v4, 0xc1), 10);
}

#[test]
fn each_generation_selects_events_by_its_own_bits() {
    let counted = |generation, select, word| {
        let bus = SimulatedMsrs::new(generation, 1);
        write(&bus, select, word);
        if matches!(generation, Generation::Intel { version: 2.., .. }) {
            write(&bus, 0x38f, 1);
        }
        bus.counted(0)
    };
    // The second unit mask; the event's upper bits; none; six bits.
    assert_eq!(counted(V6, 0x186, 0x0500_0043_01c0), [0x0500_0000_01c0]);
    let amd = Generation::Amd10h;
    assert_eq!(counted(amd, 0xc001_0000, 0x1_0043_01c0), [0x1_0000_01c0]);
    assert_eq!(counted(V4, 0x186, 0x43_01c0), [0x01c0]);
    assert_eq!(counted(Generation::P5, 0x11, 0xd6), [0x16]);
}

#[test]
fn levels_filter() {
    let bus = SimulatedMsrs::new(Generation::AmdK7, 1);
    for (n, flags) in [0x1_0000, 0x2_0000, 0x3_0000, 0].into_iter().enumerate() {
        write(&bus, 0xc001_0000 + n as u32, 0x40_00c0 | flags);
    }
    bus.run(0, &Stretch::new(Level::User, 1).occurring(0xc0, 5));
    bus.run(0, &Stretch::new(Level::Kernel, 1).occurring(0xc0, 700));
    let counts = [0, 1, 2, 3].map(|n| read(&bus, 0xc001_0004 + n));
    assert_eq!(counts, [5, 700, 705, 0]);
}

#[test]
fn a_counter_mask_counts_cycles_with_so_many_inverted_with_fewer_and_edges_where_they_begin() {
    let bus = SimulatedMsrs::new(Generation::Amd15h, 1);
    let base = 0x41_00c0;
    let (edge, invert, mask) = (1 << 18, 1 << 23, 2 << 24);
    let words = [
        base,
        base | mask,
        base | mask | invert,
        base | mask | edge,
        base | mask | edge | invert,
        base | edge,
    ];
    for (n, word) in words.into_iter().enumerate() {
        write(&bus, 0xc001_0200 + 2 * n as u32, word);
    }
    for (cycles, times) in [(10, 3), (5, 1), (7, 2), (4, 2), (6, 0), (2, 1)] {
        bus.run(0, &Stretch::new(Level::User, cycles).occurring(0xc0, times));
    }
    let counts = [0, 1, 2, 3, 4, 5].map(|n| read(&bus, 0xc001_0201 + 2 * n));
    // 30 + 5 + 14 + 8 + 0 + 2; cycles with two or more; with fewer; where either begins; where any do.
    assert_eq!(counts, [59, 21, 13, 2, 2, 2]);
}

#[test]
fn equality_counts_cycles_with_exactly_so_many() {
    let bus = SimulatedMsrs::new(V6, 1);
    write(&bus, 0x38f, 1);
    write(&bus, 0x1901, 0x41_00c0 | 2 << 24 | 1 << 36);
    for (cycles, times) in [(10, 3), (7, 2), (5, 1)] {
        bus.run(0, &Stretch::new(Level::User, cycles).occurring(0xc0, times));
    }
    assert_eq!([0x1900, 0xc1].map(|a| read(&bus, a)), [7, 7]);
}

#[test]
fn counters_wrap_at_their_width_and_say_so() {
    let bus = SimulatedMsrs::new(V2, 1);
    write(&bus, 0x38f, 1);
    write(&bus, 0x186, 0x41_00c0);
    bus.run(
        0,
        &Stretch::new(Level::User, (1 << 40) - 1).occurring(0xc0, 1),
    );
    assert_eq!([0xc1, 0x38e].map(|a| read(&bus, a)), [(1 << 40) - 1, 0]);
    bus.run(0, &Stretch::new(Level::User, 3).occurring(0xc0, 1));
    assert_eq!([0xc1, 0x38e].map(|a| read(&bus, a)), [2, 1]);
    write(&bus, 0x390, 1);
    assert_eq!(read(&bus, 0x38e), 0);
}

#[test]
fn amds_first_registers_are_the_first_core_registers() {
    let bus = SimulatedMsrs::new(Generation::Amd15h, 1);
    write(&bus, 0xc001_0003, 0x41_00c0);
    write(&bus, 0xc001_0207, 77);
    assert_eq!(
        [0xc001_0206, 0xc001_0007].map(|a| read(&bus, a)),
        [0x41_00c0, 77]
    );
}

#[test]
fn every_cpu_has_its_own_registers() {
    let bus = SimulatedMsrs::new(Generation::P5, 3);
    bus.write(1, 0x11, 0x96).unwrap();
    bus.run(1, &Stretch::new(Level::User, 10).occurring(0x16, 1));
    bus.run(2, &Stretch::new(Level::User, 10).occurring(0x16, 1));
    assert_eq!(
        [0, 1, 2].map(|cpu| bus.read(cpu, 0x12).unwrap()),
        [0, 10, 0]
    );
    let missing = bus.read(3, 0x12).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NoSuchTarget);
}

#[test]
fn the_pentium_counts_clocks_when_told_to() {
    let bus = SimulatedMsrs::new(Generation::P5, 1);
    write(&bus, 0x11, 0x0196_0096);
    bus.run(0, &Stretch::new(Level::User, 10).occurring(0x16, 2));
    bus.run(0, &Stretch::new(Level::User, 10));
    assert_eq!([0x12, 0x13].map(|a| read(&bus, a)), [20, 10]);
}

#[test]
fn leaf_0xa_describes_the_counters() {
    let leaf = |generation| SimulatedMsrs::new(generation, 1).cpuid(0xa, 0).unwrap();
    assert_eq!(leaf(V4), [0x0730_0804, 0, 0, 0x603]);
    assert_eq!(leaf(V6), [0x0730_0a06, 0, 0xf, 0x604]);
    assert_eq!(leaf(Generation::AmdK7), [0; 4]);
}
