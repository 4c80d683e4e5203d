//! Native names: events that a database knows, for each kind of core of the machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use quipu_hal::{
    CpuIdentity, Encoding, Error, ErrorKind, Event, EventMap, Filter, MaxRate, PerfConfig,
    PmuEvent, RawEvent, Result, UncoreEvent, X86Select,
};

use super::bits::EventBits;
use super::core_pmus::CorePmus;
use super::placement::{Placement, Resolved};
use super::refusal::unsupported;
use crate::machine::kernel_file;
use crate::machine::sysfs::CorePmu;

/// Event maps, one for each kind of core.
type Maps = Vec<Arc<dyn EventMap>>;

/// The source of native names: maps that are made when the first name is looked up.
pub(crate) struct NativeNames {
    make: Box<dyn Fn() -> Result<Maps> + Send + Sync>,
    maps: OnceLock<Result<Maps>>,
    /// The events of names that maps know, each looked up once for the bits of a filter.
    resolved: RwLock<BTreeMap<(String, u8), Resolved>>,
    /// `/sys/devices/system/cpu`.
    cpus: PathBuf,
}

impl NativeNames {
    pub(crate) fn new(make: impl Fn() -> Result<Maps> + Send + Sync + 'static) -> Self {
        Self {
            make: Box::new(make),
            maps: OnceLock::new(),
            resolved: RwLock::default(),
            cpus: PathBuf::from("/sys/devices/system/cpu"),
        }
    }

    fn look_up(&self, event: &Event, filter: Filter, core_pmus: &CorePmus) -> Result<Resolved> {
        let maps = match self.maps.get_or_init(&self.make) {
            Ok(maps) => maps,
            Err(error) => return Err(without_maps(event, error)),
        };
        let mut resolved: Option<Resolved> = None;
        let mut unknown: Option<Error> = None;
        for map in maps {
            let native = match map.resolve(event, filter) {
                Ok(native) => native,
                Err(error) if error.kind() == ErrorKind::UnsupportedEvent => {
                    unknown.get_or_insert(error);
                    continue;
                }
                Err(error) => return Err(error),
            };
            let bits = raw_bits(event, &native.encoding)?;
            let placement = match self.core_of(map.as_ref(), core_pmus.several()) {
                Some(i) => Placement::Cores(vec![(i, bits.on_core(core_pmus.several()[i].type_))]),
                None if maps.len() == 1 || core_pmus.several().is_empty() => core_pmus.place(bits),
                None => {
                    unknown.get_or_insert_with(|| {
                        unsupported(event)
                            .with_reason("the kernel has no PMU for the cores that have this event")
                    });
                    continue;
                }
            };
            match (&mut resolved, placement) {
                (Some(all), Placement::Cores(cores)) => {
                    all.placement.add_cores(cores);
                    all.info.errata.extend(native.info.errata);
                }
                (Some(_), _) => {}
                (None, placement) => {
                    let info = native.info;
                    resolved = Some(Resolved { placement, info });
                }
            }
        }
        resolved.ok_or_else(|| unknown.unwrap_or_else(|| unsupported(event)))
    }

    /// The core PMU (by position) of the cores that a map is for.
    fn core_of(&self, map: &dyn EventMap, cores: &[CorePmu]) -> Option<usize> {
        let cpu = map.cpu();
        if let Some(core_type) = cpu.core_type.as_deref() {
            return cores
                .iter()
                .position(|core| core.name.strip_prefix("cpu_") == Some(core_type));
        }
        let CpuIdentity::Arm { midr } = cpu.identity else {
            return None;
        };
        // Implementer and part; variant and revision may differ between cores of a kind.
        const PART: u64 = 0xff00_fff0;
        cores.iter().position(|core| {
            let first = core.cpus.first();
            first
                .and_then(|cpu| main_id(&self.cpus, *cpu))
                .is_some_and(|own| own & PART == midr & PART)
        })
    }

