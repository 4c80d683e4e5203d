//! Events that the kernel or an event map has a name for: those of PMUs, tracepoints, probes.

use quipu_hal::{
    Error, ErrorKind, Event, EventInfo, Filter, MaxRate, PerfConfig, PmuEvent, Result, UncoreEvent,
};

use super::bits::{EventBits, TRACEPOINT_FILTER};
use super::core_pmus::CorePmus;
use super::native::NativeNames;
use super::placement::{Placement, Resolved, Unit};
use super::probe;
use super::refusal::{no_such_name, unsupported};
use crate::machine::sysfs::CorePmu;
use crate::machine::tracefs::Tracefs;
use crate::sys::event_type;

/// The names of a machine's events.
#[derive(Clone, Copy)]
pub(super) struct Names<'a> {
    /// Those that maps have for events of this CPU.
    pub(super) native: Option<&'a NativeNames>,
    pub(super) core_pmus: &'a CorePmus,
}

impl Names<'_> {
    /// Returns the most that an event of a core PMU can count, if the map of its core says so.
    pub(super) fn rate(self, mut config: PerfConfig) -> Option<MaxRate> {
        let own_type = |core: &CorePmu| core.type_ == config.type_;
        let core = self.core_pmus.several().iter().position(own_type);
        config.type_ = event_type::RAW;
        self.native?
            .max_rate(config, core, self.core_pmus.several())
    }

    /// Resolves an event that stands for what sysfs, tracefs, a file or an event map says of it.
    pub(super) fn resolve(self, event: &Event, filter: Filter) -> Result<Resolved> {
        match event {
            Event::Pmu(pmu_event) => self.pmu_event(pmu_event).or_else(|error| {
                let native = self.native;
                let behind =
                    native.and_then(|n| n.resolve_behind(pmu_event, filter, self.core_pmus));
                behind.ok_or(error)
            }),
            Event::Probe(probe) => probe::resolve(probe, self.core_pmus.pmus()),
            Event::Tracepoint { system, name } => tracepoint(system, name),
            Event::Named(name) => self.named(name, filter),
            other => {
                Err(unsupported(other)
                    .with_reason("this backend does not support this kind of event"))
            }
        }
    }

    /// Resolves an event of a PMU, or of all instances of a unit.
    fn pmu_event(self, event: &PmuEvent) -> Result<Resolved> {
        let mut cores = Vec::new();
        let mut units = Vec::new();
        let mut anywhere = Vec::new();
        let mut info = None;
        for (pmu, resolved) in self.core_pmus.pmus().resolve_instances(event)? {
            let bits = EventBits::of(resolved.config);
            let type_ = resolved.config.type_;
            match (
                self.core_pmus
                    .several()
                    .iter()
                    .position(|c| c.type_ == type_),
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

    /// Resolves an event of a unit outside of the cores, by the name that there is for it.
    fn uncore(self, name: &str, uncore: UncoreEvent) -> Result<Resolved> {
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
        resolved.info.name = name.to_owned().into();
        resolved.info.unit = uncore.unit;
        resolved.info.scale = uncore.scale;
        Ok(resolved)
    }

    /// Resolves a name: the time stamp counter's, one in the event maps, then, if it reads `a:b`, as a tracepoint, else
    /// among the events that the core PMUs name in sysfs.
    fn named(self, name: &str, filter: Filter) -> Result<Resolved> {
        if name.eq_ignore_ascii_case(Event::TIME_STAMP) {
            let counter = UncoreEvent::new(PmuEvent::new("msr").with("tsc"));
            return self.uncore(Event::TIME_STAMP, counter);
        }
        let event = Event::Named(name.to_owned());
        let from_maps = match self
            .native
            .as_ref()
            .map(|n| n.resolve(&event, filter, self.core_pmus))
        {
            Some(Ok(resolved)) => return Ok(resolved),
            Some(Err(e)) if e.kind() != ErrorKind::UnsupportedEvent => return Err(e),
            Some(Err(e)) => Some(e),
            None => None,
        };
        if let Some(uncore) = self.native.and_then(|n| n.uncore(name)) {
            return self.uncore(name, uncore);
        }
        // `pmu::event` is an event of a CPU, if not of this one.
        if let Some((system, tracepoint_name)) = name.split_once(':')
            && !tracepoint_name.starts_with(':')
        {
            let is_native = || self.native.is_some_and(|n| n.knows(name));
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
        Err(from_maps.unwrap_or_else(|| no_such_name(&event, name)))
    }

    /// An energy counter: `energy-pkg`.
    fn energy(self, name: &str) -> Option<Resolved> {
        // RAPL of packages, and of AMD's cores (`arch/x86/events/rapl.c`).
        const PMUS: [&str; 2] = ["power", "power_core"];
        name.strip_prefix("energy-")?;
        let event = |pmu: &&str| self.pmu_event(&PmuEvent::new(*pmu).with(name)).ok();
        let mut resolved = PMUS.iter().find_map(event)?;
        resolved.info.name = name.to_owned().into();
        Some(resolved)
    }

    /// An event that core PMUs have a name for (`slots`, `inst_retired`), on those that have it.
    fn named_by_cores(self, name: &str) -> Option<Resolved> {
        let knows = |core: &CorePmu| {
            let pmu = self.core_pmus.pmus().pmu(&core.name);
            pmu.is_ok_and(|pmu| pmu.events.iter().any(|event| event.name == name))
        };
        let mut resolved: Option<Resolved> = None;
        for core in self.core_pmus.all().iter().filter(|core| knows(core)) {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::source::tests::{config, cores, machine};
    use quipu_hal::EventSpec;

    #[test]
    fn events_of_a_pmu_are_on_its_cores_or_its_unit() {
        let machine = machine(&[
            ("cpu_core", 4, &[("cpus", "0-1")]),
            ("cpu_atom", 10, &[("cpus", "2-3")]),
            ("uncore_imc_0", 20, &[("cpumask", "0")]),
        ]);
        let of = |pmu| machine.placed(PmuEvent::new(pmu).with_value("config", 7));
        assert_eq!(of("cpu_atom"), cores([(1, config(10, 7))]));
        let uncore = Placement::Units(vec![Unit {
            pmu: "uncore_imc_0".into(),
            cpus: vec![0],
            bits: config(20, 7),
        }]);
        assert_eq!(of("uncore_imc_0"), Ok(uncore));
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
            assert_eq!((&*info.name, info.unit.as_ref()), (name, "Joules"));
            assert_eq!(info.scale, 2.0_f64.powi(-32));
        }
        for absent in ["energy-ram", "energy-pkg.unit", "pkg"] {
            let e = machine.named(absent).expect_err(absent);
            assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        }
    }
}
