//! The report in separated values.

use quipu::{Count, Hardware};
use quipu_stat::Row;
use quipu_stat::report::Of;
use quipu_stat::report::csv::{push_quoted, rows};

use super::sample;

#[test]
fn columns_are_in_perfs_order() {
    let mut out = String::new();
    rows(&mut out, &sample::repeated().rows, Of::All, ",", false);
    insta::assert_snapshot!(out);
}

#[test]
fn time_and_place_come_first() {
    let mut out = String::new();
    rows(
        &mut out,
        &sample::per_core().rows,
        Of::Interval(0.25),
        ";",
        false,
    );
    rows(&mut out, &sample::per_core().rows, Of::Totals, ";", false);
    insta::assert_snapshot!(out);
}

#[test]
fn reasons_are_told_on_request_and_what_would_pass_as_a_count_always() {
    let busy = Row {
        reason: Some("its counters are busy".into()),
        ..sample::not_counted(Hardware::Cycles.into())
    };
    let text = |row: &Row, extra| {
        let mut out = String::new();
        rows(&mut out, std::slice::from_ref(row), Of::All, ",", extra);
        out
    };
    assert_eq!(
        text(&busy, true).lines().nth(1),
        Some("# not counted: cycles: its counters are busy")
    );
    assert_eq!(text(&busy, false).lines().count(), 1);
    let partial = Row {
        count: Count::of_parts(77, false, 1, 2),
        ..sample::not_counted(Hardware::Cycles.into())
    };
    for extra in [false, true] {
        assert_eq!(
            text(&partial, extra).lines().nth(1),
            Some("# incomplete: cycles: 1 of 2 parts have no count")
        );
    }
    let short = Row {
        count: Count::AtLeast(77),
        ..sample::not_counted(Hardware::Cycles.into())
    };
    for extra in [false, true] {
        let text = text(&short, extra);
        let remark = text.lines().nth(1).unwrap_or_default();
        assert!(
            remark.starts_with("# at least: cycles: the kernel does not count"),
            "{text}"
        );
    }
}

#[test]
fn a_field_with_the_separator_is_quoted() {
    let mut out = String::new();
    push_quoted(&mut out, "cpu/event=0xc0,umask=1/", ",");
    assert_eq!(out, "\"cpu/event=0xc0,umask=1/\"");
    out.clear();
    push_quoted(&mut out, "cpu/event=0xc0,umask=1/", ";");
    assert_eq!(out, "cpu/event=0xc0,umask=1/");
}
