//! The simulated driver says what the real one says, in every era: the order of its checks, and what
//! a set does to a counter. Everything here is read in OpenBSD's pctr.c.

use libc::{EFAULT, EINVAL, EIO, ENODEV, EPERM};
use quipu_hal::ErrorKind;
use quipu_pctr::abi::{Layout, PCIOCRD, PCIOCRD_1996, PCIOCS, Status};
use quipu_pctr::simulation::{Era, Level, Processor, SimDevice, SimMachine};
use quipu_pctr::{Arch, Control, Discovery, Errno, PctrDevice};

use crate::support::with_counters;

fn set(device: &SimDevice, counter: usize, word: u32) -> Result<(), Errno> {
    device.ioctl(PCIOCS[counter], &mut word.to_le_bytes())
}

#[test]
fn each_check_comes_in_its_order() {
    use Era::{Amd64Of2016, Amd64Of2019, I386Of1996, I386Of2003, I386Of2008, I386Of2023};
    use Processor::{Core, K8, None, P5, P6, TimeStampOnly};
    let cases = [
        // A request the driver has no case for comes first of all, also without counters.
        (I386Of2003, TimeStampOnly, true, 2, 0, Some(EINVAL)),
        (I386Of2003, P6, true, 3, 0, Some(EINVAL)),
        // Then a CPU without counters, whatever the descriptor.
        (I386Of2003, TimeStampOnly, true, 0, 0, Some(ENODEV)),
        (
            I386Of2003,
            TimeStampOnly,
            false,
            0,
            0xffff_ffff,
            Some(ENODEV),
        ),
        (I386Of1996, TimeStampOnly, true, 0, 0, Some(EINVAL)),
        (I386Of2003, K8, true, 0, 0, Some(ENODEV)),
        (I386Of2023, P5, true, 0, 0, Some(ENODEV)),
        (I386Of2023, P6, true, 0, 0, Some(ENODEV)),
        (I386Of2008, None, true, 0, 0, Some(ENODEV)),
        // Then the counter's number, before the descriptor's mode.
        (I386Of2008, P6, false, 2, 0, Some(EINVAL)),
        (Amd64Of2019, Core, false, 2, 0, Some(EINVAL)),
        (Amd64Of2016, K8, false, 3, 0, Some(EPERM)),
        // Then the mode, before the value.
        (I386Of2003, P5, false, 0, 0x200, Some(EPERM)),
        (I386Of2003, P6, false, 1, 0x38_0000, Some(EPERM)),
        // Then the value: 9 bits on a Pentium, three bits refused on the others.
        (I386Of2003, P5, true, 0, 0x200, Some(EINVAL)),
        (I386Of2003, P5, true, 1, 0x1ff, Option::None),
        (I386Of2003, P6, true, 0, 0x08_0000, Some(EINVAL)),
        (I386Of2003, P6, true, 0, 0x10_0000, Some(EINVAL)),
        (Amd64Of2019, K8, true, 3, 0x20_0000, Some(EINVAL)),
        // Nothing else is looked at: no level, no such event, the wrong counter.
        (I386Of2003, P5, true, 0, 0x10, Option::None),
        (I386Of2003, P6, true, 1, 0x10, Option::None),
        (Amd64Of2019, K8, true, 3, 0xffc7_ffff, Option::None),
    ];
    for (era, processor, writable, counter, word, errno) in cases {
        let machine = SimMachine::new(era, processor, 1);
        let device = if writable {
            machine.open()
        } else {
            machine.open_read_only()
        };
        let expected = errno.map_or(Ok(()), |errno| Err(Errno(errno)));
        assert_eq!(
            set(&device, counter, word),
            expected,
            "{era:?} {processor:?} {counter} {word:#x}"
        );
    }
}

