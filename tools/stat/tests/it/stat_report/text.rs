//! The report for people.

use quipu_shell::terminal::Layout;
use quipu_stat::report::Report;
use quipu_stat::report::text::{Columns, report};

use super::sample;

fn written(sample: &Report) -> String {
    let mut out = String::new();
    report(&mut out, sample, false, Layout::PLAIN);
    out
}

#[test]
fn exact_counts() {
    insta::assert_snapshot!(written(&sample::exact()));
}

#[test]
fn uncertain_counts() {
    insta::assert_snapshot!(written(&sample::uncertain()));
}

#[test]
fn several_runs() {
    insta::assert_snapshot!(written(&sample::repeated()));
}

#[test]
fn the_time_of_each_run() {
    let mut repeated = sample::repeated();
    repeated.times.runs = vec![0.002, 0.003, 0.004];
    insta::assert_snapshot!(written(&repeated));
}

#[test]
fn cores_of_a_cgroup() {
    insta::assert_snapshot!(written(&sample::per_core()));
}

#[test]
fn an_interval_with_its_heading() {
    let mut out = String::new();
    let mut columns = Columns::new(Layout::PLAIN);
    columns.interval(&mut out, 0.25, &sample::exact().rows, true, Layout::PLAIN);
    columns.interval(
        &mut out,
        0.5,
        &sample::uncertain().rows,
        false,
        Layout::PLAIN,
    );
    insta::assert_snapshot!(out);
}

#[test]
fn lines_are_narrower_where_the_terminal_is() {
    let mut all = String::new();
    for width in [60, 80, 120, 200] {
        let layout = Layout {
            width: Some(width),
            ..Layout::PLAIN
        };
        let mut out = String::new();
        let mut columns = Columns::new(layout);
        columns.interval(&mut out, 0.25, &sample::exact().rows, true, layout);
        report(&mut out, &sample::repeated(), false, layout);
        report(&mut out, &sample::per_core(), false, layout);
        for line in out.lines() {
            assert!(line.chars().count() <= width, "{width}: {line}");
        }
        all += &format!("{width} columns\n{out}");
    }
    insta::assert_snapshot!(all);
}

#[test]
fn colour_changes_nothing_but_colour() {
    let mut coloured = String::new();
    let colour = Layout {
        colour: true,
        ..Layout::PLAIN
    };
    report(&mut coloured, &sample::uncertain(), false, colour);
    assert!(coloured.contains("\x1b["));
    let mut plain = coloured;
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m"] {
        plain = plain.replace(code, "");
    }
    let trimmed =
        |text: &str| -> Vec<String> { text.lines().map(|l| l.trim_end().to_owned()).collect() };
    assert_eq!(trimmed(&plain), trimmed(&written(&sample::uncertain())));
}
