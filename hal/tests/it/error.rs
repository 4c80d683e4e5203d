//! The error type: its sentence, and its way to and from `std::io::Error`.

use std::io;

use quipu_hal::{Error, ErrorKind};

#[test]
fn every_kind_displays_and_is_listed_once() {
    let mut seen = std::collections::HashSet::new();
    for &kind in ErrorKind::ALL {
        let text = Error::new(kind, "do it").to_string();
        assert_eq!(text, format!("cannot do it: {}", kind.as_str()));
        assert!(seen.insert(text));
    }
}

#[test]
fn debug_is_the_sentence_with_the_hint() {
    let e = Error::new(ErrorKind::Busy, "open cycles").with_hint("stop perf");
    assert_eq!(format!("{e:?}"), format!("{e:#}"));
    assert!(format!("{:?}", Err::<(), _>(e)).ends_with("stop perf)"));
}

#[test]
fn parts_come_in_order_and_the_hint_only_when_asked() {
    let e = Error::new(ErrorKind::Os, "read")
        .with_errno(5)
        .with_reason("why")
        .with_hint("do that")
        .with_member(2);
    let plain = e.to_string();
    assert!(plain.starts_with("cannot read: why ["));
    assert!(!plain.contains("do that"));
    assert_eq!(format!("{e:#}"), format!("{plain}; do that"));
    assert_eq!((e.errno(), e.member()), (Some(5), Some(2)));
}

#[test]
fn a_sentence_says_a_thing_once() {
    let error = || Error::new(ErrorKind::NoSuchTarget, "count process 7");
    for (error, expected) in [
        (error(), "no such target"),
        (error().with_errno(3), "no such target"),
        (error().with_reason("no such process"), "no such process"),
        (
            error().with_errno(3).with_reason("no such process"),
            "no such process",
        ),
    ] {
        assert_eq!(
            error.to_string(),
            format!("cannot count process 7: {expected}")
        );
    }
}

#[test]
fn the_number_of_the_operating_system_survives_both_conversions() {
    use std::error::Error as _;

    let denied = Error::from(io::Error::from_raw_os_error(13));
    assert_eq!(
        (denied.kind(), denied.errno()),
        (ErrorKind::NoPermission, Some(13))
    );
    let source = denied.source().expect("it has a source").to_string();
    assert_eq!(source, io::Error::from_raw_os_error(13).to_string());
    assert!(Error::new(ErrorKind::Busy, "do it").source().is_none());

    let back = io::Error::from(denied.clone());
    assert_eq!(back.kind(), io::ErrorKind::PermissionDenied);
    let inner = back.get_ref().and_then(|e| e.downcast_ref::<Error>());
    assert_eq!(inner, Some(&denied));
    let told = Error::from(io::Error::other("the words of somewhere else"));
    assert_eq!(told.reason(), Some("the words of somewhere else"));
}

/// Of the operating system's refusals the number says more than the kind.
#[test]
fn refusals_of_other_kinds_have_the_words_of_the_system() {
    let words = io::Error::from_raw_os_error(5).to_string();
    let refused = || Error::new(ErrorKind::Os, "read").with_errno(5);
    assert_eq!(refused().to_string(), format!("cannot read: {words}"));
    let why = refused().with_reason("why");
    assert_eq!(why.to_string(), format!("cannot read: why [{words}]"));
    let other = io::Error::other("elsewhere");
    let other = Error::new(ErrorKind::Os, "read").with_io_error(&other);
    assert_eq!(other.to_string(), "cannot read: elsewhere");
}

#[test]
fn kinds_are_those_of_the_standard_library() {
    use ErrorKind as E;
    use io::ErrorKind as I;
    for (kind, of_io, there_and_back) in [
        (E::NoPermission, I::PermissionDenied, E::NoPermission),
        (E::NoSuchDevice, I::NotFound, E::NoSuchDevice),
        (E::NoSuchTarget, I::NotFound, E::NoSuchDevice),
        (E::Busy, I::ResourceBusy, E::Busy),
        (E::UnsupportedFeature, I::Unsupported, E::UnsupportedFeature),
        (E::UnsupportedEvent, I::Unsupported, E::UnsupportedFeature),
        (
            E::InvalidConfiguration,
            I::InvalidInput,
            E::InvalidConfiguration,
        ),
        (E::TooManyEvents, I::InvalidInput, E::InvalidConfiguration),
        (E::Os, I::Other, E::Os),
        (E::WrongThread, I::Other, E::Os),
    ] {
        assert_eq!(io::Error::from(Error::new(kind, "do it")).kind(), of_io);
        let back = Error::from(io::Error::from(of_io));
        assert_eq!(back.kind(), there_and_back);
        assert_eq!(back.attempted(), "use the operating system");
    }
}
