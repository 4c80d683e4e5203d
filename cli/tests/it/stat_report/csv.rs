//! The report in separated values.

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

#[test]
fn a_field_with_the_separator_is_quoted() {
    let mut out = String::new();
    push_quoted(&mut out, "cpu/event=0xc0,umask=1/", ",");
    assert_eq!(out, "\"cpu/event=0xc0,umask=1/\"");
    out.clear();
    push_quoted(&mut out, "cpu/event=0xc0,umask=1/", ";");
    assert_eq!(out, "cpu/event=0xc0,umask=1/");
}
