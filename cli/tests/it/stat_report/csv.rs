//! The report in separated values.

use quipu::Hardware;
use quipu_cli::stat::Row;
use quipu_cli::stat::report::csv::{push_quoted, rows};

use super::sample;

#[test]
fn columns_are_in_perfs_order() {
    let mut out = String::new();
    rows(&mut out, &sample::repeated().rows, None, ",");
    insta::assert_snapshot!(out);
}

#[test]
fn time_and_place_come_first() {
    let mut out = String::new();
    rows(&mut out, &sample::per_core().rows, Some(0.25), ";");
    insta::assert_snapshot!(out);
}

/// The notes after the last interval have them once.
#[test]
fn the_reason_of_an_event_that_was_not_counted_comes_with_it_but_not_in_each_interval() {
    let busy = Row {
        reason: Some("its counters are busy".into()),
        ..sample::not_counted(Hardware::Cycles.into())
    };
    let text = |time| {
        let mut out = String::new();
        rows(&mut out, std::slice::from_ref(&busy), time, ",");
        out
    };
    let last = text(None);
    assert_eq!(
        last.lines().nth(1),
        Some("# not counted: cycles: its counters are busy")
    );
    assert_eq!(text(Some(0.25)).lines().count(), 1);
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
