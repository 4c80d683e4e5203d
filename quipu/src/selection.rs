//! The choice of backends, with its reasons: the tables of the event database for this CPU, and the
//! state of the backends on this machine.

use std::collections::BTreeMap;
use std::sync::Arc;

use quipu_events::CpuTable;
use quipu_hal::{Backend, Error, Features, Result};

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
    /// The backends that count with its counters on this system, in the order in which they are tried.
    pub prefers: Vec<String>,
}

/// A backend, with the reasons why it counts here or does not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendChoice {
    /// The backend's name.
    pub backend: String,
    /// True if event sets use it here by default: for events of the CPU's counters, or for others.
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
        let names = |backends: &[Arc<dyn Backend>]| -> Vec<&'static str> {
            backends.iter().map(Backend::name).collect()
        };
        let context = Context {
            of_counters: names(self.for_counters().unwrap_or_default()),
            of_others: names(&self.require().unwrap_or_default()),
            consents: self.consents(),
            cpus: &cpus,
        };
        let automatic = self.backends().iter().map(|status| (status, false));
        let on_request = self.on_request().iter().map(|status| (status, true));
        let known = automatic.chain(on_request);
        let mut backends: Vec<BackendChoice> = known
            .map(|(status, on_request)| context.choice(status, on_request))
            .collect();
        let entries = cpus.as_deref().unwrap_or_default();
        for name in entries.iter().flat_map(|cpu| &cpu.prefers) {
            if backends.iter().all(|choice| choice.backend != *name) {
                backends.push(BackendChoice {
                    backend: name.clone(),
                    chosen: false,
                    reasons: vec![
                        by_the_tables(entries, name),
                        "this program has no backend of that name".to_owned(),
                    ],
                });
            }
        }
        backends.sort_by_key(|choice| preference(entries, &choice.backend).unwrap_or(usize::MAX));
        Selection { cpus, backends }
    }
}

/// The choice that was made, from which the reasons are taken.
struct Context<'a> {
    /// The backends of events of the CPU's counters.
    of_counters: Vec<&'static str>,
    /// The backends of other events.
    of_others: Vec<&'static str>,
    consents: bool,
    cpus: &'a Result<Vec<MatchedCpu>>,
}

