//! The native events of a machine: its tables of the event database, opened when first needed.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use quipu_events::identify::this_machine;
use quipu_events::{CpuTable, Database, Formula, Interface};
use quipu_hal::{Error, ErrorKind, Event, EventMap, Result};
use quipu_text::{EventNames, libpfm4};

use crate::Machine;

/// The native events of a machine: one table for each kind of core.
///
/// Nothing is read and the CPU is not asked before the first table is wanted; then both happen once.
///
/// ```
/// use quipu::NativeEvents;
///
/// let pentium = NativeEvents::new().for_cpu("intel-p5");
/// assert!(!pentium.is_open());
/// assert_eq!(pentium.tables()?[0].name(), "Intel Pentium");
/// assert!(pentium.is_open());
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct NativeEvents {
    cpu: Option<String>,
    file: Option<PathBuf>,
    opened: OnceLock<Result<Opened>>,
    /// The presets that were asked for, each found once: a formula, or `None` for one that maps resolve.
    formulas: RwLock<BTreeMap<String, Option<Arc<Formula>>>>,
    /// True if this system or user has event files.
    system_files: OnceLock<bool>,
}

#[derive(Debug)]
struct Opened {
    database: Database,
    tables: Result<Vec<CpuTable>>,
    skipped_files: Vec<Error>,
}

/// Native events that several share.
pub(crate) type SharedNativeEvents = Arc<NativeEvents>;

