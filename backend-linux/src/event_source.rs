//! Resolving events: from what a group asks for to where it can be counted, with which bits.

use std::sync::OnceLock;

use quipu_hal::{
    Encoding, Error, ErrorKind, Event, EventInfo, EventSpec, Filter, Hardware, MaxRate, PmuEvent,
    Result, UncoreEvent, text,
};

use crate::arm_names::arm_names;
use crate::event_bits::{
    BREAKPOINT_FILTER, EventBits, HARDWARE_FILTER, TRACEPOINT_FILTER, software_info,
};
use crate::native::Natives;
use crate::parts::{Placement, Unit};
use crate::probes;
use crate::sys::event_type;
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

/// The events of this machine. Which PMUs there are is looked up when an event depends on it first.
pub(crate) struct EventSource {
    core_pmus: OnceLock<Vec<CorePmu>>,
    pmus: SysfsPmus,
    native: Option<Box<dyn Natives>>,
}

impl EventSource {
    /// The events of a machine with these core PMUs, and those that `pmus` and `tracefs` tell of.
    pub(crate) fn new(pmus: SysfsPmus) -> Self {
        Self {
            core_pmus: OnceLock::new(),
            pmus,
            native: None,
        }
    }

    /// Sets where native names come from.
    pub(crate) fn set_native(&mut self, native: impl Natives + 'static) {
        self.native = Some(Box::new(native));
    }

    /// The core PMUs, also one alone.
    pub(crate) fn core_pmus(&self) -> &[CorePmu] {
        self.core_pmus.get_or_init(|| self.pmus.core_pmus())
    }

    /// The core PMUs that generalized events are split over; none where the kernel finds the only one by itself.
    pub(crate) fn cores(&self) -> &[CorePmu] {
        match self.core_pmus() {
            [] | [_] => &[],
            cores => cores,
        }
    }

    /// The core PMUs that parts of a group may be on; none, without a look at sysfs, where no member is on one.
    pub(crate) fn cores_of(&self, placements: &[Placement]) -> &[CorePmu] {
        match placements.iter().any(|p| matches!(p, Placement::Cores(_))) {
            true => self.cores(),
            false => &[],
        }
    }

    /// Returns true if the kernel has a PMU of CPU cores.
    pub(crate) fn has_core_pmu(&self) -> bool {
        !self.core_pmus().is_empty()
    }

    /// Returns true if a type is that of a core PMU.
    fn is_core_type(&self, type_: u32) -> bool {
        // No PMU that registers itself has one of the kernel's own types but `RAW`.
        let own = type_ == event_type::RAW || type_ > event_type::BREAKPOINT;
        own && self.core_pmus().iter().any(|core| core.type_ == type_)
    }

    /// Returns true if an event takes a counter of a CPU core.
    pub(crate) fn takes_core_counter(&self, placement: &Placement) -> bool {
        match placement {
            Placement::Anywhere(bits) => {
                bits.is_core_event() || self.is_core_type(bits.config.type_)
            }
            Placement::Cores(_) => true,
            Placement::Units(_) | Placement::Probe(..) => false,
        }
    }

    /// Returns true if an event takes a counter of this core PMU.
    pub(crate) fn takes_counter_of(&self, placement: &Placement, pmu: &str) -> bool {
        match placement {
            Placement::Cores(cores) => cores
                .iter()
                .any(|(core, _)| self.cores()[*core].name == pmu),
            other => self.takes_core_counter(other),
        }
    }

