//! Resolving events: from what a group asks for to where it can be counted, with which bits.

#[cfg(feature = "names")]
mod named;

#[cfg(feature = "names")]
pub(crate) use named::Natives;

use std::borrow::Cow;
use std::sync::OnceLock;

use quipu_hal::{
    Encoding, Error, ErrorKind, Event, EventInfo, EventSpec, Hardware, MaxRate, PerfConfig, Result,
};

use crate::arm_names::arm_names;
use crate::event_bits::{BREAKPOINT_FILTER, EventBits, HARDWARE_FILTER, software_info};
use crate::parts::Placement;
use crate::sys::event_type;
use crate::sysfs::{CorePmu, SysfsPmus};

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
    #[cfg(feature = "names")]
    native: Option<Box<dyn Natives>>,
}

impl EventSource {
    /// The events of a machine with these core PMUs, and those that `pmus` and `tracefs` tell of.
    pub(crate) fn new(pmus: SysfsPmus) -> Self {
        Self {
            core_pmus: OnceLock::new(),
            pmus,
            #[cfg(feature = "names")]
            native: None,
        }
    }

    /// The core PMUs, also one alone.
    pub(crate) fn core_pmus(&self) -> &[CorePmu] {
        match self.core_pmus.get() {
            Some(pmus) => pmus,
            None => self.find_core_pmus(),
        }
    }

    fn find_core_pmus(&self) -> &[CorePmu] {
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
            #[cfg(feature = "names")]
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

    /// Returns true if an event is one of the core that a map may know: raw bits.
    pub(crate) fn has_map_of(&self, bits: &EventBits) -> bool {
        bits.config.type_ == event_type::RAW
            || !bits.is_counted_live() && self.is_core_type(bits.config.type_)
    }

    /// Returns the most that an event can count in a time: what the map of its core says, or else its bits.
    pub(crate) fn max_rate(&self, bits: &EventBits) -> MaxRate {
        if !self.has_map_of(bits) {
            return MaxRate::of(&Encoding::Perf(bits.config));
        }
        #[cfg(feature = "names")]
        if let Some(rate) = self.native_rate(bits.config) {
            return rate;
        }
        let mut config = bits.config;
        config.type_ = event_type::RAW;
        MaxRate::of(&Encoding::Perf(config))
    }

    /// Resolves an event to its bits on the PMUs that can count it.
    pub(crate) fn resolve(&self, spec: &EventSpec) -> Result<Resolved> {
        let may_have_fields = matches!(spec.event, Event::Tracepoint { .. } | Event::Named(_));
        if spec.condition.is_some() && !may_have_fields {
            return Err(takes_no_condition(spec));
        }
        let named = |name: Cow<'static, str>, placement, honours| Resolved {
            placement,
            info: EventInfo::counter(name).honouring(honours),
        };
        let of_core = |name, placement| Ok(named(name, placement, HARDWARE_FILTER));
        let text = || format!("{}", spec.event).into();
        match &spec.event {
            Event::Hardware(event) => of_core(event.name().into(), self.hardware(*event)),
            Event::Cache(event) => of_core(text(), self.on_cores(EventBits::cache(*event))),
            Event::Raw(event) => of_core(text(), self.on_cores(EventBits::raw(*event))),
            Event::Software(event) => Ok(Resolved {
                placement: Placement::Anywhere(EventBits::software(*event)),
                info: software_info(*event),
            }),
            Event::Breakpoint(event) => Ok(named(
                text(),
                Placement::Anywhere(EventBits::breakpoint(*event)),
                BREAKPOINT_FILTER,
            )),
            #[cfg(feature = "names")]
            event => self.symbolic(event, spec.filter),
            #[cfg(not(feature = "names"))]
            Event::Named(name) if !name.contains(':') => Err(no_such_name(&spec.event, name)),
            #[cfg(not(feature = "names"))]
            event => Err(unsupported(event)
                .with_reason("Quipu was built without the kernel's names of events")),
        }
    }

    /// The bits of a hardware event, on every core PMU if there are several.
    pub(crate) fn hardware(&self, event: Hardware) -> Placement {
        let mut placement = self.on_cores(EventBits::hardware(event));
        if let Placement::Cores(cores) = &mut placement {
            for (core, bits) in cores {
                let pmu = &self.cores()[*core];
                if let Some(own) = self.arm_event(&pmu.name, pmu.type_, event) {
                    *bits = own;
                }
            }
        }
        placement
    }

    /// The bits of a hardware event under the own type of an ARM core PMU.
    fn arm_event(&self, pmu: &str, type_: u32, event: Hardware) -> Option<EventBits> {
        // Other CPUs have no PMU of such a name.
        let is_arm = cfg!(any(test, target_arch = "arm", target_arch = "aarch64"));
        if !is_arm || !pmu.starts_with("arm") {
            return None;
        }
        let number = |name: &&str| self.pmus.number_of_event(pmu, name);
        let number = arm_names(event).iter().find_map(number)?;
        Some(EventBits::of(PerfConfig::new(type_, number)))
    }

    /// The bits of an event of the CPU's own PMU: on every core PMU if there are several.
    pub(crate) fn on_cores(&self, bits: EventBits) -> Placement {
        let cores = self.cores();
        if cores.is_empty() {
            return Placement::Anywhere(bits);
        }
        let each = cores.iter().enumerate();
        Placement::Cores(
            each.map(|(i, core)| (i, bits.on_core(core.type_)))
                .collect(),
        )
    }
}

/// Returns the refusal of a condition on what is no tracepoint.
pub(crate) fn takes_no_condition(spec: &EventSpec) -> Error {
    Error::new(ErrorKind::UnsupportedFeature, format!("open {spec}"))
        .with_reason("only tracepoints support a condition")
}

/// Returns the error for a plain name that nobody knows, with the generalized events that it may be meant for.
fn no_such_name(event: &Event, name: &str) -> Error {
    let error = unsupported(event).with_reason("there is no event of this name");
    match quipu_text::nearest(name, []).as_slice() {
        [] => error,
        near => error.with_hint(format!("did you mean {}?", near.join(", "))),
    }
}

pub(crate) fn unsupported(event: &Event) -> Error {
    Error::new(ErrorKind::UnsupportedEvent, format!("open {event}"))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    use quipu_hal::RawEvent;

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

    /// Without the feature, portable events are all there are.
    #[test]
    #[cfg(not(feature = "names"))]
    fn names_of_the_kernel_are_refused_for_the_build() {
        let machine = machine(&[("cpu", 4, &[("format/event", "config:0-7")])]);
        for text in [
            "cpu/event=1/",
            "sched:sched_switch",
            "tracepoint:a:b",
            "kprobe:do_exit",
        ] {
            let spec = quipu_text::parse_spec(text, &quipu_text::NoNames).expect("an event");
            let e = machine.placed(spec.event).expect_err(text);
            assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
            let reason = e.reason().unwrap_or_default();
            assert!(reason.starts_with("Quipu was built without"), "{e}");
        }
    }

    #[test]
    fn a_condition_on_what_is_no_tracepoint_is_refused() {
        let spec = EventSpec::new(Hardware::Cycles).with_condition("fd == 1");
        let e = machine(&[]).source.resolve(&spec).expect_err("no fields");
        assert_eq!(e.kind(), ErrorKind::UnsupportedFeature);
        assert_eq!(e.reason(), Some("only tracepoints support a condition"));
    }

    #[test]
    fn an_unknown_name_has_a_hint() {
        let e = machine(&[]).named("cylces").expect_err("a typo");
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        assert_eq!(e.hint(), Some("did you mean cycles?"));
    }
}