impl NativeEvents {
    /// Returns those of this machine, from the embedded database and the event files of this system and user
    /// ([`Database::open`]).
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the one that [`Machine::this`](crate::Machine::this) uses.
    pub fn this() -> &'static Arc<Self> {
        static THIS: OnceLock<Arc<NativeEvents>> = OnceLock::new();
        THIS.get_or_init(Arc::default)
    }

    /// Returns the same, to be kept.
    pub(crate) fn shared() -> SharedNativeEvents {
        Arc::clone(Self::this())
    }

    /// Sets the CPU to be another than that of this machine, by its id in the database. To count with,
    /// that CPU has to take the same bits ([`Database::cpu_for_core`]).
    #[must_use]
    pub fn for_cpu(mut self, id: impl Into<String>) -> Self {
        self.cpu = Some(id.into());
        self
    }

    /// Adds an event file on top of the others.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// Returns the database.
    ///
    /// # Errors
    /// When the [file](Self::with_file) cannot be used. Others that cannot are skipped; see
    /// [`skipped_files`](Self::skipped_files).
    pub fn database(&self) -> Result<&Database> {
        Ok(&self.open()?.database)
    }

    /// Returns the tables: one for each kind of core.
    ///
    /// # Errors
    /// As [`database`](Self::database); [`UnsupportedFeature`](quipu_hal::ErrorKind::UnsupportedFeature)
    /// or [`NoSuchDevice`](quipu_hal::ErrorKind::NoSuchDevice) when the database does not know this CPU
    /// or the system does not say which it is; [`InvalidConfiguration`](quipu_hal::ErrorKind::InvalidConfiguration)
    /// when there is none of the [id](Self::for_cpu).
    pub fn tables(&self) -> Result<&[CpuTable]> {
        self.open()?.tables.as_deref().map_err(Clone::clone)
    }

    /// Returns the tables as a backend of this machine takes them.
    ///
    /// # Errors
    /// As [`tables`](Self::tables); as [`Database::cpu_for_core`] for [another CPU](Self::for_cpu).
    pub fn maps(&self, interface: Interface) -> Result<Vec<Arc<dyn EventMap>>> {
        let map = |table: &CpuTable| Arc::new(table.events_for(interface)) as Arc<dyn EventMap>;
        let Some(id) = &self.cpu else {
            return Ok(self.tables()?.iter().map(map).collect());
        };
        let cores = this_machine()?;
        let tables: Result<Vec<CpuTable>> = cores
            .iter()
            .take(1)
            .map(|core| self.database()?.cpu_for_core(id, core))
            .collect();
        Ok(tables?.iter().map(map).collect())
    }

    /// Returns the table of a machine with one kind of core.
    ///
    /// # Errors
    /// As [`maps`](Self::maps); [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) on a hybrid CPU.
    #[cfg(any(
        all(feature = "msr", unix),
        target_os = "freebsd",
        target_os = "dragonfly"
    ))]
    pub(crate) fn of_only_core(&self, interface: Interface) -> Result<Arc<dyn EventMap>> {
        // The table of another CPU is one, however many core types this machine has.
        only(self.maps(interface)?, this_machine()?.len(), interface)
    }

    /// Returns the tables as perf_event_open(2) takes them.
    #[cfg(all(feature = "linux", target_os = "linux"))]
    pub(crate) fn linux_maps(&self) -> Result<Vec<Arc<dyn EventMap>>> {
        self.maps(Interface::Linux)
    }

    /// Returns the formula of a preset that is more than one native event, which maps resolve by
    /// themselves; `None` if the name is not that of such a preset.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) when the kinds of core of a hybrid CPU have
    /// different formulas for it.
    pub(crate) fn formula(&self, name: &str) -> Result<Option<Arc<Formula>>> {
        let known = self.formulas.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(formula) = known.get(name) {
            return Ok(formula.clone());
        }
        drop(known);
        let formula = self.find_formula(name)?;
        let formula = formula.map(Arc::new);
        let is_preset = |table: &CpuTable| table.preset(name).is_some();
        // Programs may try any number of other names.
        if self.tables().unwrap_or_default().iter().any(is_preset) {
            let mut known = self
                .formulas
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            known.insert(name.to_owned(), formula.clone());
        }
        Ok(formula)
    }

    fn find_formula(&self, name: &str) -> Result<Option<Formula>> {
        let mut formulas = self
            .tables()
            .unwrap_or_default()
            .iter()
            .filter_map(|table| {
                let preset = table.preset(name)?;
                // An event hides a preset of its name.
                preset.formula.ok().filter(|_| table.event(name).is_none())
            });
        let Some(first) = formulas.next() else {
            return Ok(None);
        };
        if formulas.any(|other| other != first) {
            return Err(
                Error::new(ErrorKind::UnsupportedFeature, format!("count {name}"))
                    .with_reason("the core types of this CPU have different formulas for it")
                    .with_hint("count the events it is made of; `quipu list native` shows them"),
            );
        }
        let is_native = matches!(first.terms().next(), Some(Event::Named(_)));
        Ok((first.single().is_none() || !is_native).then_some(first))
    }

    /// Returns the native event that a file of the user puts in the place of a generalized one, as a formula.
    /// The database is opened only where there is such a file.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when the file says that the CPU has none;
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) when kinds of core of a hybrid CPU have
    /// different ones.
    pub(crate) fn user_defined(&self, event: &Event) -> Result<Option<Arc<Formula>>> {
        if !matches!(event, Event::Hardware(_) | Event::Cache(_)) || !self.has_files() {
            return Ok(None);
        }
        let tables = self.tables().unwrap_or_default();
        let own: Vec<_> = tables
            .iter()
            .map(|table| table.user_defined(event))
            .collect();
        let Some(first) = own.iter().flatten().next().cloned() else {
            return Ok(None);
        };
        let attempted = format!("count {event} as an event file defines it");
        if own.iter().any(|other| other.as_ref() != Some(&first)) {
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("it is not the same event on each core type of this CPU"));
        }
        let native = first.event.map_err(|reason| {
            Error::new(ErrorKind::UnsupportedEvent, &*attempted).with_reason(reason)
        })?;
        let formula = Formula::parse(&native).map_err(|error| {
            Error::new(ErrorKind::UnsupportedEvent, attempted).with_reason(error.to_string())
        })?;
        Ok(Some(Arc::new(formula)))
    }

    /// Returns the backends that the event database lists for this machine's CPU, in its order: those of the first
    /// kind of core, then those that other kinds have beside them. Empty if it lists none for this system.
    ///
    /// # Errors
    /// As [`tables`](Self::tables).
    pub(crate) fn listed_backends(&self) -> Result<Vec<&str>> {
        let mut listed = Vec::new();
        for table in self.tables()? {
            for name in table.backends(std::env::consts::OS) {
                if !listed.contains(&name) {
                    listed.push(name);
                }
            }
        }
        Ok(listed)
    }

    /// Returns true if a file of root's consents to a backend that otherwise counts only if it is named.
    pub(crate) fn allows(&self, backend: &str) -> bool {
        // The embedded database consents to nothing.
        self.has_files()
            && self
                .database()
                .is_ok_and(|database| database.allows(backend))
    }

    /// Returns true if the event database has an event, or a preset, of a written name for this machine's CPU.
    pub(crate) fn has_event(&self, name: &str) -> bool {
        let tables = self.tables().unwrap_or_default();
        tables.iter().any(|table| table.has_event(name))
    }

    /// Returns true if any event file lies over the embedded database.
    fn has_files(&self) -> bool {
        self.file.is_some() || *self.system_files.get_or_init(Database::has_user_files)
    }

    /// Returns true if the database has been opened.
    pub fn is_open(&self) -> bool {
        self.opened.get().is_some()
    }

    /// Returns the reasons why event files were skipped when the database was opened. Opens nothing.
    pub fn skipped_files(&self) -> &[Error] {
        match self.opened.get() {
            Some(Ok(opened)) => &opened.skipped_files,
            _ => &[],
        }
    }

    fn open(&self) -> Result<&Opened> {
        let opened = self.opened.get_or_init(|| {
            let (database, skipped_files) = Database::open_lenient(self.file.as_deref())?;
            let tables = match &self.cpu {
                Some(id) => database.cpu(id).map(|table| vec![table]),
                None => database.this_machine(),
            };
            Ok(Opened {
                database,
                tables,
                skipped_files,
            })
        });
        opened.as_ref().map_err(Clone::clone)
    }
}

