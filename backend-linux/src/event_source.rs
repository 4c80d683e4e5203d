//! Resolving events: from what a group asks for to where it can be counted, with which bits.

use std::sync::Arc;

use quipu_hal::{
    Encoding, Error, ErrorKind, Event, EventInfo, EventMap, EventSpec, Filter, Hardware,
    PerfConfig, PmuEvent, RawEvent, Result, X86Select, text,
};

use crate::arm_events;
use crate::event_bits::{
    BREAKPOINT_FILTER, EventBits, HARDWARE_FILTER, TRACEPOINT_FILTER, software_info,
};
use crate::parts::Placement;
use crate::sysfs::{CorePmu, SysfsPmus};
use crate::tracefs::Tracefs;

/// An event that can be opened.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Resolved {
    /// Where it can be counted.
    pub(crate) placement: Placement,
    /// What is known of it.
    pub(crate) info: EventInfo,
}

/// Where events come from on this machine.
pub(crate) struct EventSource {
    cores: Vec<CorePmu>,
    pmus: SysfsPmus,
    map: Option<Arc<dyn EventMap>>,
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
            map: None,
        }
    }

    /// Sets where native names come from.
    pub(crate) fn set_map(&mut self, map: Arc<dyn EventMap>) {
        self.map = Some(map);
    }

    /// The core PMUs that generalized events are split over; none where there is only one.
    pub(crate) fn cores(&self) -> &[CorePmu] {
        &self.cores
    }

    /// Where and how an event can be counted.
    ///
    /// A name is first looked up in the event map, then, if it reads `a:b`, as a tracepoint, else
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
            Event::Tracepoint { system, name } => tracepoint(system, name),
            Event::Named(name) => self.named(name, spec.filter),
            other => Err(unsupported(other).with_reason("this backend does not know this kind")),
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
        arm_events::names(event).iter().find_map(|name| {
            let resolved = self.pmus.resolve(&PmuEvent::new(pmu).with(*name)).ok()?;
            Some(EventBits::of(resolved.config))
        })
    }

    /// The bits of an event of the CPU's own PMU: on every core PMU if there are several.
    fn on_cores(&self, bits: EventBits) -> Placement {
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
        let from_map = match &self.map {
            Some(map) => match map.resolve(&event, filter) {
                Ok(native) => {
                    let bits = raw_bits(&event, &native.encoding)?;
                    return Ok(Resolved {
                        placement: self.on_cores_of(map.as_ref(), bits),
                        info: native.info,
                    });
                }
                Err(e) if e.kind() == ErrorKind::UnsupportedEvent => Some(e),
                Err(e) => return Err(e),
            },
            None => None,
        };
        if let Some((system, name)) = name.split_once(':') {
            return tracepoint(system, name);
        }
        if let Some(resolved) = self.named_by_cores(name) {
            return Ok(resolved);
        }
        // The map knows more names than the generalized ones.
        Err(from_map.unwrap_or_else(|| {
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

    /// The bits of a native event, on the cores it is native to.
    fn on_cores_of(&self, map: &dyn EventMap, bits: EventBits) -> Placement {
        let core_type = map.cpu().core_type.as_deref();
        let own = core_type.and_then(|core_type| {
            self.cores
                .iter()
                .position(|core| core.name.strip_prefix("cpu_") == Some(core_type))
        });
        match own {
            Some(i) => Placement::Cores(vec![(i, bits.on_core(self.cores[i].type_))]),
            None => self.on_cores(bits),
        }
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

/// The bits of a native event as the kernel's own PMU drivers take them.
fn raw_bits(event: &Event, encoding: &Encoding) -> Result<EventBits> {
    /// What the kernel decides by itself: privilege levels, the interrupt, the pin, enabling.
    const KERNELS_OWN: u64 = X86Select::USER
        | X86Select::KERNEL
        | X86Select::PIN
        | X86Select::INTERRUPT
        | X86Select::ENABLE
        | X86Select::GUEST_ONLY
        | X86Select::HOST_ONLY;
    let raw = |config| Ok(EventBits::raw(RawEvent::new(config)));
    match encoding {
        Encoding::Perf(config) => Ok(EventBits::of(PerfConfig { ..*config })),
        Encoding::X86(x86) => {
            let config = x86.select & !KERNELS_OWN;
            match x86.extra.as_slice() {
                [] => raw(config),
                // Intel's extra registers go into config1, whichever it is: the event decides
                // (`intel_extra_regs`, `arch/x86/events/intel/core.c`).
                [extra] => Ok(EventBits::raw(RawEvent {
                    config,
                    config1: extra.value,
                    ..RawEvent::default()
                })),
                _ => Err(
                    Error::new(ErrorKind::UnsupportedFeature, format!("open {event}"))
                        .with_reason("Linux sets one extra register for an event, not several"),
                ),
            }
        }
        // Codes by which the kernel knows the events of the fixed counters (`fixed_events`,
        // `arch/x86/events/intel/core.c`).
        Encoding::Fixed(fixed) => match fixed.index {
            0 => raw(0x00c0),
            1 => raw(0x003c),
            2 => raw(0x0300),
            3 => raw(0x0400),
            _ => Err(unsupported(event).with_reason("Linux does not know this fixed counter")),
        },
        Encoding::Armv8(arm) => raw(arm.event().into()),
        _ => Err(unsupported(event).with_reason("Linux has no driver for this kind of counter")),
    }
}

fn unsupported(event: &Event) -> Error {
    Error::new(ErrorKind::UnsupportedEvent, format!("open {event}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    use quipu_hal::{
        Armv8Event, CpuIdentity, CpuModel, ExtraRegister, FixedCounter, P5Function, ResolvedEvent,
        Scheme, SlotSet,
    };

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
        EventBits::of(PerfConfig {
            type_,
            config,
            ..PerfConfig::default()
        })
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

    /// A map that knows one name, for one core type.
    struct OneEvent(CpuModel, Encoding);

    impl EventMap for OneEvent {
        fn cpu(&self) -> &CpuModel {
            &self.0
        }

        fn resolve(&self, event: &Event, _: Filter) -> Result<ResolvedEvent> {
            match event {
                Event::Named(name) if name == "INST_RETIRED.ANY" => Ok(ResolvedEvent {
                    encoding: self.1.clone(),
                    slots: SlotSet::ANY_GENERAL,
                    info: EventInfo::counter("INST_RETIRED.ANY"),
                }),
                _ => Err(unsupported(event).with_hint("the map's own hint")),
            }
        }
    }

    fn with_map(
        mut source: EventSource,
        core_type: Option<&str>,
        encoding: Encoding,
    ) -> EventSource {
        let model = CpuModel {
            identity: CpuIdentity::Arm { midr: 0 },
            core_type: core_type.map(str::to_owned),
            scheme: Scheme::Simulated,
            counters: Vec::new(),
        };
        source.set_map(Arc::new(OneEvent(model, encoding)));
        source
    }

    fn native() -> EventSpec {
        EventSpec::new(Event::Named("INST_RETIRED.ANY".into()))
    }

    #[test]
    fn native_names_come_from_the_map_as_the_kernel_takes_them() {
        let x86 = |x86: X86Select| Encoding::X86(x86);
        let all_flags = X86Select::USER | X86Select::ENABLE | X86Select::EDGE;
        let mut offcore = X86Select::new(0xb7, 1);
        offcore.extra.push(ExtraRegister {
            address: 0x1a6,
            value: 0x10001,
        });
        let fixed = |index| Encoding::Fixed(FixedCounter { index, control: 3 });
        for (encoding, raw) in [
            (
                x86(X86Select::new(0xc0, 2).with_flags(all_flags)),
                (0x4_02c0, 0),
            ),
            (x86(offcore), (0x1b7, 0x10001)),
            (fixed(0), (0xc0, 0)),
            (fixed(2), (0x300, 0)),
            (Encoding::Armv8(Armv8Event::new(8)), (8, 0)),
        ] {
            let root = sysfs(&[]);
            let resolved = with_map(source(root.path()), None, encoding).resolve(&native());
            let resolved = resolved.expect("resolves");
            let Placement::Anywhere(bits) = resolved.placement else {
                panic!("{resolved:?}");
            };
            assert_eq!((bits.config.config, bits.config.config1), raw);
            assert_eq!(bits.config.type_, 4);
        }
    }

    #[test]
    fn a_native_event_goes_to_its_own_core_type() {
        let (_root, source) = hybrid();
        let atom = with_map(source, Some("atom"), Encoding::X86(X86Select::new(0xc0, 0)));
        let resolved = atom.resolve(&native()).expect("resolves");
        assert_eq!(
            resolved.placement,
            Placement::Cores(vec![(1, config(10, 0xc0))])
        );
    }

    #[test]
    fn encodings_linux_cannot_take_are_refused() {
        let two = |value| ExtraRegister {
            address: 0x1a6,
            value,
        };
        let mut select = X86Select::new(0xb7, 1);
        select.extra = vec![two(1), two(2)];
        for (encoding, kind) in [
            (Encoding::X86(select), ErrorKind::UnsupportedFeature),
            (
                Encoding::P5(P5Function::default()),
                ErrorKind::UnsupportedEvent,
            ),
            (Encoding::Simulated(1), ErrorKind::UnsupportedEvent),
        ] {
            let root = sysfs(&[]);
            let source = with_map(source(root.path()), None, encoding);
            let e = source.resolve(&native()).expect_err("no such counter");
            assert_eq!(e.kind(), kind, "{e:#}");
        }
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
    fn a_name_nobody_knows_keeps_the_maps_hint() {
        let root = sysfs(&[]);
        let unknown = EventSpec::new(Event::Named("cylces".into()));
        let e = source(root.path()).resolve(&unknown).expect_err("a typo");
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        assert_eq!(e.hint(), Some("did you mean cycles?"));
        let mapped = with_map(source(root.path()), None, Encoding::Simulated(1));
        let e = mapped.resolve(&unknown).expect_err("a typo");
        assert_eq!(e.hint(), Some("the map's own hint"));
    }
}