impl Context<'_> {
    fn choice(&self, status: &BackendStatus, on_request: bool) -> BackendChoice {
        let name = status.name();
        let counts = self.of_counters.contains(&name);
        let counts_others = self.of_others.contains(&name);
        let entries = self.cpus.as_deref().unwrap_or_default();
        let listed = preference(entries, name).is_some();
        let mut reasons = match self.cpus {
            // It counts with no counters of a CPU, so that the tables are silent as a rule.
            _ if name == "posix" && !listed => Vec::new(),
            Ok(cpus) => vec![by_the_tables(cpus, name)],
            Err(_) => vec!["the event database does not know this CPU".to_owned()],
        };
        let hardware = counts_hardware(status);
        reasons.push(match status.error() {
            Some(error) => error.to_string(),
            None if counts && !hardware && (listed || name != "posix") => {
                "available here, but no CPU counters are visible".to_owned()
            }
            None if counts || counts_others && name == "posix" => "available here".to_owned(),
            None if counts_others => "available here, and used for other events".to_owned(),
            None if on_request && !self.consents => {
                "available here, but only by name or after consent: it writes registers past the kernel"
                    .to_owned()
            }
            None if on_request => "available here, and allowed".to_owned(),
            None => {
                let used = self.of_others.join(", ");
                format!("not needed: {used} is available and more precise")
            }
        });
        BackendChoice {
            backend: name.to_owned(),
            chosen: counts || counts_others,
            reasons,
        }
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
            "not listed for {}, whose counters it is not used for",
            names(&silent)
        ));
    }
    said.join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    use quipu_hal::ErrorKind;
    use quipu_scripted::Scripted;

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
            let chosen: BTreeSet<&str> = selection
                .backends()
                .iter()
                .filter(|considered| considered.chosen)
                .map(|considered| considered.backend.as_str())
                .collect();
            let others = machine.require().unwrap_or_default();
            let counters = machine.for_counters().unwrap_or_default();
            let used = others.iter().chain(counters);
            let used: BTreeSet<&str> = used.map(Backend::name).collect();
            assert_eq!(chosen, used, "{}", cpu.id);
            assert_eq!(selection.backends().len(), 5);
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
            "not listed for intel-skx, whose counters it is not used for"
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
            "first choice of a-atom; not listed for a-core, whose counters it is not used for"
        );
    }

    /// Returns the choice for a backend of this name, where a CPU lists `sim` and `msr`, and Linux counts other events.
    fn choice(
        name: &'static str,
        with: fn(Scripted) -> Scripted,
        changed: fn(&mut Of),
    ) -> (bool, Vec<String>) {
        let refuse = |_: &_, _: &_| Err(Error::new(ErrorKind::UnsupportedEvent, "open it"));
        let backend = with(Scripted::new(name, refuse));
        let machine = Machine::with_native_events(Arc::new(NativeEvents::new()));
        let machine = machine.with_backend(Arc::new(backend));
        let known = machine
            .backends()
            .iter()
            .find(|status| status.name() == name);
        let mut of = Of {
            counters: Vec::new(),
            others: vec!["linux"],
            on_request: false,
            consents: false,
            cpus: Ok(vec![entry("a-core", &["sim", "msr"])]),
        };
        changed(&mut of);
        let context = Context {
            of_counters: of.counters,
            of_others: of.others,
            consents: of.consents,
            cpus: &of.cpus,
        };
        let choice = context.choice(known.expect("it was added"), of.on_request);
        assert_eq!(choice.backend, name);
        (choice.chosen, choice.reasons)
    }

    struct Of {
        counters: Vec<&'static str>,
        others: Vec<&'static str>,
        on_request: bool,
        consents: bool,
        cpus: Result<Vec<MatchedCpu>>,
    }

    #[test]
    fn reasons_say_what_a_backend_is_used_for() {
        let reasons = |chosen: bool, reasons: &[&str]| {
            let reasons = reasons.iter().map(|&reason| reason.to_owned());
            (chosen, reasons.collect::<Vec<_>>())
        };
        let (listed, unlisted) = (
            "first choice of a-core",
            "not listed for a-core, whose counters it is not used for",
        );
        let (here, blind) = (
            "available here",
            "available here, but no CPU counters are visible",
        );
        let unneeded = "not needed: linux is available and more precise";
        let plain: fn(Scripted) -> Scripted = |backend| backend;

        let counts: fn(&mut Of) = |of| of.counters = vec!["sim"];
        assert_eq!(
            choice("sim", Scripted::counting_cpus, counts),
            reasons(true, &[listed, here])
        );
        assert_eq!(
            choice("sim", plain, counts),
            reasons(true, &[listed, blind])
        );
        let counts: fn(&mut Of) = |of| of.counters = vec!["own"];
        assert_eq!(
            choice("own", plain, counts),
            reasons(true, &[unlisted, blind])
        );
        let counts_others: fn(&mut Of) = |of| of.others = vec!["sim"];
        let of_others = "available here, and used for other events";
        for backend in [plain, Scripted::counting_cpus] {
            assert_eq!(
                choice("sim", backend, counts_others),
                reasons(true, &[listed, of_others])
            );
        }
        assert_eq!(
            choice("sim", plain, |_| ()),
            reasons(false, &[listed, unneeded])
        );
        assert_eq!(
            choice("sim", plain, |of| of.consents = true),
            reasons(false, &[listed, unneeded])
        );
        assert_eq!(
            choice("sim", plain, |of| of.cpus =
                Err(Error::new(ErrorKind::NoSuchDevice, "find it"))),
            reasons(
                false,
                &["the event database does not know this CPU", unneeded]
            )
        );

        let by_name = "available here, but only by name or after consent: it writes registers past the kernel";
        assert_eq!(
            choice("sim", plain, |of| of.on_request = true),
            reasons(false, &[listed, by_name])
        );
        assert_eq!(
            choice("sim", plain, |of| (of.on_request, of.consents) =
                (true, true)),
            reasons(false, &[listed, "available here, and allowed"])
        );

        // It counts with no counters of a CPU, unless a file lists it.
        assert_eq!(
            choice("posix", plain, |of| of.counters = vec!["posix"]),
            reasons(true, &[here])
        );
        assert_eq!(
            choice("posix", plain, |of| of.others = vec!["posix"]),
            reasons(true, &[here])
        );
        assert_eq!(choice("posix", plain, |_| ()), reasons(false, &[unneeded]));
        let list: fn(&mut Of) = |of| {
            of.counters = vec!["posix"];
            of.cpus = Ok(vec![entry("a-core", &["posix"])]);
        };
        assert_eq!(
            choice("posix", plain, list),
            reasons(true, &[listed, blind])
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
            "not listed for intel-p5, whose counters it is not used for"
        );
    }

    /// Returns a machine with a file that lists backends for its CPU.
    #[cfg(target_os = "linux")]
    fn machine_that_lists(backends: &str) -> Machine {
        let file = tempfile::NamedTempFile::new().unwrap();
        let text = format!("[[cpu]]\nid = \"amd-zen4\"\nbackends = {{ linux = [{backends}] }}\n");
        std::fs::write(file.path(), text).unwrap();
        let native = NativeEvents::new()
            .for_cpu("amd-zen4")
            .with_file(file.path());
        // It is read before the file is gone.
        native.database().unwrap();
        Machine::with_native_events(Arc::new(native))
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_file_may_prefer_another_backend() {
        let machine = machine_that_lists(r#""msr", "linux""#);
        let selection = machine.selection();
        assert_eq!(selection.cpus().unwrap()[0].prefers, ["msr", "linux"]);
        let first = &selection.backends()[0];
        assert_eq!((first.backend.as_str(), first.chosen), ("msr", false));
    }

    #[test]
    #[cfg(all(target_os = "linux", feature = "posix"))]
    fn posix_is_not_said_to_count_with_counters_where_a_file_lists_it() {
        let machine = machine_that_lists(r#""posix""#);
        let selection = machine.selection();
        let posix = &selection.backends()[0];
        assert_eq!(
            posix.reasons,
            [
                "first choice of amd-zen4",
                "available here, but no CPU counters are visible"
            ]
        );
    }
}
