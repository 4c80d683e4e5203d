//! The report as JSON lines.

use quipu_stat::notes::Note;
use quipu_stat::report::Of;
use quipu_stat::report::csv;
use quipu_stat::report::json::{remark, rows, value};

use super::sample;

#[test]
fn lines_have_perfs_fields() {
    let mut out = String::new();
    rows(&mut out, &sample::repeated().rows, Of::All, false);
    insta::assert_snapshot!(out);
}

#[test]
fn what_is_uncertain_says_so() {
    let mut out = String::new();
    for extra in [false, true] {
        rows(&mut out, &sample::uncertain().rows, Of::All, extra);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn places_have_a_field_of_their_own() {
    let mut out = String::new();
    rows(
        &mut out,
        &sample::per_core().rows,
        Of::Interval(0.25),
        false,
    );
    insta::assert_snapshot!(out);
}

#[test]
fn a_remark_is_an_object_of_its_own() {
    let note = Note {
        about: "taken".into(),
        events: vec!["counter 0 of CPU 0".into()],
        text: "enabled already".into(),
    };
    let object = r#"{"reason":"enabled already","taken":["counter 0 of CPU 0"]}"#;
    assert_eq!(remark(&note), format!("{object}\n"));
    assert_eq!(
        csv::comment(&note),
        "# taken: counter 0 of CPU 0: enabled already\n"
    );
}

#[test]
fn large_values_keep_their_digits() {
    let row = sample::row(quipu::Hardware::Cycles.into(), u64::MAX.into(), 1);
    assert_eq!(value(&row, row.count), "18446744073709551615.000000");
}