    /// Resolves an event that a map has a name for and that is written behind a core PMU, for that PMU:
    /// `cpu/ex_ret_instr/`, `cpu/l2_rqsts.miss,cmask=1/`. None if it is no such event.
    pub(super) fn resolve_behind(
        &self,
        event: &PmuEvent,
        filter: Filter,
        core_pmus: &CorePmus,
    ) -> Option<Resolved> {
        let is_of = |core: &CorePmu| core.name == event.pmu;
        let core = core_pmus.several().iter().position(is_of);
        if core.is_none() && event.pmu != "cpu" {
            return None;
        }
        let mut names = event.terms.iter().filter(|term| term.value.is_none());
        let (Some(name), None) = (names.next(), names.next()) else {
            return None;
        };
        let mut text = name.name.clone();
        for term in event.terms.iter().filter(|term| term.value.is_some()) {
            text.push_str(&format!(":{term}"));
        }
        let mut resolved = self.resolve(&Event::Named(text), filter, core_pmus).ok()?;
        if let (Placement::Cores(cores), Some(core)) = (&mut resolved.placement, core) {
            cores.retain(|(own, _)| *own == core);
            if cores.is_empty() {
                return None;
            }
        }
        Some(resolved)
    }

    /// Resolves a native event for every core PMU whose map knows it.
    ///
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) is the error when no map does.
    pub(super) fn resolve(
        &self,
        event: &Event,
        filter: Filter,
        core_pmus: &CorePmus,
    ) -> Result<Resolved> {
        let Event::Named(name) = event else {
            return self.look_up(event, filter, core_pmus);
        };
        let key = (name.clone(), filter.bits());
        let known = self.resolved.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(resolved) = known.get(&key) {
            return Ok(resolved.clone());
        }
        drop(known);
        let resolved = self.look_up(event, filter, core_pmus)?;
        let mut known = self
            .resolved
            .write()
            .unwrap_or_else(PoisonError::into_inner);
        known.insert(key, resolved.clone());
        Ok(resolved)
    }

    /// Returns the most that an event of a core PMU can count, as the map of that core has it. `core` is the
    /// PMU's position among several.
    pub(super) fn max_rate(
        &self,
        config: PerfConfig,
        core: Option<usize>,
        cores: &[CorePmu],
    ) -> Option<MaxRate> {
        let maps = self.maps.get_or_init(&self.make).as_ref().ok()?;
        let of_core = |map: &&Arc<dyn EventMap>| {
            let own = self.core_of(map.as_ref(), cores);
            own.is_none() || core.is_none() || own == core
        };
        let encoding = Encoding::Perf(config);
        let rates = maps.iter().filter(of_core);
        rates
            .map(|map| map.max_rate(&encoding))
            .max_by_key(|rate| rate.increments_per_second())
    }

    /// Returns the event of a unit outside of the cores that a map has this name for.
    pub(super) fn uncore(&self, name: &str) -> Option<UncoreEvent> {
        let maps = self.maps.get_or_init(&self.make).as_ref().ok()?;
        maps.iter().find_map(|map| map.uncore(name))
    }

    /// Returns true if `name`'s base event exists on some core; the error of [`resolve`](Self::resolve) is then why it
    /// cannot be counted.
    pub(super) fn knows(&self, name: &str) -> bool {
        let maps = self.maps.get_or_init(&self.make);
        maps.as_ref()
            .is_ok_and(|maps| maps.iter().any(|map| map.has_event(name)))
    }
}

/// The main id register of an ARM CPU
/// (`Documentation/arch/arm64/cpu-feature-registers.rst`, `regs/identification/midr_el1`).
fn main_id(cpus: &Path, cpu: u32) -> Option<u64> {
    let path = cpus.join(format!("cpu{cpu}/regs/identification/midr_el1"));
    let text = kernel_file::read(&path).ok()?;
    u64::from_str_radix(text.trim().strip_prefix("0x")?, 16).ok()
}

/// Returns the error for a name while there are no maps to look it up in.
fn without_maps(event: &Event, error: &Error) -> Error {
    let refused = unsupported(event).with_reason(format!(
        "there is no event of this name, and native names are not known here: {error}"
    ));
    match quipu_text::nearest(&event.to_string(), []).as_slice() {
        [] => match error.hint() {
            Some(hint) => refused.with_hint(hint),
            None => refused,
        },
        near => refused.with_hint(format!("did you mean {}?", near.join(", "))),
    }
}