impl EventNames for NativeEvents {
    fn ends_in_mask(&self, name: &str) -> bool {
        let tables = self.tables().unwrap_or_default();
        let mut maps = tables
            .iter()
            .map(|table| table.events_for(Interface::Linux));
        maps.any(|map| map.ends_in_mask(name))
    }

    fn generalized(&self, name: &str) -> Option<Event> {
        let event = libpfm4::in_any_case(name)?;
        let tables = self.tables().unwrap_or_default();
        let mut maps = tables
            .iter()
            .map(|table| table.events_for(Interface::Linux));
        (!maps.any(|map| map.has_event(name))).then_some(event)
    }
}

impl Machine {
    /// Returns this machine with other native events: of an event file, or of another CPU.
    pub fn with_native_events(native: Arc<NativeEvents>) -> Self {
        Self::with(native)
    }

    /// Returns the native events of this machine.
    pub fn native_events(&self) -> &NativeEvents {
        &self.native
    }
}

/// Returns the map of the only core type.
#[cfg(any(
    all(any(feature = "msr", test), unix),
    target_os = "freebsd",
    target_os = "dragonfly"
))]
fn only(
    mut maps: Vec<Arc<dyn EventMap>>,
    core_types: usize,
    interface: Interface,
) -> Result<Arc<dyn EventMap>> {
    match (maps.pop(), maps.is_empty() && core_types < 2) {
        (Some(map), true) => Ok(map),
        _ => Err(Error::new(
            ErrorKind::UnsupportedFeature,
            format!("count with {}", interface.name()),
        )
        .with_reason("the core types of a hybrid CPU have different registers")
        .with_hint("count with perf_event, which knows which core is which")),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;
    use quipu_hal::ErrorKind;

    #[test]
    fn nothing_is_opened_before_it_is_wanted() {
        let native = NativeEvents::new().with_file("/nowhere/events.toml");
        assert!(native.skipped_files().is_empty() && !native.is_open());
        let error = native.tables().expect_err("no such file");
        assert!(
            error.to_string().contains("/nowhere/events.toml"),
            "{error}"
        );
        assert!(native.is_open());
    }

    #[test]
    fn another_cpu_has_its_own_events() {
        let zen = NativeEvents::new().for_cpu("amd-zen4");
        let ids: Vec<_> = zen.tables().unwrap().iter().map(CpuTable::id).collect();
        assert_eq!(ids, ["amd-zen4"]);
        let none = NativeEvents::new().for_cpu("amd-zen0");
        assert_eq!(
            none.tables().unwrap_err().kind(),
            ErrorKind::InvalidConfiguration
        );
        assert!(none.database().is_ok());
    }

    #[cfg(unix)]
    #[test]
    fn a_hybrid_cpu_is_refused_also_with_one_table_for_all_of_it() {
        let map = || -> Arc<dyn EventMap> {
            let generation = quipu_msr::sim::Generation::ALL[5];
            Arc::new(quipu_msr::sim::EventNames::new(generation.model()))
        };
        assert!(only(vec![map()], 1, Interface::Msr).is_ok());
        for (maps, core_types) in [(vec![map()], 2), (vec![map(), map()], 2), (Vec::new(), 1)] {
            let refused = only(maps, core_types, Interface::Msr).err();
            let kind = refused.map(|error| error.kind());
            assert_eq!(kind, Some(ErrorKind::UnsupportedFeature));
        }
    }

    /// No machine takes both x86 and ARM events.
    #[test]
    fn another_cpu_is_counted_with_only_where_its_bits_mean_what_they_say() {
        let maps = |id| NativeEvents::new().for_cpu(id).maps(Interface::Linux);
        let refused = ["intel-p5", "arm-neoverse-n1"].map(|id| maps(id).err());
        assert!(refused.iter().any(Option::is_some));
        for error in refused.into_iter().flatten() {
            assert_ne!(error.kind(), ErrorKind::UnsupportedEvent, "{error}");
        }
    }

    #[test]
    fn a_file_puts_native_events_in_the_place_of_generalized_ones() {
        let file = std::env::temp_dir().join(format!("quipu-own-{}.toml", std::process::id()));
        let own = "[[cpu]]\nid = \"amd-zen4\"\n[cpu.generalized]\ncycles = \"ex_ret_instr\"\n\
            branches = { absent = \"not here\" }\nL1-dcache-loads = \"ls_dispatch:ld_dispatch\"\n";
        std::fs::write(&file, own).unwrap();
        let zen = NativeEvents::new().for_cpu("amd-zen4").with_file(&file);
        let text = |event: &str| {
            let formula = zen.user_defined(&quipu_text::parse_event(event).unwrap())?;
            Ok::<_, Error>(formula.map(|formula| formula.to_string()))
        };
        let all = [
            "cycles",
            "L1-dcache-loads",
            "instructions",
            "page-faults",
            "branches",
        ]
        .map(text);
        std::fs::remove_file(&file).unwrap();
        let [cycles, loads, instructions, faults, branches] = all;
        assert_eq!(cycles.unwrap().as_deref(), Some("ex_ret_instr"));
        assert_eq!(loads.unwrap().as_deref(), Some("ls_dispatch:ld_dispatch"));
        assert_eq!([instructions.unwrap(), faults.unwrap()], [None, None]);
        assert_eq!(branches.unwrap_err().reason(), Some("not here"));
        // Without a file nothing is opened.
        let embedded = NativeEvents::new().for_cpu("amd-zen4");
        if !Database::has_user_files() {
            assert!(
                embedded
                    .user_defined(&quipu_text::parse_event("cycles").unwrap())
                    .unwrap()
                    .is_none()
            );
            assert!(!embedded.is_open());
        }
    }

    #[test]
    fn presets_of_several_events_have_formulas_and_others_count_as_they_are() {
        let file = std::env::temp_dir().join(format!("quipu-presets-{}.toml", std::process::id()));
        let presets = "[[cpu]]\nid = \"amd-zen4\"\n[cpu.presets]\nFAULTS = \"page-faults\"\n";
        std::fs::write(&file, presets).unwrap();
        let zen = NativeEvents::new().for_cpu("amd-zen4").with_file(&file);
        let text = |name| {
            zen.formula(name)
                .unwrap()
                .map(|formula| formula.to_string())
        };
        let branches = text("papi_br_ntk");
        let software = text("FAULTS");
        let single = [text("PAPI_TOT_INS"), text("NO_SUCH")];
        // What was found is kept, and no name of nothing.
        let kept = zen.formulas.read().unwrap();
        let kept: Vec<_> = kept.keys().cloned().collect();
        assert_eq!(kept, ["FAULTS", "PAPI_TOT_INS", "papi_br_ntk"]);
        std::fs::remove_file(&file).unwrap();
        assert_eq!(branches.as_deref(), Some("ex_ret_brn - ex_ret_brn_tkn"));
        assert_eq!(software.as_deref(), Some("page-faults"));
        assert_eq!(single, [None, None]);
    }

    /// Returns the native events of a machine with these kinds of core, and a file that defines presets for each.
    fn hybrid(cores: [&str; 2], presets: [&str; 2]) -> NativeEvents {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        for (core, presets) in ["amd-zen3", "amd-zen4"].iter().zip(presets) {
            writeln!(file, "[[cpu]]\nid = \"{core}\"\n[cpu.presets]\n{presets}").unwrap();
        }
        let (database, _) = Database::open_lenient(Some(file.path())).unwrap();
        let tables = cores.iter().map(|core| database.cpu(core).unwrap());
        NativeEvents {
            opened: OnceLock::from(Ok(Opened {
                tables: Ok(tables.collect()),
                database,
                skipped_files: vec![Error::new(ErrorKind::Os, "read a file")],
            })),
            ..NativeEvents::default()
        }
    }

    #[test]
    fn kinds_of_core_share_what_is_the_same_on_all_of_them() {
        const CORES: [&str; 2] = ["amd-zen3", "amd-zen4"];
        let same = ["P = \"ex_ret_instr + ex_ret_brn\""; 2];
        let formula = hybrid(CORES, same).formula("P").unwrap();
        assert_eq!(formula.unwrap().to_string(), "ex_ret_instr + ex_ret_brn");
        let other = [same[0], "P = \"ex_ret_instr - ex_ret_brn\""];
        let refused = hybrid(CORES, other).formula("P").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
        let native = hybrid(CORES, same);
        #[cfg(target_os = "linux")]
        assert_eq!(native.listed_backends().unwrap(), ["linux", "msr"]);
        assert!(native.has_event("ex_ret_instr") && native.has_event("p"));
        assert!(!native.has_event("no_such_event"));
        assert_eq!(native.skipped_files().len(), 1);
        assert_eq!(native.tables().unwrap().len(), 2);
    }

    #[test]
    fn generalized_events_are_looked_for_only_where_a_file_may_define_them() {
        let native = NativeEvents::new().for_cpu("amd-zen4");
        if native.has_files() {
            return;
        }
        let cycles = Event::Hardware(quipu_hal::Hardware::Cycles);
        assert_eq!(native.user_defined(&cycles), Ok(None));
        assert!(!native.allows("msr") && !native.is_open());
    }

    /// Names that the CPU's own events have are these events.
    #[test]
    fn names_are_read_as_those_of_the_cpu() {
        let pentium = NativeEvents::new().for_cpu("intel-p5");
        let zen = NativeEvents::new().for_cpu("amd-zen4");
        assert_eq!(pentium.generalized("BRANCHES"), None);
        let branches = Event::Hardware(quipu_hal::Hardware::Branches);
        assert_eq!(zen.generalized("BRANCHES"), Some(branches));
        assert_eq!(zen.generalized("ex_ret_instr"), None);
        let skylake = NativeEvents::new().for_cpu("intel-skl");
        assert!(skylake.ends_in_mask("skl::L2_RQSTS:MISS"));
        assert!(!skylake.ends_in_mask("skl::L2_RQSTS:u"));
    }
}
