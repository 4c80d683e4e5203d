//! The events of PMUs in the sysfs trees of several machines.

use std::path::Path;

use quipu::{ErrorKind, Target};

use quipu_cli::list::catalog::Catalog;
use quipu_cli::list::entry::ListedEvent;
use quipu_cli::list::selection::{EventKind, ListFilter};
use quipu_linux::sysfs::SysfsPmus;
use quipu_linux::tracefs::Tracefs;

fn selection(filters: &[&str]) -> ListFilter {
    let filters: Vec<String> = filters.iter().map(|f| (*f).to_owned()).collect();
    ListFilter::new(&filters)
}

fn pmus(machine: &str, filters: &[&str]) -> Vec<ListedEvent> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../backend-linux/tests/fixtures");
    let mut catalog = Catalog::default();
    catalog.add_pmus(&selection(filters), &SysfsPmus::at(fixtures.join(machine)));
    catalog.entries
}

fn names(entries: &[ListedEvent]) -> Vec<&str> {
    entries.iter().map(|entry| entry.name.as_str()).collect()
}

#[test]
fn events_of_pmus_read_back_as_events() {
    for machine in ["amd", "intel", "hybrid", "arm"] {
        let entries = pmus(machine, &["pmu"]);
        assert!(!entries.is_empty());
        for entry in entries {
            let (spec, _) = entry.probe.unwrap();
            assert_eq!(
                quipu_text::parse_spec(&entry.name, &quipu_text::NoNames).unwrap(),
                spec
            );
        }
    }
}

#[test]
fn fields_units_cpus_and_parameters_are_told() {
    let form = &pmus("amd", &["raw", "amd_df/"])[0];
    assert_eq!(form.name, "amd_df/event=N,umask=N/");
    assert_eq!(
        form.description,
        "event config:0-7,32-37, umask config:8-15,24-27"
    );
    let form = &pmus("intel", &["raw", "cpu/any"])[0];
    assert!(
        form.name.starts_with("cpu/any,cmask=N,edge,"),
        "{}",
        form.name
    );

    let energy = &pmus("intel", &["energy-pkg"])[0];
    assert_eq!(energy.name, "power/energy-pkg/");
    assert_eq!(
        energy.description,
        "event=0x02, in Joules, of whole CPUs (-a)"
    );
    assert_eq!(energy.probe.as_ref().unwrap().1, Target::Cpu(0));

    let parameters = &pmus("power", &["HPM_INST"])[0];
    assert_eq!(parameters.name, "hv_24x7/HPM_INST,vcpu=?,lpar=?/");
    assert!(parameters.probe.is_none());
}

#[test]
fn kinds_and_texts_select() {
    assert_eq!(names(&pmus("intel", &["pmu", "tsc"])), ["msr/tsc/"]);
    assert_eq!(names(&pmus("intel", &["hw"])), [""; 0]);
}

#[test]
fn tracepoints_that_cannot_be_read_say_why() {
    let mut catalog = Catalog::default();
    catalog.add_tracepoints(&selection(&[]), Ok(Tracefs::at("/nonexistent")));
    let (kind, error) = &catalog.unavailable[0];
    assert_eq!(
        (*kind, error.kind()),
        (EventKind::Tracepoint, ErrorKind::Os)
    );
}
