//! From the terms of an event to the bits, with what the PMU's files say.

use std::borrow::Cow;
use std::io;
use std::path::{Path, PathBuf};

use quipu_hal::{
    Error, ErrorKind, EventInfo, Filter, PerfConfig, PmuEvent, Result, Term, TermValue, ValueKind,
};

use super::named_event::{self, DefinedValue};
use super::{CORE_NAMES, ConfigWord, Field, SysfsPmus};
use crate::machine::hint::did_you_mean;
use crate::machine::kernel_file;

/// An event of a PMU, ready for perf_event_open(2).
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ResolvedPmuEvent {
    /// The type and the config words.
    pub config: PerfConfig,
    /// Name, unit, scale, and whether it is a gauge (`.snapshot`).
    ///
    /// A PMU that has a `cpumask`, and `msr`, honour no filter: most of them refuse one with EINVAL
    /// (`PERF_PMU_CAP_NO_EXCLUDE` in the kernel, which sysfs does not show).
    pub info: EventInfo,
    /// The CPUs it has to be opened on, once each and for no thread (`cpumask`); `None` for an event
    /// that can be opened on any CPU or thread.
    pub cpumask: Option<Vec<u32>>,
    /// The CPUs it counts on, for a PMU of one core type (`cpus`); `None` when that is every CPU.
    pub cpus: Option<Vec<u32>>,
    /// Values belong to a package: CPUs of the same one see the same events (`.per-pkg`).
    pub per_package: bool,
}

/// Terms that perf itself acts on; they are no bits of the event.
const PERF_TERMS: &str = "aux-action aux-output aux-sample-size branch_type call-graph cpu driver-config freq inherit \
     max-events max-stack metric-id nr no-inherit no-overwrite overwrite percore period raw \
     ratio-to-prev stack-size time no-time";

pub(super) fn resolve(pmus: &SysfsPmus, event: &PmuEvent) -> Result<ResolvedPmuEvent> {
    let text = event.to_string();
    let request = Request {
        type_: pmus.type_of(&event.pmu)?,
        dir: pmus.root.join(&event.pmu),
        pmu: &event.pmu,
        attempted: format!("resolve {text}"),
    };
    let terms = request.classify(&event.terms)?;

    let mut config = PerfConfig::new(request.type_, 0);
    let mut info = EventInfo::counter(terms.name.unwrap_or(text));
    let mut per_package = false;
    if let Some(name) = terms.named {
        request.apply_named(name, &terms.fields, &mut config)?;
        request.describe(name, &mut info)?;
        per_package = request.has_companion(name, ".per-pkg")?;
    }
    for (word, value) in terms.words {
        *word.of(&mut config) = value;
    }
    for (_, field, value) in terms.fields {
        field.set(&mut config, value);
    }

    let cpumask = pmus.cpu_list(&event.pmu, "cpumask")?;
    let cpus = pmus.cpu_list(&event.pmu, "cpus")?;
    if !CORE_NAMES.contains(&event.pmu.as_str()) && (cpumask.is_some() || event.pmu == "msr") {
        info.honours = Filter::empty();
    }
    Ok(ResolvedPmuEvent {
        config,
        info,
        cpumask,
        cpus,
        per_package,
    })
}

/// Returns the value of `config` that `r` and hexadecimal digits mean, as in `cpu/r1c0/`.
fn raw_word(name: &str) -> Option<u64> {
    let digits = name.strip_prefix('r')?;
    let is_hexadecimal = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|_| is_hexadecimal)
}

/// The terms of a request, sorted out.
#[derive(Default)]
struct Terms<'a> {
    words: Vec<(ConfigWord, u64)>,
    fields: Vec<(&'a str, Field, u64)>,
    named: Option<&'a str>,
    name: Option<String>,
}

/// The PMU that is asked, and the words for when it refuses.
struct Request<'a> {
    pmu: &'a str,
    type_: u32,
    dir: PathBuf,
    attempted: String,
}

