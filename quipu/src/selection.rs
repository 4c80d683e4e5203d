//! The choice of backends, with its reasons: the tables of the event database for this CPU, and the
//! state of the backends on this machine.

use std::collections::BTreeMap;

use quipu_events::CpuTable;
use quipu_hal::{Error, Features, Result};

use crate::{BackendStatus, Machine};

/// The backends in the order in which they are considered, each with the reasons for or against it.
#[derive(Debug)]
pub struct Selection {
    cpus: Result<Vec<MatchedCpu>>,
    backends: Vec<BackendChoice>,
}

/// An entry of the event database that describes this machine's CPU, or one kind of its cores.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchedCpu {
    /// The id: `intel-skx`.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The rule that describes this CPU; `None` if the entry was chosen by its id.
    pub matched_by: Option<String>,
    /// The backends that reach its counters on this system, in order of preference.
    pub prefers: Vec<String>,
}

/// A backend, with the reasons why it counts here or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendChoice {
    /// The backend's name.
    pub backend: &'static str,
    /// True if event sets use it here by default.
    pub chosen: bool,
    /// The reasons, a phrase each.
    pub reasons: Vec<String>,
}

impl Selection {
    /// Returns the entries of the event database that describe this machine, one for each kind of core.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn cpus(&self) -> Result<&[MatchedCpu], &Error> {
        self.cpus.as_deref()
    }

    /// Returns every backend: those that the database names for this CPU and system in its order, then the
    /// others.
    pub fn backends(&self) -> &[BackendChoice] {
        &self.backends
    }
}

impl Machine {
    /// Returns the backends that count here, with the reasons. Opens the event database.
    pub fn selection(&self) -> Selection {
        let cpus = self.native_events().tables().map(|tables| {
            let matched = tables
                .iter()
                .map(|table| matched_cpu(table, std::env::consts::OS));
            matched.collect::<Vec<_>>()
        });
        let used = self.require().unwrap_or_default();
        let used: Vec<&str> = used.iter().map(|backend| backend.name()).collect();
        let automatic = self.backends().iter().map(|status| (status, false));
        let on_request = self.on_request().iter().map(|status| (status, true));
        let mut all: Vec<(&BackendStatus, bool)> = automatic.chain(on_request).collect();
        let entries = cpus.as_deref().unwrap_or_default();
        all.sort_by_key(|(status, _)| preference(entries, status.name()).unwrap_or(usize::MAX));
        let backends = all
            .into_iter()
            .map(|(status, on_request)| BackendChoice {
                backend: status.name(),
                chosen: used.contains(&status.name()),
                reasons: reasons(status, on_request, &cpus, &used),
            })
            .collect();
        Selection { cpus, backends }
    }
}

fn matched_cpu(table: &CpuTable, os: &str) -> MatchedCpu {
    MatchedCpu {
        id: table.id().to_owned(),
        name: table.name().to_owned(),
        matched_by: table.recognised_by().map(str::to_owned),
        prefers: table.backends(os).into_iter().map(str::to_owned).collect(),
    }
}

/// Returns the rank of a backend in the preferences of the first entry that names it.
fn preference(cpus: &[MatchedCpu], backend: &str) -> Option<usize> {
    let place = |cpu: &MatchedCpu| cpu.prefers.iter().position(|name| name == backend);
    cpus.iter().find_map(place)
}

fn reasons(
    status: &BackendStatus,
    on_request: bool,
    cpus: &Result<Vec<MatchedCpu>>,
    used: &[&str],
) -> Vec<String> {
    let name = status.name();
    let mut reasons = match cpus {
        _ if name == "posix" => Vec::new(),
        Ok(cpus) => vec![by_the_tables(cpus, name)],
        Err(_) => vec!["the event database does not know this CPU".to_owned()],
    };
    match status.error() {
        Some(error) => reasons.push(error.to_string()),
        None if used.contains(&name) => reasons.push(match counts_hardware(status) {
            true => "available here".to_owned(),
            false => "available here, but no CPU counters are visible".to_owned(),
        }),
        None if on_request => reasons.push(
            "available here, but only by name: it writes registers past the kernel".to_owned(),
        ),
        None => reasons.push(format!(
            "not needed: {} is available and more precise",
            used.join(", ")
        )),
    }
    reasons
}

fn counts_hardware(status: &BackendStatus) -> bool {
    status.backend().is_some_and(|backend| {
        let features = backend.capabilities().features;
        features.contains(Features::HARDWARE_EVENTS)
    })
}

