//! Resolving events: from what a group asks for to where it can be counted, with which bits.

use quipu_hal::{
    Error, ErrorKind, Event, EventInfo, EventSpec, Filter, Hardware, PmuEvent, Result, text,
};

use crate::event_bits::{
    BREAKPOINT_FILTER, EventBits, HARDWARE_FILTER, TRACEPOINT_FILTER, software_info,
};
use crate::native::NativeNames;
use crate::parts::Placement;
use crate::probes;
use crate::sysfs::{CorePmu, SysfsPmus};
use crate::tracefs::Tracefs;

/// An event that can be opened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resolved {
    /// The CPUs or core PMUs that can count it, with its bits there.
    pub(crate) placement: Placement,
    /// Its name, unit and filters.
    pub(crate) info: EventInfo,
}

/// The events of this machine.
pub(crate) struct EventSource {
    cores: Vec<CorePmu>,
    pmus: SysfsPmus,
    native: Option<NativeNames>,
}

impl EventSource {
    /// The events of a machine with these core PMUs, and those that `pmus` and `tracefs` tell of.
    pub(crate) fn new(pmus: SysfsPmus) -> Self {
        let mut cores = pmus.core_pmus();
        if cores.len() < 2 {
            // The kernel finds a single core PMU by itself.
            cores.clear();
        }
        Self {
            cores,
            pmus,
            native: None,
        }
    }

    /// Sets where native names come from.
    pub(crate) fn set_native(&mut self, native: NativeNames) {
        self.native = Some(native);
    }

    /// The core PMUs that generalized events are split over; none where there is only one.
    pub(crate) fn cores(&self) -> &[CorePmu] {
        &self.cores
    }

    /// Resolves an event to its bits on the PMUs that can count it.
    ///
    /// A name is first looked up in the event maps, then, if it reads `a:b`, as a tracepoint, else
    /// among the events that the core PMUs name in sysfs.
    pub(crate) fn resolve(&self, spec: &EventSpec) -> Result<Resolved> {
        let named = |placement, honours| Resolved {
            placement,
            info: EventInfo::counter(spec.event.to_string()).honouring(honours),
        };
        match &spec.event {
            Event::Hardware(event) => Ok(named(self.hardware(*event), HARDWARE_FILTER)),
            Event::Cache(event) => Ok(named(
                self.on_cores(EventBits::cache(*event)),
                HARDWARE_FILTER,
            )),
            Event::Raw(event) => Ok(named(
                self.on_cores(EventBits::raw(*event)),
                HARDWARE_FILTER,
            )),
            Event::Software(event) => Ok(Resolved {
                placement: Placement::Anywhere(EventBits::software(*event)),
                info: software_info(*event),
            }),
            Event::Breakpoint(event) => Ok(named(
                Placement::Anywhere(EventBits::breakpoint(*event)),
                BREAKPOINT_FILTER,
            )),
            Event::Pmu(event) => self.pmu_event(event),
            Event::Probe(probe) => probes::resolve(probe, &self.pmus),
            Event::Tracepoint { system, name } => tracepoint(system, name),
            Event::Named(name) => self.named(name, spec.filter),
            other => {
                Err(unsupported(other)
                    .with_reason("this backend does not support this kind of event"))
            }
        }
    }

    /// The bits of a hardware event, on every core PMU if there are several.
    fn hardware(&self, event: Hardware) -> Placement {
        let mut placement = self.on_cores(EventBits::hardware(event));
        if let Placement::Cores(cores) = &mut placement {
            for (core, bits) in cores {
                if let Some(own) = self.arm_event(&self.cores[*core].name, event) {
                    *bits = own;
                }
            }
        }
        placement
    }

    /// The bits of a hardware event under the own type of an ARM core PMU.
    fn arm_event(&self, pmu: &str, event: Hardware) -> Option<EventBits> {
        if !pmu.starts_with("arm") {
            return None;
        }
        arm_names(event).iter().find_map(|name| {
            let resolved = self.pmus.resolve(&PmuEvent::new(pmu).with(*name)).ok()?;
            Some(EventBits::of(resolved.config))
        })
    }

    /// The bits of an event of the CPU's own PMU: on every core PMU if there are several.
    pub(crate) fn on_cores(&self, bits: EventBits) -> Placement {
        if self.cores.is_empty() {
            return Placement::Anywhere(bits);
        }
        let each = self.cores.iter().enumerate();
        Placement::Cores(
            each.map(|(i, core)| (i, bits.on_core(core.type_)))
                .collect(),
        )
    }

    fn pmu_event(&self, event: &PmuEvent) -> Result<Resolved> {
        let resolved = self.pmus.resolve(event)?;
        let bits = EventBits::of(resolved.config);
        let core = self
            .cores
            .iter()
            .position(|core| core.type_ == resolved.config.type_);
        let placement = match (core, resolved.cpumask) {
            (Some(core), _) => Placement::Cores(vec![(core, bits)]),
            (None, Some(cpus)) => Placement::Cpus(cpus, bits),
            (None, None) => Placement::Anywhere(bits),
        };
        Ok(Resolved {
            placement,
            info: resolved.info,
        })
    }