#[test]
fn reading_always_works_and_only_in_the_layout_of_its_time() {
    for (era, processor) in Era::machines() {
        let machine = SimMachine::new(era, processor, 1);
        let device = machine.open_read_only();
        let (known, unknown) = match era.layout() {
            Layout::Current => (PCIOCRD, PCIOCRD_1996),
            Layout::Legacy => (PCIOCRD_1996, PCIOCRD),
        };
        let sized = |word| vec![0xff; quipu_pctr::abi::argument_size(word)];
        assert_eq!(
            device.ioctl(unknown, &mut sized(unknown)),
            Err(Errno(EINVAL))
        );
        assert_eq!(device.ioctl(known, &mut [0; 8]), Err(Errno(EFAULT)));
        let mut bytes = sized(known);
        device.ioctl(known, &mut bytes).unwrap();
        let status = Status::from_bytes(era.layout(), &bytes).unwrap();
        let untouched = Status {
            idle: status.idle.map(|_| 0),
            time_stamp: status.time_stamp,
            ..Status::default()
        };
        assert_eq!(status, untouched, "{era:?} {processor:?}");
        assert_eq!(status.time_stamp == 0, processor == Processor::None);
        assert_eq!(Control::new(device).unwrap().layout(), era.layout());
    }
}

#[test]
fn counters_are_found_out_without_setting_any() {
    for (era, processor) in Era::machines() {
        let machine = SimMachine::new(era, processor, 2);
        let words = [0x4300c0, 0x4300c1, 7, 9];
        for (counter, word) in words.into_iter().enumerate() {
            machine.overwrite(0, counter, word);
        }
        let found = Control::new(machine.open_read_only()).unwrap().discover();
        let expected = match era.counters(processor) {
            0 => Discovery::NoCounters,
            n => Discovery::Counters(n as u8),
        };
        assert_eq!(found, Ok(expected), "{era:?} {processor:?}");
        assert_eq!(machine.functions(0), words);
        let refused = Control::new(machine.open())
            .unwrap()
            .discover()
            .unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidConfiguration);
        assert_eq!(machine.functions(0), words);
    }
}

#[test]
fn a_failing_call_is_told_with_its_errno() {
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
    machine.fail_after(0, EIO);
    let refused = Control::new(machine.open()).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.errno()),
        (ErrorKind::Os, Some(EIO))
    );
    let control = Control::new(machine.open()).unwrap();
    for (counter, word, errno, kind) in [
        (0, 0x38_0000, Some(EINVAL), ErrorKind::InvalidConfiguration),
        (2, 0, Some(EINVAL), ErrorKind::InvalidConfiguration),
        (9, 0, None, ErrorKind::InvalidConfiguration),
    ] {
        let refused = control.set(counter, word).unwrap_err();
        assert_eq!((refused.kind(), refused.errno()), (kind, errno));
    }
    let reader = Control::new(machine.open_read_only()).unwrap();
    let refused = reader.set(0, 0).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.errno()),
        (ErrorKind::NoPermission, Some(EPERM))
    );
    assert!(refused.hint().is_some_and(|hint| hint.contains("root")));
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::TimeStampOnly, 1);
    let refused = Control::new(machine.open()).unwrap().set(0, 0).unwrap_err();
    assert_eq!(
        (refused.kind(), refused.errno()),
        (ErrorKind::UnsupportedEvent, Some(ENODEV))
    );
}

/// A word that counts event 0xc0 in user mode on each machine.
fn counting_word(processor: Processor) -> (u8, u32) {
    match processor {
        Processor::P5 => (0x16, 0x96),
        _ => (0xc0, 0x0041_00c0),
    }
}

