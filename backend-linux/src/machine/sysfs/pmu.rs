//! One PMU with all that its directory says.

use quipu_hal::{Error, ErrorKind, PmuEvent, Result};

use super::{CORE_NAMES, Field, NamedEvent, ResolvedPmuEvent, SysfsPmus, named_event, resolve};
use crate::machine::hint::did_you_mean;
use crate::machine::kernel_file;

/// A PMU, as its directory describes it.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Pmu {
    /// Its name: `cpu`, `msr`, `uncore_imc_0`.
    pub name: String,
    /// Its perf_event type (the `type` of `perf_event_attr`).
    pub type_: u32,
    /// The CPUs its events are opened on, once each, for the package or machine they belong to
    /// (`cpumask`); `None` when they can be opened on any CPU or thread.
    pub cpumask: Option<Vec<u32>>,
    /// The CPUs it counts on (`cpus`), for a PMU of one core type; `None` when that is every CPU.
    pub cpus: Option<Vec<u32>>,
    /// Its abilities (`caps`): name and value.
    pub caps: Vec<(String, String)>,
    /// The fields of its config words, sorted by name.
    pub formats: Vec<Format>,
    /// Its events that have a name, sorted by it.
    pub events: Vec<NamedEvent>,
}

impl Pmu {
    /// Returns true if it is a PMU of CPU cores, which counts the generalized hardware events.
    pub fn is_core(&self) -> bool {
        CORE_NAMES.contains(&self.name.as_str()) || self.cpus.is_some()
    }
}

/// A field of a PMU as its file describes it. Kept as text so that one the kernel got wrong, or
/// that is newer than this crate, hides no other.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Format {
    /// The field's name: `event`, `umask`.
    pub name: String,
    /// The text of its file: `config:0-7,32-35`.
    pub definition: String,
}

impl Format {
    /// Parses the definition.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) when the definition is not understood.
    pub fn field(&self) -> Result<Field> {
        self.definition.parse()
    }
}

impl SysfsPmus {
    /// Every PMU with its formats and events, sorted by name. An entry whose type or CPUs cannot be
    /// read is left out; [`pmu`](Self::pmu) says why.
    ///
    /// # Errors
    /// As [`names`](Self::names).
    pub fn pmus(&self) -> Result<Vec<Pmu>> {
        let names = self.names()?;
        Ok(names
            .iter()
            .filter_map(|name| self.pmu(name).ok())
            .collect())
    }

    /// One PMU with its formats and events.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when there is no PMU of this name, with the
    /// nearest names as the hint; else when its type or its CPUs cannot be read.
    pub fn pmu(&self, name: &str) -> Result<Pmu> {
        let type_ = self.type_of(name)?;
        let formats = self
            .texts(name, "format")
            .map(|(name, definition)| Format { name, definition })
            .collect();
        Ok(Pmu {
            name: name.to_owned(),
            type_,
            cpumask: self.cpu_list(name, "cpumask")?,
            cpus: self.cpu_list(name, "cpus")?,
            caps: self.texts(name, "caps").collect(),
            formats,
            events: named_event::collect(self.texts(name, "events")),
        })
    }

    /// The bits, unit and CPUs of an event that is given by terms: `cpu/event=0xc0,umask=1/`.
    ///
    /// A term is a field of the PMU's `format` with a number, an event of its `events` (at most
    /// one), `config` to `config3` for a whole word, or `name`, which only names the event. Fields
    /// that are not mentioned are zero. What the request says itself wins over what the named event
    /// says.
    ///
    /// # Errors
    /// - [`UnsupportedEvent`](ErrorKind::UnsupportedEvent): no such PMU or term; the hint has the
    ///   nearest ones.
    /// - [`InvalidConfiguration`](ErrorKind::InvalidConfiguration): a value is missing, not a number
    ///   or too large for its field, a term is repeated, or the named event needs a parameter
    ///   (`core=?`) that was not given.
    /// - [`UnsupportedFeature`](ErrorKind::UnsupportedFeature): a term that only means something to
    ///   perf (`period`), or a definition of the kernel's that is not understood.
    /// - When a file cannot be read.
    pub fn resolve(&self, event: &PmuEvent) -> Result<ResolvedPmuEvent> {
        resolve::resolve(self, event)
    }

    /// Resolves an event on every instance of a PMU: `uncore_imc` is `uncore_imc_0`, `uncore_imc_1` and so on where the
    /// kernel has these and no `uncore_imc`. Returns the name of each instance with it, in the order of their numbers.
    ///
    /// The infos have the name as it was requested.
    ///
    /// # Errors
    /// As [`resolve`](Self::resolve).
    pub fn resolve_instances(&self, event: &PmuEvent) -> Result<Vec<(String, ResolvedPmuEvent)>> {
        let instances = self.instances(&event.pmu);
        if instances.is_empty() {
            return Ok(vec![(event.pmu.clone(), self.resolve(event)?)]);
        }
        let each = instances.into_iter().map(|pmu| {
            let own = PmuEvent {
                pmu,
                terms: event.terms.clone(),
            };
            let mut resolved = self.resolve(&own)?;
            if resolved.info.name == own.to_string() {
                resolved.info.name = event.to_string().into();
            }
            Ok((own.pmu, resolved))
        });
        each.collect()
    }

    /// The numbered instances of a PMU, in order; none where there is a PMU of that very name.
    pub fn instances(&self, pmu: &str) -> Vec<String> {
        let type_file = self.root.join(pmu).join("type");
        // Where that is not known, the error of reading the file says why.
        if kernel_file::is_there(&type_file).unwrap_or(true) {
            return Vec::new();
        }
        let number = |name: &String| -> Option<u32> {
            let suffix = name.strip_prefix(pmu)?.strip_prefix('_')?;
            let digits = suffix.bytes().all(|b| b.is_ascii_digit());
            digits.then(|| suffix.parse().ok()).flatten()
        };
        let names = self.names().unwrap_or_default().into_iter();
        let mut numbered: Vec<_> = names
            .filter_map(|name| Some((number(&name)?, name)))
            .collect();
        numbered.sort_unstable();
        numbered.into_iter().map(|(_, name)| name).collect()
    }

    pub(super) fn type_of(&self, name: &str) -> Result<u32> {
        let attempted = || format!("find the PMU {}", name.escape_debug());
        let unknown = || {
            let names = self.names().unwrap_or_default();
            Error::new(ErrorKind::UnsupportedEvent, attempted())
                .with_reason("the kernel has no such PMU")
                .with_hint(did_you_mean(name, &names, "the PMUs of this machine are"))
        };
        if !kernel_file::is_component(name) {
            return Err(unknown());
        }
        let path = self.root.join(name).join("type");
        let text = match kernel_file::read_if_there(&path) {
            Ok(text) => text.ok_or_else(unknown)?,
            Err(e) => return Err(kernel_file::error(attempted(), &path, &e)),
        };
        text.parse().map_err(|_| {
            Error::new(ErrorKind::Os, attempted())
                .with_reason(format!("{} holds no number", path.display()))
        })
    }

    /// The files of one of a PMU's directories, those that can be read, with their text.
    fn texts<'a>(
        &'a self,
        pmu: &str,
        directory: &str,
    ) -> impl Iterator<Item = (String, String)> + use<'a> {
        let dir = self.root.join(pmu).join(directory);
        let names = kernel_file::names(&dir).unwrap_or_default();
        names.into_iter().filter_map(move |name| {
            let text = kernel_file::read(&dir.join(&name)).ok()?;
            Some((name, text))
        })
    }
}