    fn named(&self, name: &str, filter: Filter) -> Result<Resolved> {
        let event = Event::Named(name.to_owned());
        let from_maps = match self
            .native
            .as_ref()
            .map(|n| n.resolve(&event, filter, self))
        {
            Some(Ok(resolved)) => return Ok(resolved),
            Some(Err(e)) if e.kind() != ErrorKind::UnsupportedEvent => return Err(e),
            Some(Err(e)) => Some(e),
            None => None,
        };
        if let Some((system, tracepoint_name)) = name.split_once(':') {
            let is_native = |native: &NativeNames| native.knows(name);
            return match (tracepoint(system, tracepoint_name), from_maps) {
                (Err(_), Some(error)) if self.native.as_ref().is_some_and(is_native) => Err(error),
                (outcome, _) => outcome,
            };
        }
        if let Some(resolved) = self.named_by_cores(name) {
            return Ok(resolved);
        }
        // The maps know more names than the generalized ones.
        Err(from_maps.unwrap_or_else(|| {
            let error = unsupported(&event).with_reason("there is no event of this name");
            match text::nearest(name, []).as_slice() {
                [] => error,
                near => error.with_hint(format!("did you mean {}?", near.join(", "))),
            }
        }))
    }

    /// An event that core PMUs have a name for (`slots`, `inst_retired`), on those that have it.
    fn named_by_cores(&self, name: &str) -> Option<Resolved> {
        let knows = |core: &CorePmu| {
            let pmu = self.pmus.pmu(&core.name);
            pmu.is_ok_and(|pmu| pmu.events.iter().any(|event| event.name == name))
        };
        let mut resolved: Option<Resolved> = None;
        for core in self.pmus.core_pmus().into_iter().filter(knows) {
            let own = self.pmu_event(&PmuEvent::new(core.name).with(name)).ok()?;
            match (&mut resolved, own.placement) {
                (Some(all), Placement::Cores(cores)) => all.placement.add_cores(cores),
                (_, placement) => resolved = Some(Resolved { placement, ..own }),
            }
        }
        resolved
    }
}

/// Returns the names, the best first, that ARM's core PMUs give a generalized event in sysfs.
///
/// On a machine with several core PMUs, kernels before 6.6 take a generalized event for one of them
/// only under that PMU's own type. These are the events that the kernel itself takes
/// (`armv8_pmuv3_perf_map`, `drivers/perf/arm_pmuv3.c`); which of them a PMU has, it shows. Cache
/// events are not here, because the kernel takes others on some cores.
fn arm_names(event: Hardware) -> &'static [&'static str] {
    match event {
        Hardware::Cycles => &["cpu_cycles"],
        Hardware::Instructions => &["inst_retired"],
        Hardware::CacheReferences => &["l1d_cache"],
        Hardware::CacheMisses => &["l1d_cache_refill"],
        Hardware::Branches => &["br_retired", "pc_write_retired"],
        Hardware::BranchMisses => &["br_mis_pred"],
        Hardware::BusCycles => &["bus_cycles"],
        Hardware::StalledCyclesFrontend => &["stall_frontend"],
        Hardware::StalledCyclesBackend => &["stall_backend"],
        _ => &[],
    }
}

fn tracepoint(system: &str, name: &str) -> Result<Resolved> {
    let id = Tracefs::find()?.id(system, name)?;
    Ok(Resolved {
        placement: Placement::Anywhere(EventBits::tracepoint(id)),
        info: EventInfo::counter(format!("{system}:{name}"))
            .honouring(TRACEPOINT_FILTER)
            .occurring_in(Filter::KERNEL),
    })
}