#[test]
fn a_set_zeroes_its_counter_but_since_2019_only_with_another_word() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let control = Control::new(machine.open()).unwrap();
        let (event, word) = counting_word(processor);
        control.set(0, word).unwrap();
        control.set(1, word).unwrap();
        machine.occur(event, 0, Level::User, 100);
        machine.occur(event, 0, Level::Kernel, 7);
        assert_eq!(control.read().unwrap().counters[..2], [100, 100]);

        control.set(0, word).unwrap();
        let after_same_word = if era == Era::Amd64Of2019 { 100 } else { 0 };
        assert_eq!(
            control.read().unwrap().counters[..2],
            [after_same_word, 100]
        );

        control.set(0, 0).unwrap();
        machine.occur(event, 0, Level::User, 1);
        let gated = processor == Processor::P6;
        let status = control.read().unwrap();
        assert_eq!(
            status.counters[..2],
            [0, if gated { 100 } else { 101 }],
            "{era:?}"
        );
        assert_eq!(status.functions[..2], [0, word]);
    }
}

#[test]
fn a_kernel_of_32_bits_shows_40_bits_and_one_of_64_all() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let control = Control::new(machine.open()).unwrap();
        machine.preset(1, u64::MAX);
        let wide = !matches!(processor, Processor::P5 | Processor::P6 | Processor::Core);
        let width = if wide && era.arch() == Arch::Amd64 {
            48
        } else {
            40
        };
        assert_eq!(control.read().unwrap().counters[1], (1 << width) - 1);
    }
}

#[test]
fn only_since_2019_a_set_reaches_the_other_cpus() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 2);
        let control = Control::new(machine.open()).unwrap();
        let (event, word) = counting_word(processor);
        control.set(0, word).unwrap();
        machine.move_to(1);
        machine.occur(event, 0, Level::User, 5);
        let status = control.read().unwrap();
        let everywhere = era == Era::Amd64Of2019;
        let expected = if everywhere { (word, 5) } else { (0, 0) };
        assert_eq!(
            (status.functions[0], status.counters[0]),
            expected,
            "{era:?}"
        );
        machine.move_to(0);
        let status = control.read().unwrap();
        assert_eq!((status.functions[0], status.counters[0]), (word, 0));
    }
}

/// The driver of 2019 does not know a function that firmware left in a register: it takes the counter for
/// stopped. Control stops it all the same.
#[test]
fn a_function_that_firmware_left_is_stopped() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let (event, word) = counting_word(processor);
        machine.leave(0, 0, word);
        let control = Control::new(machine.open()).unwrap();
        control.set(0, 0).unwrap();
        let forgotten = era == Era::Amd64Of2019;
        assert_eq!(machine.functions(0)[0] != 0, forgotten, "{era:?}");
        control.stop(0).unwrap();
        machine.occur(event, 0, Level::User, 5);
        let status = control.read().unwrap();
        assert_eq!((status.functions[0], status.counters[0]), (0, 0));
    }
}

/// Resumed, the driver of 2019 sets the functions again; those before leave the registers as they are.
#[test]
fn resuming_zeroes_counters_and_the_time() {
    for (era, processor) in with_counters() {
        let machine = SimMachine::new(era, processor, 1);
        let control = Control::new(machine.open()).unwrap();
        let (event, word) = counting_word(processor);
        control.set(0, word).unwrap();
        machine.occur(event, 0, Level::User, 5);
        machine.suspend();
        let status = control.read().unwrap();
        assert_eq!((status.time_stamp, status.counters[0]), (0, 0));
        assert_eq!(status.functions[0] == word, era == Era::Amd64Of2019);
    }
}

/// Hardware counts nothing of an event on the wrong counter of a P6, nor of cache accesses without states.
#[test]
fn a_p6_counts_only_what_its_counters_can() {
    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    let control = Control::new(machine.open()).unwrap();
    for (event, word, counts) in [
        (0x11, 0x0041_0011, [false, true]),
        (0xc1, 0x0041_00c1, [true, false]),
        (0x29, 0x0041_0029, [false, false]),
        (0x29, 0x0041_0129, [true, true]),
    ] {
        control.set(0, word).unwrap();
        control.set(1, word).unwrap();
        machine.occur(event, 0, Level::User, 7);
        let counted = control.read().unwrap().counters;
        assert_eq!(
            [counted[0], counted[1]].map(|n| n == 7),
            counts,
            "{word:#x}"
        );
    }
}