/// The bits of a native event as the kernel's own PMU drivers take them.
fn raw_bits(event: &Event, encoding: &Encoding) -> Result<EventBits> {
    /// The bits that the kernel sets itself: privilege levels, the interrupt, the pin, enabling.
    const KERNELS_OWN: u64 = X86Select::USER
        | X86Select::KERNEL
        | X86Select::PIN
        | X86Select::INTERRUPT
        | X86Select::ENABLE
        | X86Select::GUEST_ONLY
        | X86Select::HOST_ONLY;
    let raw = |config| Ok(EventBits::raw(RawEvent::new(config)));
    match encoding {
        Encoding::Perf(config) => Ok(EventBits::of(*config)),
        Encoding::X86(x86) => {
            let config = x86.select & !KERNELS_OWN;
            match x86.extra.as_slice() {
                [] => raw(config),
                // Intel's extra registers go into config1, whichever it is: the event decides
                // (`intel_extra_regs`, `arch/x86/events/intel/core.c`).
                [extra] => Ok(EventBits::raw(RawEvent::new(config).with_extra([
                    extra.value,
                    0,
                    0,
                ]))),
                _ => Err(
                    Error::new(ErrorKind::UnsupportedFeature, format!("open {event}"))
                        .with_reason("Linux supports one extra register for an event, not several"),
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
            _ => Err(unsupported(event).with_reason("Linux does not support this fixed counter")),
        },
        Encoding::Armv8(arm) => raw(arm.event().into()),
        _ => Err(unsupported(event).with_reason("Linux has no driver for this kind of counter")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use quipu_hal::{
        Armv8Event, CpuModel, EventInfo, EventSpec, ExtraRegister, FixedCounter, P5Function,
        PerfConfig, ResolvedEvent, Scheme, SlotSet,
    };

    use crate::events::placement::Unit;
    use crate::events::source::tests::{Machine, Pmu, config, cores, machine};

    const HYBRID: [Pmu<'_>; 2] = [
        ("cpu_core", 4, &[("cpus", "0-1")]),
        ("cpu_atom", 10, &[("cpus", "2-3")]),
    ];
    const BIG_LITTLE: [Pmu<'_>; 2] = [
        ("armv8_cortex_a53", 8, &[("cpus", "0-3")]),
        ("armv8_cortex_a72", 9, &[("cpus", "4-5")]),
    ];

    /// A map that knows some names, for one kind of core.
    struct Names {
        cpu: CpuModel,
        known: Vec<(&'static str, Encoding)>,
    }

    impl EventMap for Names {
        fn cpu(&self) -> &CpuModel {
            &self.cpu
        }

        fn uncore(&self, name: &str) -> Option<UncoreEvent> {
            let event = PmuEvent::new("uncore_imc").with_value("config", 0x304);
            (name == "READS").then(|| UncoreEvent::new(event).with_unit("Bytes", 64.0))
        }

        /// One in a cycle for each bit of the event's number.
        fn max_rate(&self, encoding: &Encoding) -> MaxRate {
            match encoding {
                Encoding::Perf(config) if config.type_ == 4 => {
                    MaxRate::per_cycle(config.config.count_ones() as u8 + self.known.len() as u8)
                }
                other => MaxRate::of(other),
            }
        }

        fn resolve(&self, event: &Event, _: Filter) -> Result<ResolvedEvent> {
            let known = |(name, _): &&(&str, Encoding)| *event == Event::Named((*name).into());
            match self.known.iter().find(known) {
                Some((name, encoding)) => Ok(ResolvedEvent::new(
                    encoding.clone(),
                    SlotSet::ANY_GENERAL,
                    EventInfo::counter(*name),
                )),
                None if *event == Event::Named("SUM".into()) => Err(Error::new(
                    ErrorKind::UnsupportedFeature,
                    "count SUM with one counter",
                )),
                None => Err(unsupported(event).with_hint("the map's own hint")),
            }
        }
    }

    fn map<const N: usize>(
        core_type: &str,
        midr: u64,
        known: [(&'static str, Encoding); N],
    ) -> Arc<dyn EventMap> {
        let core_type = (!core_type.is_empty()).then(|| core_type.to_owned());
        Arc::new(Names {
            cpu: CpuModel::new(CpuIdentity::Arm { midr }, Scheme::Simulated, Vec::new())
                .with_core_type(core_type),
            known: known.into(),
        })
    }

    fn with(pmus: &[Pmu<'_>], maps: Maps) -> Machine {
        let mut machine = machine(pmus);
        let native = NativeNames::new(move || Ok(maps.clone()));
        machine.source.set_native(native);
        machine
    }

    fn select(event: u16, unit_mask: u8) -> Encoding {
        Encoding::X86(X86Select::new(event, unit_mask))
    }

    fn offcore<const N: usize>(values: [u64; N]) -> Encoding {
        let address = 0x1a6;
        let extra = values.map(|value| ExtraRegister { address, value });
        let mut select = X86Select::new(0xb7, 1);
        select.extra = extra.into();
        Encoding::X86(select)
    }

    #[test]
    fn native_names_come_from_the_map_as_the_kernel_takes_them() {
        let all_flags = X86Select::USER | X86Select::ENABLE | X86Select::EDGE;
        let edge = Encoding::X86(X86Select::new(0xc0, 2).with_flags(all_flags));
        let fixed = |index| Encoding::Fixed(FixedCounter { index, control: 3 });
        let p5 = Encoding::P5(P5Function::default());
        for (encoding, wanted) in [
            (edge, Ok((0x4_02c0, 0))),
            (offcore([0x10001]), Ok((0x1b7, 0x10001))),
            (fixed(0), Ok((0xc0, 0))),
            (fixed(2), Ok((0x300, 0))),
            (Encoding::Armv8(Armv8Event::new(8)), Ok((8, 0))),
            // Linux cannot take these.
            (offcore([1, 2]), Err(ErrorKind::UnsupportedFeature)),
            (p5, Err(ErrorKind::UnsupportedEvent)),
            (Encoding::Simulated(1), Err(ErrorKind::UnsupportedEvent)),
        ] {
            let machine = with(&[], vec![map("", 0, [("NAME", encoding)])]);
            let wanted = wanted.map(|(config, config1)| {
                let bits = PerfConfig::new(4, config).with_config1(config1);
                Placement::Anywhere(EventBits::of(bits))
            });
            assert_eq!(machine.named("NAME").map_err(|e| e.kind()), wanted);
        }
    }

    #[test]
    fn an_uncore_name_is_counted_by_every_instance_of_its_unit() {
        let imc: [Pmu<'_>; 2] = [
            ("uncore_imc_0", 20, &[("cpumask", "0,8")]),
            ("uncore_imc_1", 21, &[("cpumask", "0,8")]),
        ];
        let machine = with(&imc, vec![map("", 0, [("READS_OF_A_CORE", select(1, 1))])]);
        let spec = EventSpec::new(Event::Named("READS".into()));
        let resolved = machine.source.resolve(&spec).expect("a name of the map");
        let unit = |pmu: &str, type_| Unit {
            pmu: pmu.to_owned(),
            cpus: vec![0, 8],
            bits: config(type_, 0x304),
        };
        let units = vec![unit("uncore_imc_0", 20), unit("uncore_imc_1", 21)];
        assert_eq!(resolved.placement, Placement::Units(units));
        let info = resolved.info;
        assert_eq!(
            (&*info.name, info.unit.as_ref(), info.scale),
            ("READS", "Bytes", 64.0)
        );
        // Without the unit, what the name stands for is said.
        let machine = with(&[("uncore_cha_0", 20, &[])], vec![map("", 0, [])]);
        let e = machine.named("READS").expect_err("no such unit");
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        let text = e.to_string();
        assert!(
            text.contains("READS, which is uncore_imc/config=0x304/"),
            "{text}"
        );
    }

    #[test]
    fn the_time_stamp_counter_is_an_event_of_the_pmu_msr() {
        let msr: Pmu<'_> = (
            "msr",
            9,
            &[
                ("events/tsc", "event=0x00"),
                ("format/event", "config:0-63"),
            ],
        );
        for native in [true, false] {
            let mut machine = machine(&[msr]);
            if native {
                machine = with(&[msr], vec![map("", 0, [("tsc", select(1, 1))])]);
            }
            for name in ["tsc", "TSC"] {
                let spec = EventSpec::new(Event::Named(name.into()));
                let resolved = machine.source.resolve(&spec).expect("the PMU has it");
                assert_eq!(resolved.placement, Placement::Anywhere(config(9, 0)));
                assert_eq!(resolved.info.name, "tsc");
            }
        }
        let error = with(&[], vec![]).named("tsc").expect_err("no such PMU");
        assert_eq!(error.kind(), ErrorKind::UnsupportedEvent);
        let text = error.to_string();
        assert!(
            text.starts_with("cannot open tsc, which is msr/tsc/: "),
            "{text}"
        );
    }

    #[test]
    fn a_native_event_goes_to_the_core_types_that_have_it() {
        let core = [("BOTH", select(0xc0, 1)), ("CORE", select(0xa4, 1))];
        let atom = [("BOTH", select(0xc0, 0)), ("ATOM", select(0x71, 0))];
        let machine = with(&HYBRID, vec![map("core", 0, core), map("atom", 0, atom)]);
        let both = cores([(0, config(4, 0x1c0)), (1, config(10, 0xc0))]);
        assert_eq!(machine.named("BOTH"), both);
        assert_eq!(machine.named("CORE"), cores([(0, config(4, 0x1a4))]));
        assert_eq!(machine.named("ATOM"), cores([(1, config(10, 0x71))]));
        let e = machine.named("NEITHER").expect_err("in no map");
        assert_eq!(e.hint(), Some("the map's own hint"));
        // Known to both, and countable on neither: never on a part of the cores in silence.
        let e = machine.named("SUM").expect_err("no single event");
        assert_eq!(e.kind(), ErrorKind::UnsupportedFeature);
    }

    #[test]
    fn a_name_of_a_map_may_stand_behind_its_pmu() {
        let names = [("NAME", select(0xc0, 1)), ("NAME:cmask=2", select(0xc0, 2))];
        let cpu: Pmu<'_> = ("cpu", 4, &[("format/cmask", "config:24-31")]);
        let machine = with(&[cpu], vec![map("", 0, names)]);
        let behind = |terms: &[(&str, Option<u64>)]| {
            let mut event = PmuEvent::new("cpu");
            for (name, value) in terms {
                event = match value {
                    Some(value) => event.with_value(*name, *value),
                    None => event.with(*name),
                };
            }
            machine.placed(event)
        };
        let anywhere = |config_| Ok(Placement::Anywhere(config(4, config_)));
        assert_eq!(behind(&[("NAME", None)]), anywhere(0x1c0));
        let masked = behind(&[("cmask", Some(2)), ("NAME", None)]);
        assert_eq!(masked, anywhere(0x2c0));
        assert_eq!(behind(&[("r1c0", None)]), anywhere(0x1c0));
        let unknown = behind(&[("OTHER", None)]).expect_err("in no map");
        assert_eq!(unknown.reason(), Some("cpu has no term or event OTHER"));

        let core = [("BOTH", select(0xc0, 1)), ("CORE", select(0xa4, 1))];
        let atom = [("BOTH", select(0xc0, 0))];
        let machine = with(&HYBRID, vec![map("core", 0, core), map("atom", 0, atom)]);
        let on_atom = |name| machine.placed(PmuEvent::new("cpu_atom").with(name));
        assert_eq!(on_atom("BOTH"), cores([(1, config(10, 0xc0))]));
        assert!(on_atom("CORE").is_err());
    }

    #[test]
    fn an_event_of_another_cpus_pmu_is_no_tracepoint() {
        let machine = with(
            &[("cpu", 4, &[])],
            vec![map("", 0, [("NAME", select(0xc0, 0))])],
        );
        for (name, is_tracepoint) in [
            ("skl::NAME", false),
            ("skl::NAME:u=1", false),
            ("skl:NAME", true),
        ] {
            let refused = machine.named(name).expect_err("there is none");
            assert_eq!(
                refused.to_string().contains("the tracepoint"),
                is_tracepoint,
                "{refused}"
            );
        }
    }

    #[test]
    fn a_core_type_without_a_pmu_counts_nothing() {
        let known = || [("NAME", select(0xc0, 0))];
        let maps = vec![map("atom", 0, known()), map("tiny", 0, known())];
        let on_atom = cores([(1, config(10, 0xc0))]);
        assert_eq!(with(&HYBRID, maps).named("NAME"), on_atom);
        let maps = vec![map("atom", 0, []), map("tiny", 0, known())];
        let e = with(&HYBRID, maps).named("NAME").expect_err("no such PMU");
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
    }

    #[test]
    fn arm_cores_differ_by_their_main_id_register() {
        let cpus = tempfile::tempdir().expect("a directory");
        for (cpu, midr) in [(0, "0x00000000410fd034\n"), (4, "0x00000000410fd083\n")] {
            let dir = cpus.path().join(format!("cpu{cpu}/regs/identification"));
            std::fs::create_dir_all(&dir).expect("new");
            std::fs::write(dir.join("midr_el1"), midr).expect("written");
        }
        let event = |code| Encoding::Armv8(Armv8Event::new(code));
        let a72 = [("BOTH", event(0x11)), ("A72", event(0x50))];
        let maps = vec![
            map("", 0x410f_d080, a72),
            map("", 0x410f_d030, [("BOTH", event(0x12))]),
        ];
        let mut native = NativeNames::new(move || Ok(maps.clone()));
        cpus.path().clone_into(&mut native.cpus);
        let mut machine = machine(&BIG_LITTLE);
        machine.source.set_native(native);
        let both = cores([(1, config(9, 0x11)), (0, config(8, 0x12))]);
        assert_eq!(machine.named("BOTH"), both);
        assert_eq!(machine.named("A72"), cores([(1, config(9, 0x50))]));
    }

    #[test]
    fn the_map_of_a_core_tells_the_most_that_its_events_count() {
        let core = [("A", select(0xc0, 1)), ("B", select(0xa4, 1))];
        let hybrid = with(&HYBRID, vec![map("core", 0, core), map("atom", 0, [])]);
        let rate = |machine: &Machine, type_, number| {
            let bits = EventBits::of(PerfConfig::new(type_, number));
            machine.source.max_rate(&bits)
        };
        assert_eq!(rate(&hybrid, 4, 0x7), MaxRate::per_cycle(5));
        assert_eq!(rate(&hybrid, 10, 0x7), MaxRate::per_cycle(3));
        // Events that are not of a core's own numbers.
        assert_eq!(rate(&hybrid, 0, 0), MaxRate::CYCLES);
        assert_eq!(rate(&hybrid, 2, 7), MaxRate::NONE);
        assert_eq!(rate(&hybrid, 20, 7), MaxRate::NONE);
        let arm = [("armv8_pmuv3_0", 8, &[("cpus", "0-3")][..])];
        assert_eq!(
            rate(&with(&arm, vec![map("", 0, [])]), 8, 3),
            MaxRate::per_cycle(2)
        );
        // Without a map.
        assert_eq!(rate(&machine(&arm), 8, 3), MaxRate::OTHER);
        assert_eq!(rate(&machine(&arm), 9, 3), MaxRate::NONE);
    }

    #[test]
    fn maps_are_made_once_and_by_native_names_only() {
        let made = Arc::new(AtomicUsize::new(0));
        let mut machine = machine(&[]);
        let counted = Arc::clone(&made);
        machine.source.set_native(NativeNames::new(move || {
            counted.fetch_add(1, Ordering::Relaxed);
            Err(Error::new(ErrorKind::NoSuchDevice, "identify the CPU").with_hint("look at it"))
        }));
        for portable in ["cycles", "page-faults", "L1-dcache-loads", "r1c0"] {
            let spec = quipu_text::parse_spec(portable, &quipu_text::NoNames).expect("an event");
            machine.placed(spec.event).expect("needs no map");
        }
        assert_eq!(made.load(Ordering::Relaxed), 0);
        for _ in 0..2 {
            let e = machine.named("NOBODY_KNOWS.THIS").expect_err("no map");
            assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
            assert!(e.to_string().contains("cannot identify the CPU"), "{e}");
            assert_eq!(e.hint(), Some("look at it"));
        }
        let e = machine.named("cylces").expect_err("a typo");
        assert_eq!(e.hint(), Some("did you mean cycles?"));
        assert_eq!(made.load(Ordering::Relaxed), 1);
    }
}