impl Request<'_> {
    fn classify<'a>(&self, terms: &'a [Term]) -> Result<Terms<'a>> {
        let mut sorted = Terms::default();
        for (i, term) in terms.iter().enumerate() {
            if terms[..i].iter().any(|earlier| earlier.name == term.name) {
                return Err(self.invalid(format!("the term {} is given twice", shown(term))));
            }
            self.classify_one(term, &mut sorted)?;
        }
        Ok(sorted)
    }

    fn classify_one<'a>(&self, term: &'a Term, sorted: &mut Terms<'a>) -> Result<()> {
        let name = term.name.as_str();
        if name == "name" {
            sorted.name = Some(match &term.value {
                Some(TermValue::Text(text)) => text.clone(),
                Some(TermValue::Number(number)) => number.to_string(),
                None => return Err(self.invalid("the term name needs a value".into())),
            });
        } else if let Some(word) = ConfigWord::from_name(name) {
            let value = self.value(term)?.ok_or_else(|| self.valueless(term))?;
            sorted.words.push((word, value));
        } else if term.value.is_none() && self.is_event(name)? {
            if let Some(other) = sorted.named.replace(name) {
                return Err(self.invalid(format!("{other} and {name} are two events")));
            }
        } else if let Some(field) = self.field(name)? {
            let value = match self.value(term)? {
                Some(value) => value,
                None if field.width() == 1 => 1,
                None => return Err(self.valueless(term)),
            };
            self.fits(name, field, value)?;
            sorted.fields.push((name, field, value));
        } else if let (Some(config), None) = (raw_word(name), &term.value) {
            sorted.words.push((ConfigWord::Config, config));
        } else {
            return Err(self.refuse(term));
        }
        Ok(())
    }

    /// The number a term gives.
    fn value(&self, term: &Term) -> Result<Option<u64>> {
        match &term.value {
            None => Ok(None),
            Some(TermValue::Number(number)) => Ok(Some(*number)),
            Some(TermValue::Text(text)) => Err(self.invalid(format!(
                "the value of {} has to be a number, not `{}`",
                shown(term),
                text.escape_debug()
            ))),
        }
    }

    fn fits(&self, name: &str, field: Field, value: u64) -> Result<()> {
        if value <= field.max() {
            return Ok(());
        }
        let (width, max) = (field.width(), field.max());
        let bits = if width == 1 { "bit" } else { "bits" };
        Err(self.invalid(format!(
            "{name}={value:#x} does not fit into {width} {bits} (at most {max:#x})"
        )))
    }

    /// Why a term is neither a field nor an event here.
    fn refuse(&self, term: &Term) -> Error {
        if self.is_event(&term.name).unwrap_or(false) {
            return self.invalid(format!("{} is an event and takes no value", shown(term)));
        }
        if PERF_TERMS.split(' ').any(|name| name == term.name) {
            let reason = format!(
                "{} says how perf records; it is no part of the event",
                shown(term)
            );
            return self.error(ErrorKind::UnsupportedFeature, reason);
        }
        let mut names = kernel_file::names(&self.dir.join("format")).unwrap_or_default();
        let events = kernel_file::names(&self.dir.join("events")).unwrap_or_default();
        names.extend(events.into_iter().filter(|f| !named_event::is_companion(f)));
        let reason = format!("{} has no term or event {}", self.pmu, shown(term));
        let otherwise = format!("{} has", self.pmu);
        self.error(ErrorKind::UnsupportedEvent, reason)
            .with_hint(did_you_mean(&term.name, &names, &otherwise))
    }

    /// Programs what the kernel says a named event is; what the request gives itself comes later.
    fn apply_named(
        &self,
        name: &str,
        given: &[(&str, Field, u64)],
        config: &mut PerfConfig,
    ) -> Result<()> {
        let path = self.dir.join("events").join(name);
        let definition = kernel_file::read(&path)
            .map_err(|e| kernel_file::error(self.attempted.clone(), &path, &e))?;
        let mut missing = Vec::new();
        for term in named_event::parse(&definition).map_err(|e| self.definition(name, &e))? {
            let value = match term.value {
                DefinedValue::Number(value) => value,
                DefinedValue::Parameter => {
                    if !given.iter().any(|(given, ..)| *given == term.name) {
                        missing.push(term.name);
                    }
                    continue;
                }
            };
            if let Some(word) = ConfigWord::from_name(term.name) {
                *word.of(config) = value;
            } else if let Some(field) = self.field(term.name)? {
                self.fits(term.name, field, value)?;
                field.set(config, value);
            } else {
                let reason = format!(
                    "the kernel defines {name} with {}, which {} does not have",
                    term.name.escape_debug(),
                    self.pmu
                );
                return Err(self.error(ErrorKind::UnsupportedFeature, reason));
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let values: Vec<String> = missing.iter().map(|name| format!("{name}=N")).collect();
        Err(self
            .invalid(format!("{name} needs a value for {}", missing.join(", ")))
            .with_hint(format!("write {}/{name},{}/", self.pmu, values.join(","))))
    }

    /// Unit, scale and kind, from the files beside a named event.
    fn describe(&self, name: &str, info: &mut EventInfo) -> Result<()> {
        if let Some(unit) = self.companion(name, ".unit")? {
            info.unit = Cow::Owned(unit);
        }
        if let Some(text) = self.companion(name, ".scale")? {
            let scale = text.parse().ok().filter(|scale: &f64| scale.is_finite());
            info.scale = scale.ok_or_else(|| {
                let reason = format!("its scale `{}` is no number", text.escape_debug());
                self.error(ErrorKind::UnsupportedFeature, reason)
            })?;
        }
        if self.has_companion(name, ".snapshot")? {
            info.kind = ValueKind::Gauge;
        }
        Ok(())
    }

    fn is_event(&self, name: &str) -> Result<bool> {
        Ok(kernel_file::is_component(name)
            && !named_event::is_companion(name)
            && self.is_there(&self.dir.join("events").join(name))?)
    }

    fn has_companion(&self, name: &str, suffix: &str) -> Result<bool> {
        self.is_there(&self.companion_path(name, suffix))
    }

    fn is_there(&self, path: &Path) -> Result<bool> {
        kernel_file::is_there(path).map_err(|e| self.unreadable(path, &e))
    }

    fn companion(&self, name: &str, suffix: &str) -> Result<Option<String>> {
        let path = self.companion_path(name, suffix);
        kernel_file::read_if_there(&path).map_err(|e| self.unreadable(&path, &e))
    }

    fn companion_path(&self, name: &str, suffix: &str) -> PathBuf {
        self.dir.join("events").join(format!("{name}{suffix}"))
    }

    /// The field of this name, if the PMU has it.
    fn field(&self, name: &str) -> Result<Option<Field>> {
        if !kernel_file::is_component(name) {
            return Ok(None);
        }
        let path = self.dir.join("format").join(name);
        let text = kernel_file::read_if_there(&path).map_err(|e| self.unreadable(&path, &e))?;
        let field = text.map(|text| text.parse()).transpose();
        field.map_err(|e| self.definition(name, &e))
    }

    fn unreadable(&self, path: &Path, e: &io::Error) -> Error {
        kernel_file::error(self.attempted.clone(), path, e)
    }

    /// Returns the error for a definition of the kernel that is not understood.
    fn definition(&self, name: &str, e: &Error) -> Error {
        self.error(
            e.kind(),
            format!("{} of {}: {e}", name.escape_debug(), self.pmu),
        )
    }

    fn valueless(&self, term: &Term) -> Error {
        self.invalid(format!("the term {} needs a value", shown(term)))
    }

    fn invalid(&self, reason: String) -> Error {
        self.error(ErrorKind::InvalidConfiguration, reason)
    }

    fn error(&self, kind: ErrorKind, reason: String) -> Error {
        Error::new(kind, self.attempted.clone()).with_reason(reason)
    }
}

fn shown(term: &Term) -> std::str::EscapeDebug<'_> {
    term.name.escape_debug()
}