    /// Returns the most that an event can count in a time: what the map of its core says, or else its bits.
    pub(crate) fn max_rate(&self, bits: &EventBits) -> MaxRate {
        let of_core = bits.config.type_ == event_type::RAW
            || !bits.is_counted_live() && self.is_core_type(bits.config.type_);
        if !of_core {
            return MaxRate::of(&Encoding::Perf(bits.config));
        }
        let own_type = |core: &CorePmu| core.type_ == bits.config.type_;
        let core = self.cores().iter().position(own_type);
        let mut config = bits.config;
        config.type_ = event_type::RAW;
        let native = self.native.as_ref();
        native
            .and_then(|native| native.max_rate(config, core, self.cores()))
            .unwrap_or_else(|| MaxRate::of(&Encoding::Perf(config)))
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
            Event::Pmu(event) => self.pmu_event(event).or_else(|error| {
                let native = self.native.as_ref();
                let behind = native.and_then(|n| n.resolve_behind(event, spec.filter, self));
                behind.ok_or(error)
            }),
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
    pub(crate) fn hardware(&self, event: Hardware) -> Placement {
        let mut placement = self.on_cores(EventBits::hardware(event));
        if let Placement::Cores(cores) = &mut placement {
            for (core, bits) in cores {
                if let Some(own) = self.arm_event(&self.cores()[*core].name, event) {
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
        if self.cores().is_empty() {
            return Placement::Anywhere(bits);
        }
        let each = self.cores().iter().enumerate();
        Placement::Cores(
            each.map(|(i, core)| (i, bits.on_core(core.type_)))
                .collect(),
        )
    }

    /// Resolves an event of a PMU, or of all instances of a unit.
    fn pmu_event(&self, event: &PmuEvent) -> Result<Resolved> {
        let mut cores = Vec::new();
        let mut units = Vec::new();
        let mut anywhere = Vec::new();
        let mut info = None;
        for (pmu, resolved) in self.pmus.resolve_instances(event)? {
            let bits = EventBits::of(resolved.config);
            let type_ = resolved.config.type_;
            match (
                self.cores().iter().position(|c| c.type_ == type_),
                resolved.cpumask,
            ) {
                (Some(core), _) => cores.push((core, bits)),
                (None, Some(cpus)) => units.push(Unit { pmu, cpus, bits }),
                (None, None) => anywhere.push(bits),
            }
            info.get_or_insert(resolved.info);
        }
        let placement = match (&cores[..], &units[..], &anywhere[..]) {
            ([_, ..], [], []) => Placement::Cores(cores),
            ([], [_, ..], []) => Placement::Units(units),
            ([], [], [bits]) => Placement::Anywhere(*bits),
            _ => {
                return Err(unsupported(&event.clone().into()).with_reason(format!(
                    "several PMUs are called {}_N, and one event cannot be on all of them; name one",
                    event.pmu
                )));
            }
        };
        Ok(Resolved {
            placement,
            info: info.unwrap_or_else(|| EventInfo::counter(event.to_string())),
        })
    }

    /// Resolves an event of a unit outside of the cores, by the name that a map has for it.
    fn uncore(&self, name: &str, uncore: UncoreEvent) -> Result<Resolved> {
        let mut resolved = self.pmu_event(&uncore.event).map_err(|error| {
            let attempted = format!("open {name}, which is {}", uncore.event);
            let same = Error::new(error.kind(), attempted);
            let same =
                same.with_reason(error.reason().unwrap_or("the kernel refuses it").to_owned());
            match error.hint() {
                Some(hint) => same.with_hint(hint.to_owned()),
                None => same,
            }
        })?;
        resolved.info.name = name.to_owned();
        resolved.info.unit = uncore.unit;
        resolved.info.scale = uncore.scale;
        Ok(resolved)
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
        if let Some(uncore) = self.native.as_ref().and_then(|n| n.uncore(name)) {
            return self.uncore(name, uncore);
        }
        if let Some((system, tracepoint_name)) = name.split_once(':') {
            let is_native = || self.native.as_ref().is_some_and(|n| n.knows(name));
            return match (tracepoint(system, tracepoint_name), from_maps) {
                (Err(_), Some(error)) if is_native() => Err(error),
                (outcome, _) => outcome,
            };
        }
        let of_kernel = self.named_by_cores(name).or_else(|| self.energy(name));
        if let Some(resolved) = of_kernel {
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

    /// An energy counter: `energy-pkg`.
    fn energy(&self, name: &str) -> Option<Resolved> {
        // RAPL of packages, and of AMD's cores (`arch/x86/events/rapl.c`).
        const PMUS: [&str; 2] = ["power", "power_core"];
        name.strip_prefix("energy-")?;
        let event = |pmu: &&str| self.pmu_event(&PmuEvent::new(*pmu).with(name)).ok();
        let mut resolved = PMUS.iter().find_map(event)?;
        resolved.info.name = name.to_owned();
        Some(resolved)
    }

    /// An event that core PMUs have a name for (`slots`, `inst_retired`), on those that have it.
    fn named_by_cores(&self, name: &str) -> Option<Resolved> {
        let knows = |core: &CorePmu| {
            let pmu = self.pmus.pmu(&core.name);
            pmu.is_ok_and(|pmu| pmu.events.iter().any(|event| event.name == name))
        };
        let mut resolved: Option<Resolved> = None;
        for core in self.core_pmus().iter().filter(|core| knows(core)) {
            let own = self
                .pmu_event(&PmuEvent::new(&*core.name).with(name))
                .ok()?;
            match (&mut resolved, own.placement) {
                (Some(all), Placement::Cores(cores)) => all.placement.add_cores(cores),
                (_, placement) => resolved = Some(Resolved { placement, ..own }),
            }
        }
        resolved
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
pub(crate) mod tests {
    use super::*;

    use quipu_hal::{PerfConfig, RawEvent};

    /// A machine with some PMUs.
    pub(crate) struct Machine {
        pub(crate) source: EventSource,
        _root: tempfile::TempDir,
    }

    /// Name and type of a PMU, and its files with their text.
    pub(crate) type Pmu<'a> = (&'a str, u32, &'a [(&'a str, &'a str)]);

    pub(crate) fn machine(pmus: &[Pmu<'_>]) -> Machine {
        let root = tempfile::tempdir().expect("a directory");
        for (name, type_, files) in pmus {
            let type_ = ("type", &*type_.to_string());
            for (file, text) in files.iter().copied().chain([type_]) {
                let path = root.path().join(name).join(file);
                std::fs::create_dir_all(path.parent().expect("the PMU's")).expect("new");
                std::fs::write(path, format!("{text}\n")).expect("written");
            }
        }
        Machine {
            source: EventSource::new(SysfsPmus::at(root.path())),
            _root: root,
        }
    }

    impl Machine {
        pub(crate) fn placed(&self, event: impl Into<Event>) -> Result<Placement> {
            let resolved = self.source.resolve(&EventSpec::new(event));
            resolved.map(|resolved| resolved.placement)
        }

        pub(crate) fn named(&self, name: &str) -> Result<Placement> {
            self.placed(Event::Named(name.into()))
        }
    }

    pub(crate) fn config(type_: u32, config: u64) -> EventBits {
        EventBits::of(PerfConfig::new(type_, config))
    }

    pub(crate) fn cores<const N: usize>(cores: [(usize, EventBits); N]) -> Result<Placement> {
        Ok(Placement::Cores(cores.into()))
    }

    #[test]
    fn one_core_pmu_is_left_to_the_kernel() {
        let machine = machine(&[("cpu", 4, &[])]);
        assert_eq!(machine.source.cores(), []);
        let anywhere = |bits| Ok(Placement::Anywhere(bits));
        assert_eq!(machine.placed(Hardware::Cycles), anywhere(config(0, 0)));
        let raw = machine.placed(RawEvent::new(0x1c0));
        assert_eq!(raw, anywhere(config(4, 0x1c0)));
    }

    #[test]
    fn several_core_pmus_get_bits_each() {
        let machine = machine(&[
            ("cpu_core", 4, &[("cpus", "0-1")]),
            ("cpu_atom", 10, &[("cpus", "2-3")]),
            ("uncore_imc_0", 20, &[("cpumask", "0")]),
        ]);
        let each = |a, b| cores([(0, a), (1, b)]);
        assert_eq!(
            machine.placed(Hardware::Instructions),
            each(config(0, 4 << 32 | 1), config(0, 10 << 32 | 1))
        );
        assert_eq!(
            machine.placed(RawEvent::new(0xc0)),
            each(config(4, 0xc0), config(10, 0xc0))
        );
        let of = |pmu| machine.placed(PmuEvent::new(pmu).with_value("config", 7));
        assert_eq!(of("cpu_atom"), cores([(1, config(10, 7))]));
        let uncore = Placement::Units(vec![Unit {
            pmu: "uncore_imc_0".into(),
            cpus: vec![0],
            bits: config(20, 7),
        }]);
        assert_eq!(of("uncore_imc_0"), Ok(uncore));
    }

    #[test]
    fn arm_core_pmus_get_their_own_type() {
        let machine = machine(&[
            (
                "armv8_cortex_a53",
                8,
                &[
                    ("cpus", "0-3"),
                    ("format/event", "config:0-15"),
                    ("events/inst_retired", "event=0x08"),
                ],
            ),
            (
                "armv8_cortex_a72",
                9,
                &[
                    ("cpus", "4-5"),
                    ("format/event", "config:0-15"),
                    ("events/inst_retired", "event=0x08"),
                    ("events/br_retired", "event=0x21"),
                    ("events/pc_write_retired", "event=0x0c"),
                ],
            ),
        ]);
        assert_eq!(
            machine.placed(Hardware::Instructions),
            cores([(0, config(8, 8)), (1, config(9, 8))])
        );
        // The first does not show it: the kernel is asked in the other way.
        assert_eq!(
            machine.placed(Hardware::Branches),
            cores([(0, config(0, 8 << 32 | 4)), (1, config(9, 0x21))])
        );
    }

    /// As perf has it: `slots` is `cpu_core/slots/`.
    #[test]
    fn names_of_core_pmus_need_no_pmu() {
        let event = ("format/event", "config:0-7");
        let hybrid = machine(&[
            (
                "cpu_core",
                4,
                &[
                    ("cpus", "0-1"),
                    event,
                    ("events/slots", "event=0x4"),
                    ("events/loads", "event=0xd0"),
                ],
            ),
            (
                "cpu_atom",
                10,
                &[("cpus", "2-3"), event, ("events/loads", "event=0xd1")],
            ),
            (
                "uncore_imc_0",
                20,
                &[("cpumask", "0"), event, ("events/clockticks", "event=0x1")],
            ),
        ]);
        assert_eq!(hybrid.named("slots"), cores([(0, config(4, 4))]));
        assert_eq!(
            hybrid.named("loads"),
            cores([(0, config(4, 0xd0)), (1, config(10, 0xd1))])
        );
        // Neither another PMU's event nor a field is a name.
        for unknown in ["clockticks", "event"] {
            let e = hybrid.named(unknown).expect_err(unknown);
            assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        }
        let files: [(&str, &str); 3] = [("cpus", "0"), event, ("events/inst_retired", "event=0x8")];
        let arm = machine(&[("armv8_pmuv3", 8, &files)]);
        let anywhere = Placement::Anywhere(config(8, 8));
        assert_eq!(arm.named("inst_retired"), Ok(anywhere));
    }

    /// Returns the PMUs of a placement with the CPUs they are opened on, their types and their bits.
    fn units(placement: Result<Placement>) -> Vec<(String, Vec<u32>, u32, u64)> {
        let Placement::Units(units) = placement.expect("resolved") else {
            panic!("it is no uncore event");
        };
        let units = units.into_iter();
        units
            .map(|u| (u.pmu, u.cpus, u.bits.config.type_, u.bits.config.config))
            .collect()
    }

    #[test]
    fn a_unit_without_a_number_is_all_its_instances_in_order() {
        let imc = |cpus| {
            [
                ("cpumask", cpus),
                ("format/event", "config:0-7"),
                ("format/umask", "config:8-15"),
                ("events/cas_count_read", "event=0x04,umask=0x03"),
            ]
        };
        let (first, others) = (imc("0,8"), imc("0"));
        let machine = machine(&[
            ("cpu", 4, &[]),
            ("uncore_imc_10", 31, &others),
            ("uncore_imc_2", 22, &others),
            ("uncore_imc_0", 20, &first),
            ("uncore_imc_free_running_0", 40, &[("cpumask", "0")]),
            ("uncore_cha_0", 50, &others),
        ]);
        let wanted = [
            ("uncore_imc_0".to_owned(), vec![0, 8], 20, 0x304),
            ("uncore_imc_2".to_owned(), vec![0], 22, 0x304),
            ("uncore_imc_10".to_owned(), vec![0], 31, 0x304),
        ];
        let event = PmuEvent::new("uncore_imc");
        let by_terms = event.clone().with_value("event", 4).with_value("umask", 3);
        assert_eq!(units(machine.placed(by_terms)), wanted);
        let named = event.with("cas_count_read");
        assert_eq!(units(machine.placed(named.clone())), wanted);
        let resolved = machine.source.resolve(&EventSpec::new(named));
        assert_eq!(resolved.unwrap().info.name, "uncore_imc/cas_count_read/");
        // One with a number is that one, and a part of a name is none.
        let one = PmuEvent::new("uncore_imc_2").with_value("event", 4);
        assert_eq!(units(machine.placed(one)).len(), 1);
        for unknown in ["uncore_im", "uncore", "uncore_imc_", "uncore_imc_1"] {
            let event = PmuEvent::new(unknown).with_value("event", 4);
            let e = machine.placed(event).expect_err(unknown);
            assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        }
    }

    #[test]
    fn energy_counters_are_known_by_name_with_unit_and_scale() {
        let scale = "2.3283064365386962890625e-10";
        let power = [
            ("cpumask", "0,16"),
            ("format/event", "config:0-7"),
            ("events/energy-pkg", "event=0x02"),
            ("events/energy-pkg.unit", "Joules"),
            ("events/energy-pkg.scale", scale),
        ];
        let cores = [
            ("cpumask", "0-3"),
            ("format/event", "config:0-7"),
            ("events/energy-core", "event=0x01"),
            ("events/energy-core.unit", "Joules"),
            ("events/energy-core.scale", scale),
        ];
        let machine = machine(&[
            ("cpu", 4, &[]),
            ("power", 12, &power),
            ("power_core", 13, &cores),
        ]);
        for (name, wanted) in [
            ("energy-pkg", ("power".to_owned(), vec![0, 16], 12, 2)),
            (
                "energy-core",
                ("power_core".to_owned(), vec![0, 1, 2, 3], 13, 1),
            ),
        ] {
            assert_eq!(units(machine.named(name)), [wanted]);
            let info = machine
                .source
                .resolve(&EventSpec::new(Event::Named(name.into())));
            let info = info.unwrap().info;
            assert_eq!((info.name.as_str(), info.unit.as_ref()), (name, "Joules"));
            assert_eq!(info.scale, 2.0_f64.powi(-32));
        }
        for absent in ["energy-ram", "energy-pkg.unit", "pkg"] {
            let e = machine.named(absent).expect_err(absent);
            assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        }
    }

    #[test]
    fn an_unknown_name_has_a_hint() {
        let e = machine(&[]).named("cylces").expect_err("a typo");
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        assert_eq!(e.hint(), Some("did you mean cycles?"));
    }
}
