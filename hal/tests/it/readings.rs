//! Readings: their differences and sums, and the buffers that hold them.

use quipu_hal::{Count, ErrorKind, MaxRate, Part, ReadBuf, Reading};

/// A reading of which each field is another number.
const LATER: Reading = Reading::new(100, 70, 60).with_raw_times(700, 600);
const EARLIER: Reading = Reading::new(40, 20, 15).with_raw_times(300, 200);

#[test]
fn a_difference_is_one_of_each_field() {
    let span = Reading::new(60, 50, 45).with_raw_times(400, 400);
    assert_eq!(LATER.since(&EARLIER), span);
    assert_eq!(LATER.checked_since(&EARLIER), Some(span));
    assert_eq!(EARLIER.since(&LATER), Reading::default());
    // Nothing happened in between.
    assert_eq!(LATER.checked_since(&LATER), Some(Reading::default()));
    for (value, enabled, running) in [(101, 70, 60), (100, 71, 60), (100, 70, 61)] {
        let reset = Reading::new(value, enabled, running);
        assert_eq!(LATER.checked_since(&reset), None, "{reset:?}");
    }
}

#[test]
fn a_sum_is_one_of_each_field() {
    let sum = Reading::new(140, 90, 75).with_raw_times(1000, 800);
    assert_eq!(LATER.plus(&EARLIER), sum);
    let bounded = EARLIER.with_at_least(true);
    for sum in [LATER.plus(&bounded), bounded.plus(&LATER)] {
        assert!(sum.at_least);
    }
    assert!(LATER.since(&bounded).at_least && bounded.since(&EARLIER).at_least);
    assert!(!LATER.since(&EARLIER).at_least);
}

#[test]
fn what_jumped_stays_so_in_a_sum() {
    // One event a second, and nanoseconds.
    let slow = MaxRate::per_second(1);
    let jumped = Reading::new(1_000_000, 10, 10).with_max_rate(slow);
    assert!(jumped.has_jumped() && !LATER.has_jumped());
    assert_eq!(
        (jumped.count(), jumped.level()),
        (Count::Jumped, Count::Jumped)
    );
    for sum in [jumped.plus(&LATER), LATER.plus(&jumped)] {
        assert_eq!((sum.value, sum.count()), (u64::MAX, Count::Jumped));
        assert_eq!(sum.max_rate, slow);
    }
}

#[test]
fn a_level_is_not_scaled() {
    assert_eq!(Reading::new(40, 100, 50).level(), Count::Exact(40));
    assert_eq!(
        Reading::new(40, 100, 100).with_at_least(true).level(),
        Count::Exact(40)
    );
    assert_eq!(Reading::new(0, 100, 0).level(), Count::NotCounted);
}

#[test]
fn parts_say_what_they_are_of() {
    let core = Part::on_cpu(3).with_core("cpu_atom");
    for (part, text) in [
        (Part::whole(), "whole target"),
        (Part::on_cpu(3), "CPU 3"),
        (Part::of_thread(7), "thread 7"),
        (core, "CPU 3, cpu_atom"),
        (
            Part::of_thread(7).with_pmu("uncore_imc_0"),
            "thread 7, uncore_imc_0",
        ),
        (Part::whole().with_pmu("power"), "power"),
    ] {
        assert_eq!(part.to_string(), text);
    }
    assert_eq!(Part::whole(), Part::default());
}

/// A buffer of three members in two parts, with the numbers from 1 on.
fn buffer() -> ReadBuf {
    let mut buf = ReadBuf::new(3, vec![Part::on_cpu(0), Part::on_cpu(1)]);
    for part in 0..2 {
        for member in 0..3 {
            let value = (1 + 3 * part + member) as u64;
            buf[part][member] = Reading::new(value, 10, 10);
        }
    }
    buf
}

#[test]
fn a_buffer_has_a_reading_for_each_part_and_member() {
    let buf = buffer();
    assert_eq!(
        (buf.members(), buf.parts().len(), buf.readings().len()),
        (3, 2, 6)
    );
    let values: Vec<_> = buf.readings().iter().map(|reading| reading.value).collect();
    assert_eq!(values, [1, 2, 3, 4, 5, 6]);
    assert_eq!(buf.get(1, 2).map(|reading| reading.value), Some(6));
    assert_eq!((buf.get(2, 0), buf.get(0, 3)), (None, None));
    let of_member = |member| {
        let readings = buf.member(member)?;
        assert_eq!(readings.len(), 2);
        Some(
            readings
                .map(|(part, reading)| (part.cpu, reading.value))
                .collect::<Vec<_>>(),
        )
    };
    assert_eq!(of_member(1), Some(vec![(Some(0), 2), (Some(1), 5)]));
    assert_eq!(of_member(3), None);
    assert_eq!(buf.total(2), Count::Exact(9));
    // Without members, or without parts, there is nothing, and nothing panics.
    let none = ReadBuf::new(0, vec![Part::whole()]);
    assert!(none.get(0, 0).is_none() && none.member(0).is_none());
    let nowhere = ReadBuf::new(1, Vec::new());
    assert_eq!(nowhere.member(0).map(|readings| readings.len()), Some(0));
}

#[test]
#[should_panic(expected = "there is no member 3 of 3")]
fn a_total_of_no_member_panics() {
    buffer().total(3);
}

#[test]
fn a_buffer_fits_groups_of_its_shape_alone() {
    let buf = buffer();
    let parts = [Part::on_cpu(0), Part::on_cpu(1)];
    assert!(buf.check_shape(3, buf.parts()).is_ok());
    assert!(buf.check_shape(3, &parts).is_ok());
    for (members, parts) in [
        (2, &parts[..]),
        (3, &parts[..1]),
        (3, &[Part::on_cpu(0), Part::on_cpu(2)]),
    ] {
        let error = buf.check_shape(members, parts).expect_err("another shape");
        assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
        assert!(buf.check_shape(2, buf.parts()).is_err());
    }
}

#[test]
fn a_copy_is_of_the_same_shape() {
    let buf = buffer();
    assert_eq!(buf.clone(), buf);
    let mut other = ReadBuf::new(1, vec![Part::whole()]);
    other.clone_from(&buf);
    assert_eq!(other, buf);
}

#[test]
fn spans_of_a_member_are_summed() {
    let (then, mut now) = (buffer(), buffer());
    for part in 0..2 {
        now[part][1] = now[part][1].plus(&Reading::new(10, 5, 5));
    }
    let mut sum = buffer();
    sum.add_since(1, &then, &now).expect("the same shape");
    let values: Vec<_> = sum.readings().iter().map(|reading| reading.value).collect();
    assert_eq!(values, [1, 12, 3, 4, 15, 6]);
    now.subtract(1, &then).expect("the same shape");
    let values: Vec<_> = now.readings().iter().map(|reading| reading.value).collect();
    assert_eq!(values, [1, 10, 3, 4, 10, 6]);
    // Other shapes, and no member.
    let narrow = ReadBuf::new(2, vec![Part::on_cpu(0), Part::on_cpu(1)]);
    let elsewhere = ReadBuf::new(3, vec![Part::on_cpu(0), Part::on_cpu(2)]);
    for other in [&narrow, &elsewhere] {
        assert!(sum.subtract(1, other).is_err());
        assert!(sum.add_since(1, other, &then).is_err());
        assert!(sum.add_since(1, &then, other).is_err());
    }
    let error = sum.subtract(3, &then).expect_err("no member");
    assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
    assert!(sum.to_owned().add_since(3, &then, &then).is_err());
}
