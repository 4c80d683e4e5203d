//! The events there are, by their names.

use quipu::{Error, ErrorKind};
use quipu_cli::list::catalog::Catalog;
use quipu_cli::list::selection::{EventKind, ListFilter};

fn generalized(filters: &[&str]) -> Vec<String> {
    let filters: Vec<String> = filters.iter().map(|f| (*f).to_owned()).collect();
    let mut catalog = Catalog::default();
    catalog.add_generalized(&ListFilter::new(&filters));
    catalog.entries.into_iter().map(|e| e.name).collect()
}

#[test]
fn events_are_found_by_their_other_names() {
    assert_eq!(generalized(&["sw", "cs"]), ["context-switches"]);
    let caches = generalized(&["l1d"]);
    assert_eq!((caches.len(), caches[0].as_str()), (6, "L1-dcache-loads"));
    assert_eq!(generalized(&[]).len(), 10 + 12 + 42);
}

#[test]
fn raw_events_and_breakpoints_are_probed_by_examples() {
    let mut catalog = Catalog::default();
    catalog.add_raw(&ListFilter::new(&[]));
    for entry in &catalog.entries {
        let (spec, _) = entry.probe.as_ref().unwrap();
        let written = quipu_text::parse_spec(&spec.to_string(), &quipu_text::NoNames).unwrap();
        assert_eq!(written, *spec);
        assert_ne!(entry.name, spec.to_string());
    }
    assert_eq!(catalog.entries.len(), 4);
}

#[test]
fn nothing_found_names_what_is_near_and_what_could_not_be_looked_into() {
    let catalog = Catalog {
        entries: Vec::new(),
        unavailable: vec![(
            EventKind::Tracepoint,
            Error::new(ErrorKind::NoSuchDevice, "read the tracepoints"),
        )],
    };
    let message = catalog.nothing_matches(&ListFilter::new(&["cylces".to_owned()]), &[]);
    assert!(message.starts_with("no event matches cylces; did you mean cycles"));
    assert!(
        message.ends_with("cannot read the tracepoints: no such device"),
        "{message}"
    );
}