/// Returns the rank that the tables of this machine's cores give a backend.
fn by_the_tables(cpus: &[MatchedCpu], backend: &str) -> String {
    const PLACES: [&str; 3] = ["first", "second", "third"];
    let names = |cpus: &[&MatchedCpu]| {
        let ids: Vec<&str> = cpus.iter().map(|cpu| cpu.id.as_str()).collect();
        ids.join(" and ")
    };
    let place_of = |cpu: &MatchedCpu| cpu.prefers.iter().position(|name| name == backend);
    let mut by_place: BTreeMap<Option<usize>, Vec<&MatchedCpu>> = BTreeMap::new();
    for cpu in cpus {
        by_place.entry(place_of(cpu)).or_default().push(cpu);
    }
    let silent = by_place.remove(&None);
    let mut said: Vec<String> = by_place
        .into_iter()
        .map(|(place, naming)| {
            let place = place.and_then(|place| PLACES.get(place)).copied();
            format!(
                "{} choice of {}",
                place.unwrap_or("a later"),
                names(&naming)
            )
        })
        .collect();
    if let Some(silent) = silent {
        said.push(format!(
            "it does not reach the counters of {}",
            names(&silent)
        ));
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::NativeEvents;

    fn machine(cpu: &str) -> Machine {
        Machine::with_native_events(Arc::new(NativeEvents::new().for_cpu(cpu)))
    }

    /// For every CPU of the database.
    #[test]
    fn what_is_told_is_what_is_done() {
        let native = NativeEvents::new();
        for cpu in native.database().unwrap().cpus() {
            let machine = machine(&cpu.id);
            let selection = machine.selection();
            let chosen: Vec<&str> = selection
                .backends()
                .iter()
                .filter(|considered| considered.chosen)
                .map(|considered| considered.backend)
                .collect();
            let used = machine.require().unwrap_or_default();
            let used: Vec<&str> = used.iter().map(|backend| backend.name()).collect();
            assert_eq!(chosen, used, "{}", cpu.id);
            assert_eq!(selection.backends().len(), 4);
            for choice in selection.backends() {
                // The tables have no say on posix, which reaches no counters.
                let least = if choice.backend == "posix" { 1 } else { 2 };
                assert!(choice.reasons.len() >= least, "{choice:?}");
            }
        }
    }

    fn entry(id: &str, prefers: &[&str]) -> MatchedCpu {
        MatchedCpu {
            id: id.to_owned(),
            name: String::new(),
            matched_by: None,
            prefers: prefers.iter().map(|&name| name.to_owned()).collect(),
        }
    }

    #[test]
    fn tables_are_quoted_in_their_order() {
        let one = [entry("intel-skx", &["linux", "msr"])];
        assert_eq!(by_the_tables(&one, "linux"), "first choice of intel-skx");
        assert_eq!(by_the_tables(&one, "msr"), "second choice of intel-skx");
        assert_eq!(
            by_the_tables(&one, "pctr"),
            "it does not reach the counters of intel-skx"
        );
        let two = [
            entry("a-core", &["linux"]),
            entry("a-atom", &["msr", "linux"]),
        ];
        assert_eq!(
            by_the_tables(&two, "linux"),
            "first choice of a-core; second choice of a-atom"
        );
        let alike = [entry("a-core", &["linux"]), entry("a-atom", &["linux"])];
        assert_eq!(
            by_the_tables(&alike, "linux"),
            "first choice of a-core and a-atom"
        );
        assert_eq!(
            by_the_tables(&two, "msr"),
            "first choice of a-atom; it does not reach the counters of a-core"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_cpu_that_linux_has_no_driver_for_is_left_to_its_registers() {
        let machine = machine("intel-p5");
        let selection = machine.selection();
        let cpus = selection.cpus().unwrap();
        assert_eq!(
            (cpus[0].id.as_str(), &cpus[0].matched_by),
            ("intel-p5", &None)
        );
        let considered = selection.backends();
        assert_eq!(considered[0].backend, "msr");
        assert!(!considered[0].chosen);
        assert_eq!(considered[0].reasons[0], "first choice of intel-p5");
        let linux = considered.iter().find(|c| c.backend == "linux").unwrap();
        assert_eq!(
            linux.reasons[0],
            "it does not reach the counters of intel-p5"
        );
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_may_prefer_another_backend() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = "[[cpu]]\nid = \"amd-zen4\"\nbackends = { linux = [\"msr\", \"linux\"] }\n";
        std::fs::write(file.path(), text).unwrap();
        let native = NativeEvents::new()
            .for_cpu("amd-zen4")
            .with_file(file.path());
        let machine = Machine::with_native_events(Arc::new(native));
        let selection = machine.selection();
        assert_eq!(selection.cpus().unwrap()[0].prefers, ["msr", "linux"]);
        let first = &selection.backends()[0];
        assert_eq!((first.backend, first.chosen), ("msr", false));
    }
}
