//! Formulas over events: their arithmetic, their names, and where they are wrong.

use quipu_events::Formula;
use quipu_hal::{CacheEvent, Event, Hardware};

fn value(text: &str) -> Option<f64> {
    Formula::parse(text).unwrap().evaluate(&[7.0, 3.0])
}

#[test]
fn operators_bind_as_in_arithmetic() {
    assert_eq!(value("A - B - 1"), Some(3.0));
    assert_eq!(value("A - (B - 1)"), Some(5.0));
    assert_eq!(value("1 + A * B / 2"), Some(11.5));
    assert_eq!(value("(1 + A) * B"), Some(24.0));
    assert_eq!(value("A / (B - B)"), None);
    let by_zero = Formula::parse("A/0").unwrap_err();
    assert_eq!(
        (by_zero.at, by_zero.reason),
        (2, "this is a division by zero")
    );
}

#[test]
fn a_hyphen_inside_a_name_does_not_subtract() {
    let formula = Formula::parse("branch-misses - L2_RQSTS:MISS:c=1").unwrap();
    assert_eq!(formula.events(), ["branch-misses", "L2_RQSTS:MISS:c=1"]);
    assert_eq!(formula.single(), None);
    assert_eq!(Formula::parse("(A)").unwrap().single(), Some("A"));
}

#[test]
fn a_word_with_an_underscore_is_a_name_whatever_it_begins_with() {
    let formula = Formula::parse("CPU_CYCLES - 0INST_COMMIT * 2").unwrap();
    assert_eq!(formula.events(), ["CPU_CYCLES", "0INST_COMMIT"]);
    let neither = Formula::parse("A + 2x").unwrap_err();
    assert_eq!(
        (neither.at, neither.reason),
        (4, "this is neither a number nor a name")
    );
}

#[test]
fn whole_formulas_are_exact_and_others_are_none() {
    let whole = |text: &str| {
        let formula = Formula::parse(text).unwrap();
        (formula.is_whole(), formula.evaluate_whole(&[7, 3]))
    };
    assert_eq!(whole("A - 4 * B"), (true, Some(-5)));
    assert_eq!(whole("A / B"), (false, None));
    assert_eq!(whole("A * 0.5"), (false, None));
    assert_eq!(whole("A + 9007199254740994"), (false, None));
    assert_eq!(whole("A + B - C"), (true, None));
    let square = Formula::parse("A * A").unwrap();
    assert_eq!(square.evaluate_whole(&[1 << 64]), None);
}

#[test]
fn terms_are_generalized_events_by_their_own_names_alone() {
    let formula = Formula::parse("cycles + LLC-load-misses + cs + l1d-loads").unwrap();
    let terms: Vec<Event> = formula.terms().collect();
    let misses = CacheEvent::from_name("LLC-load-misses").unwrap();
    assert_eq!(terms[..2], [Hardware::Cycles.into(), misses.into()]);
    assert_eq!(
        terms[2..],
        ["cs", "l1d-loads"].map(|name| Event::Named(name.into()))
    );
    assert_eq!(
        formula.to_string(),
        "cycles + LLC-load-misses + cs + l1d-loads"
    );
}

#[test]
fn errors_say_where() {
    for (text, at) in [
        ("", 0),
        ("A +", 3),
        ("A B", 2),
        ("(A", 0),
        ("A)", 1),
        ("A + ()", 5),
        ("A $ B", 2),
        ("1x", 0),
        ("* A", 0),
    ] {
        assert_eq!(Formula::parse(text).unwrap_err().at, at, "{text}");
    }
    let nested = |depth| "(".repeat(depth) + "A" + &")".repeat(depth);
    assert_eq!(Formula::parse(&nested(64)).unwrap().single(), Some("A"));
    assert_eq!(Formula::parse(&nested(65)).unwrap_err().at, 64);
    assert!(Formula::parse(&"(".repeat(4000)).is_err());
    let waiting = |numbers: usize| "A - (".repeat(numbers - 1) + "A" + &")".repeat(numbers - 1);
    let most = Formula::parse(&waiting(32)).unwrap();
    assert_eq!(most.evaluate(&[1.0]), Some(0.0));
    assert_eq!(most.evaluate_whole(&[1]), Some(0));
    let more = Formula::parse(&waiting(33)).unwrap_err();
    assert_eq!(more.reason, "too many numbers wait for an operator");
    assert!(Formula::parse(&"é".repeat(3000)).is_err());
}

#[test]
fn the_larger_and_the_smaller_of_two() {
    let formula = Formula::parse("max(0, A - B) + min( A, max(B, 2) )").unwrap();
    assert_eq!(formula.events(), ["A", "B"]);
    assert_eq!(formula.evaluate(&[5.0, 3.0]), Some(5.0));
    assert_eq!(formula.evaluate(&[1.0, 3.0]), Some(1.0));
    assert_eq!(formula.evaluate_whole(&[5, 1]), Some(6));
    assert_eq!(
        Formula::parse("max(A, B)").unwrap().unit(&["ns", "ns"]),
        Some("ns")
    );
    // A name like any other where no parenthesis follows.
    assert_eq!(
        Formula::parse("max + min").unwrap().events(),
        ["max", "min"]
    );
    for (text, error) in [
        (
            "max(A)",
            "at character 6: a comma and a second number are missing here",
        ),
        (
            "max(A, B",
            "at character 4: this parenthesis is never closed",
        ),
        (
            "max(A,)",
            "at character 7: something is missing before this",
        ),
        (
            "A / max(0, 0)",
            "at character 4: this is a division by zero",
        ),
    ] {
        assert_eq!(Formula::parse(text).unwrap_err().to_string(), error);
    }
}

#[test]
fn an_event_may_be_of_one_core_pmu() {
    let both = Formula::parse("cpu_core@slots@ / cpu_atom@L2_RQSTS.MISS:c=1@ - cycles").unwrap();
    let terms: Vec<String> = both.terms().map(|term| term.to_string()).collect();
    let expected = ["cpu_core/slots/", "cpu_atom/'L2_RQSTS.MISS:c=1'/", "cycles"];
    assert_eq!(terms, expected);
    // What is on a core already, numbers and functions stay as they are.
    let qualified = Formula::parse("max(cpu_core@A@, 2.5 * A - A.B) + page-faults").unwrap();
    let expected = "max(cpu_core@A@, 2.5 * cpu_atom@A@ - cpu_atom@A.B@) + page-faults";
    assert_eq!(qualified.on_core("cpu_atom"), expected);
    for (text, at) in [("a@b", 1), ("a@@", 1), ("2 + a@b @", 5), ("@b@", 0)] {
        assert_eq!(Formula::parse(text).unwrap_err().at, at, "{text}");
    }
}
