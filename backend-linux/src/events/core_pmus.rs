//! The PMUs of the CPU's cores, and the placement of their events on them.

use std::sync::OnceLock;

use quipu_hal::{Hardware, PerfConfig};

use super::arm_names::arm_names;
use super::bits::EventBits;
use super::placement::Placement;
use crate::machine::sysfs::{CorePmu, SysfsPmus};
use crate::sys::event_type;

/// The core PMUs of a machine, which are looked up when an event depends on them first.
pub(crate) struct CorePmus {
    found: OnceLock<Vec<CorePmu>>,
    pmus: SysfsPmus,
}

impl CorePmus {
    /// The core PMUs among these.
    pub(super) fn new(pmus: SysfsPmus) -> Self {
        Self {
            found: OnceLock::new(),
            pmus,
        }
    }

    /// All PMUs of the machine.
    #[cfg(feature = "names")]
    pub(super) fn pmus(&self) -> &SysfsPmus {
        &self.pmus
    }

    /// The core PMUs, also one alone.
    pub(crate) fn all(&self) -> &[CorePmu] {
        self.found.get_or_init(|| self.pmus.core_pmus())
    }

    /// The core PMUs that generalized events are split over; none where the kernel finds the only one by itself.
    pub(crate) fn several(&self) -> &[CorePmu] {
        match self.all() {
            [] | [_] => &[],
            several => several,
        }
    }

    /// The core PMUs that parts of a group may be on; none, without a look at sysfs, where no member is on one.
    pub(crate) fn of(&self, placements: &[Placement]) -> &[CorePmu] {
        match placements.iter().any(|p| matches!(p, Placement::Cores(_))) {
            true => self.several(),
            false => &[],
        }
    }

    /// Returns true if a type is that of a core PMU.
    fn has_type(&self, type_: u32) -> bool {
        // No PMU that registers itself has one of the kernel's own types but `RAW`.
        let own = type_ == event_type::RAW || type_ > event_type::BREAKPOINT;
        own && self.all().iter().any(|core| core.type_ == type_)
    }

    /// Returns true if an event takes a counter of a CPU core.
    pub(crate) fn give_counter(&self, placement: &Placement) -> bool {
        match placement {
            Placement::Anywhere(bits) => bits.is_core_event() || self.has_type(bits.config.type_),
            Placement::Cores(_) => true,
            #[cfg(feature = "names")]
            Placement::Units(_) | Placement::Probe(..) => false,
        }
    }

    /// Returns true if an event takes a counter of the core PMU of this name.
    pub(crate) fn one_gives_counter(&self, pmu: &str, placement: &Placement) -> bool {
        match placement {
            Placement::Cores(cores) => {
                let name = |core: usize| &self.several()[core].name;
                cores.iter().any(|(core, _)| name(*core) == pmu)
            }
            other => self.give_counter(other),
        }
    }

    /// Returns true if an event is one of the core that a map may know: raw bits.
    pub(super) fn has_map_of(&self, bits: &EventBits) -> bool {
        bits.config.type_ == event_type::RAW
            || !bits.is_counted_live() && self.has_type(bits.config.type_)
    }

    /// Places an event of the CPU's own PMU: on every core PMU if there are several.
    pub(super) fn place(&self, bits: EventBits) -> Placement {
        let cores = self.several();
        if cores.is_empty() {
            return Placement::Anywhere(bits);
        }
        let each = cores.iter().enumerate();
        Placement::Cores(
            each.map(|(i, core)| (i, bits.on_core(core.type_)))
                .collect(),
        )
    }

    /// Places a hardware event: on every core PMU if there are several.
    pub(crate) fn place_hardware(&self, event: Hardware) -> Placement {
        let mut placement = self.place(EventBits::hardware(event));
        if let Placement::Cores(cores) = &mut placement {
            for (core, bits) in cores {
                let pmu = &self.several()[*core];
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
}
