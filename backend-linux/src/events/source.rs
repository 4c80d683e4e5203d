//! Resolving events: from what a group asks for to where it can be counted, with which bits.

use std::borrow::Cow;

use quipu_hal::{Encoding, Event, EventInfo, EventSpec, MaxRate, Result};

use super::bits::{BREAKPOINT_FILTER, EventBits, HARDWARE_FILTER, software_info};
use super::core_pmus::CorePmus;
#[cfg(feature = "names")]
use super::names::Names;
#[cfg(feature = "names")]
use super::native::NativeNames;
use super::placement::{Placement, Resolved};
use super::refusal::takes_no_condition;
#[cfg(not(feature = "names"))]
use super::refusal::{no_such_name, unsupported};
use crate::machine::sysfs::SysfsPmus;
use crate::sys::event_type;

/// The events of this machine. Which PMUs there are is looked up when an event depends on it first.
pub(crate) struct EventSource {
    core_pmus: CorePmus,
    #[cfg(feature = "names")]
    native: Option<NativeNames>,
}

impl EventSource {
    /// The events of a machine with these PMUs.
    pub(crate) fn new(pmus: SysfsPmus) -> Self {
        Self {
            core_pmus: CorePmus::new(pmus),
            #[cfg(feature = "names")]
            native: None,
        }
    }

    /// Sets where native names come from.
    #[cfg(feature = "names")]
    pub(crate) fn set_native(&mut self, native: NativeNames) {
        self.native = Some(native);
    }

    /// The core PMUs.
    pub(crate) fn core_pmus(&self) -> &CorePmus {
        &self.core_pmus
    }

    /// The names that the kernel and event maps have.
    #[cfg(feature = "names")]
    fn names(&self) -> Names<'_> {
        Names {
            native: self.native.as_ref(),
            core_pmus: &self.core_pmus,
        }
    }

    /// Returns true if the rate of an event has to be looked for in event maps.
    pub(super) fn has_map_of(&self, bits: &EventBits) -> bool {
        cfg!(feature = "names") && self.core_pmus.has_map_of(bits)
    }

    /// Returns the most that an event can count in a time: what the map of its core says, or else its bits.
    pub(crate) fn max_rate(&self, bits: &EventBits) -> MaxRate {
        if !self.core_pmus.has_map_of(bits) {
            return MaxRate::of(&Encoding::Perf(bits.config));
        }
        #[cfg(feature = "names")]
        if let Some(rate) = self.names().rate(bits.config) {
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
            Event::Hardware(event) => {
                of_core(event.name().into(), self.core_pmus.place_hardware(*event))
            }
            Event::Cache(event) => of_core(text(), self.core_pmus.place(EventBits::cache(*event))),
            Event::Raw(event) => of_core(text(), self.core_pmus.place(EventBits::raw(*event))),
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
            event => self.names().resolve(event, spec.filter),
            #[cfg(not(feature = "names"))]
            Event::Named(name) if !name.contains(':') => Err(no_such_name(&spec.event, name)),
            #[cfg(not(feature = "names"))]
            event => Err(unsupported(event)
                .with_reason("Quipu was built without the kernel's names of events")),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    use quipu_hal::{ErrorKind, Hardware, PerfConfig, RawEvent};

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
        assert_eq!(machine.source.core_pmus().several(), []);
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