pub(crate) fn unsupported(event: &Event) -> Error {
    Error::new(ErrorKind::UnsupportedEvent, format!("open {event}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use quipu_hal::{PerfConfig, RawEvent};

    /// A directory of PMUs: name, type, and the files `cpus` or `cpumask`.
    fn sysfs(pmus: &[(&str, u32, &str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().expect("a directory");
        for (name, type_, file, cpus) in pmus {
            let dir = root.path().join(name);
            std::fs::create_dir(&dir).expect("new");
            std::fs::write(dir.join("type"), format!("{type_}\n")).expect("written");
            if !file.is_empty() {
                std::fs::write(dir.join(file), format!("{cpus}\n")).expect("written");
            }
        }
        root
    }

    fn source(root: &Path) -> EventSource {
        EventSource::new(SysfsPmus::at(root))
    }

    fn hybrid() -> (tempfile::TempDir, EventSource) {
        let root = sysfs(&[
            ("cpu_core", 4, "cpus", "0-1"),
            ("cpu_atom", 10, "cpus", "2-3"),
            ("uncore_imc_0", 20, "cpumask", "0"),
        ]);
        let source = source(root.path());
        (root, source)
    }

    fn config(type_: u32, config: u64) -> EventBits {
        EventBits::of(PerfConfig::new(type_, config))
    }

    fn placed(source: &EventSource, event: impl Into<Event>) -> Placement {
        source
            .resolve(&EventSpec::new(event))
            .expect("resolves")
            .placement
    }

    #[test]
    fn one_core_pmu_is_left_to_the_kernel() {
        let root = sysfs(&[("cpu", 4, "", "")]);
        let source = source(root.path());
        assert_eq!(source.cores(), []);
        assert_eq!(
            placed(&source, Hardware::Cycles),
            Placement::Anywhere(config(0, 0))
        );
        let raw = placed(&source, RawEvent::new(0x1c0));
        assert_eq!(raw, Placement::Anywhere(config(4, 0x1c0)));
    }

    #[test]
    fn several_core_pmus_get_bits_each() {
        let (_root, source) = hybrid();
        let each = |a, b| Placement::Cores(vec![(0, a), (1, b)]);
        assert_eq!(
            placed(&source, Hardware::Instructions),
            each(config(0, 4 << 32 | 1), config(0, 10 << 32 | 1))
        );
        assert_eq!(
            placed(&source, RawEvent::new(0xc0)),
            each(config(4, 0xc0), config(10, 0xc0))
        );
        let atom = PmuEvent::new("cpu_atom").with_value("config", 7);
        assert_eq!(
            placed(&source, atom),
            Placement::Cores(vec![(1, config(10, 7))])
        );
        let uncore = PmuEvent::new("uncore_imc_0").with_value("config", 7);
        assert_eq!(
            placed(&source, uncore),
            Placement::Cpus(vec![0], config(20, 7))
        );
    }

    #[test]
    fn arm_core_pmus_get_their_own_type() {
        let root = sysfs(&[
            ("armv8_cortex_a53", 8, "cpus", "0-3"),
            ("armv8_cortex_a72", 9, "cpus", "4-5"),
        ]);
        for (pmu, event, code) in [
            ("armv8_cortex_a53", "inst_retired", "0x08"),
            ("armv8_cortex_a72", "inst_retired", "0x08"),
            ("armv8_cortex_a72", "br_retired", "0x21"),
            ("armv8_cortex_a72", "pc_write_retired", "0x0c"),
        ] {
            let dir = root.path().join(pmu);
            for (sub, file, text) in [
                ("format", "event", "config:0-15"),
                ("events", event, &format!("event={code}")),
            ] {
                std::fs::create_dir_all(dir.join(sub)).expect("made");
                std::fs::write(dir.join(sub).join(file), text).expect("written");
            }
        }
        let source = source(root.path());
        let each = |a, b| Placement::Cores(vec![(0, a), (1, b)]);
        assert_eq!(
            placed(&source, Hardware::Instructions),
            each(config(8, 8), config(9, 8))
        );
        // The first does not show it: the kernel is asked in the other way.
        assert_eq!(
            placed(&source, Hardware::Branches),
            each(config(0, 8 << 32 | 4), config(9, 0x21))
        );
    }

    /// As perf has it: `slots` is `cpu_core/slots/`.
    #[test]
    fn names_of_core_pmus_need_no_pmu() {
        let name = |root: &Path, pmu: &str, name: &str, bits: &str| {
            let dir = root.join(pmu);
            std::fs::create_dir_all(dir.join("format")).expect("new");
            std::fs::create_dir_all(dir.join("events")).expect("new");
            std::fs::write(dir.join("format/event"), "config:0-7\n").expect("written");
            std::fs::write(dir.join("events").join(name), bits).expect("written");
        };
        let named = |name: &str| Event::Named(name.into());
        let (root, source) = hybrid();
        name(root.path(), "cpu_core", "slots", "event=0x4\n");
        name(root.path(), "cpu_core", "loads", "event=0xd0\n");
        name(root.path(), "cpu_atom", "loads", "event=0xd1\n");
        name(root.path(), "uncore_imc_0", "clockticks", "event=0x1\n");
        assert_eq!(
            placed(&source, named("slots")),
            Placement::Cores(vec![(0, config(4, 4))])
        );
        let loads = vec![(0, config(4, 0xd0)), (1, config(10, 0xd1))];
        assert_eq!(placed(&source, named("loads")), Placement::Cores(loads));
        // Neither another PMU's event nor a field is a name.
        for unknown in ["clockticks", "event"] {
            let e = source.resolve(&EventSpec::new(named(unknown)));
            assert_eq!(e.expect_err(unknown).kind(), ErrorKind::UnsupportedEvent);
        }

        let root = sysfs(&[("armv8_pmuv3", 8, "cpus", "0")]);
        name(root.path(), "armv8_pmuv3", "inst_retired", "event=0x8\n");
        assert_eq!(
            placed(&self::source(root.path()), named("inst_retired")),
            Placement::Anywhere(config(8, 8))
        );
    }

    #[test]
    fn an_unknown_name_has_a_hint() {
        let root = sysfs(&[]);
        let unknown = EventSpec::new(Event::Named("cylces".into()));
        let e = source(root.path()).resolve(&unknown).expect_err("a typo");
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        assert_eq!(e.hint(), Some("did you mean cycles?"));
    }
}
