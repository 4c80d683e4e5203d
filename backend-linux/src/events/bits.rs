//! From an event to the bits of an attr: the numbers the kernel itself defines.

use quipu_hal::{
    Breakpoint, CacheEvent, Event, EventInfo, Filter, Hardware, PerfConfig, RawEvent, Software,
};

use crate::sys::{AttrFlags, PerfEventAttr, event_type};

/// The fields of an attr that say what is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct EventBits {
    /// `type`, `config` and its extensions.
    pub(crate) config: PerfConfig,
    /// True for a probe, whose PMUs have no number of their own.
    probe: bool,
}

impl EventBits {
    fn new(type_: u32, config: u64) -> Self {
        Self::of(PerfConfig::new(type_, config))
    }

    /// The bits of an event that is fully described by its config words.
    pub(crate) fn of(config: PerfConfig) -> Self {
        Self {
            config,
            probe: false,
        }
    }

    /// Returns a number that events of different PMUs do not share: the type, and the one of a kind of core in the
    /// high half of a generalized event's `config` (`PERF_PMU_TYPE_SHIFT`, `include/uapi/linux/perf_event.h`). Those that
    /// any core PMU counts have one of their own.
    pub(crate) fn pmu(&self) -> u64 {
        match (self.config.type_, self.config.config >> 32) {
            (event_type::HARDWARE | event_type::HW_CACHE, 0) | (event_type::RAW, _) => {
                event_type::HARDWARE.into()
            }
            (event_type::HARDWARE | event_type::HW_CACHE, core) => core,
            (pmu, _) => pmu.into(),
        }
    }

    /// Returns true if the kernel counts this event while it happens, instead of reading a register
    /// when it is asked.
    pub(crate) fn is_counted_live(&self) -> bool {
        self.probe
            || matches!(
                self.config.type_,
                event_type::SOFTWARE | event_type::TRACEPOINT | event_type::BREAKPOINT
            )
    }

    /// A probe of the kernel or of a program.
    pub(crate) fn probe(config: PerfConfig) -> Self {
        Self {
            config,
            probe: true,
        }
    }

    /// Returns the event with the address of a text in `config1`, which has to stay there until the
    /// event is open.
    pub(crate) fn pointing_to(mut self, text: &std::ffi::CStr) -> Self {
        self.config.config1 = text.as_ptr().expose_provenance() as u64;
        self
    }

    /// Returns the event with the request that its counter be readable in user space, which ARM's
    /// drivers need: bit 1 of `config1` (`rdpmc` of the PMU's `format`, `ATTR_CFG_FLD_rdpmc_*` in
    /// `include/linux/perf/arm_pmuv3.h`). An event that says something in `config1` says all of it.
    /// `on_core`: events of a type of its own are those of a core PMU.
    pub(crate) fn readable_in_user_space(mut self, on_core: bool) -> Self {
        let of_core = on_core || self.config.type_ <= event_type::RAW;
        if cfg!(target_arch = "aarch64")
            && of_core
            && !self.is_counted_live()
            && self.config.config1 == 0
        {
            self.config.config1 = 1 << 1;
        }
        self
    }

    /// Returns true if it is an event of the CPU's own PMU by one of its fixed types.
    pub(crate) fn is_core_event(&self) -> bool {
        matches!(
            self.config.type_,
            event_type::HARDWARE | event_type::HW_CACHE | event_type::RAW
        )
    }

    /// A hardware event.
    pub(crate) fn hardware(event: Hardware) -> Self {
        Self::of(PerfConfig::hardware(event))
    }

    /// A software event.
    pub(crate) fn software(event: Software) -> Self {
        Self::of(PerfConfig::software(event))
    }

    /// A cache event.
    pub(crate) fn cache(event: CacheEvent) -> Self {
        Self::of(PerfConfig::cache(event))
    }

    /// The bits of the CPU's own PMU: `PERF_TYPE_RAW`, or the type of one core PMU.
    pub(crate) fn raw(event: RawEvent) -> Self {
        Self::of(PerfConfig::raw(event))
    }

    /// A tracepoint, by the number in its `id` file.
    pub(crate) fn tracepoint(id: u64) -> Self {
        Self::new(event_type::TRACEPOINT, id)
    }

    /// A breakpoint.
    pub(crate) fn breakpoint(event: Breakpoint) -> Self {
        Self::of(PerfConfig::breakpoint(event))
    }

    /// Returns the event on one core PMU of several: generalized events carry its type in bits 32-63
    /// of `config` (`PERF_PMU_TYPE_SHIFT`), raw ones take it as their own.
    pub(crate) fn on_core(mut self, pmu_type: u32) -> Self {
        match self.config.type_ {
            event_type::HARDWARE | event_type::HW_CACHE => {
                self.config.config |= u64::from(pmu_type) << 32;
            }
            _ => self.config.type_ = pmu_type,
        }
        self
    }

    /// Returns true if it is a probe of the kernel or of a program.
    #[cfg(feature = "sampling")]
    pub(crate) fn is_probe(&self) -> bool {
        self.probe
    }

    /// Returns an attr that says what is counted, and nothing else.
    pub(crate) fn attr(self) -> PerfEventAttr {
        PerfEventAttr {
            type_: self.config.type_,
            config: self.config.config,
            config1: self.config.config1,
            config2: self.config.config2,
            config3: self.config.config3,
            bp_type: self.config.bp_type,
            ..PerfEventAttr::default()
        }
    }

    /// Returns an attr of user mode that does not count yet: it opens wherever the event does.
    pub(crate) fn idle_attr(self) -> PerfEventAttr {
        PerfEventAttr {
            flags: AttrFlags::DISABLED | AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV,
            ..self.attr()
        }
    }
}

/// Returns the exclusion flags of a filter.
pub(crate) fn exclusions(filter: Filter) -> AttrFlags {
    let mut flags = AttrFlags::empty();
    for (part, exclusion) in [
        (Filter::USER, AttrFlags::EXCLUDE_USER),
        (Filter::KERNEL, AttrFlags::EXCLUDE_KERNEL),
        (Filter::HYPERVISOR, AttrFlags::EXCLUDE_HV),
        (Filter::IDLE, AttrFlags::EXCLUDE_IDLE),
        (Filter::HOST, AttrFlags::EXCLUDE_HOST),
        (Filter::GUEST, AttrFlags::EXCLUDE_GUEST),
    ] {
        flags.set(exclusion, !filter.contains(part));
    }
    flags
}

/// Returns the name, unit and filters of a software event.
pub(crate) fn software_info(event: Software) -> EventInfo {
    let info = EventInfo::counter(event.name())
        .with_unit(event.unit())
        .occurring_in(Event::from(event).levels());
    match event {
        // Time passes in every mode: the kernel reads a clock and looks at no filter
        // (`cpu_clock_event_read`, `task_clock_event_read` in `kernel/events/core.c`).
        Software::CpuClock | Software::TaskClock => info.honouring(Filter::empty()),
        // The kernel counts these in its own mode only, whoever caused them (`perf_sw_event_sched`).
        Software::ContextSwitches | Software::CpuMigrations | Software::CgroupSwitches => {
            info.honouring(Filter::KERNEL)
        }
        // By the registers at the time (`perf_exclude_event`).
        _ => info.honouring(Filter::USER | Filter::KERNEL),
    }
}

/// The parts of a filter that the CPU's own PMU honours.
///
/// x86 selects by ring and by world; the other levels do not exist there, and the kernel ignores
/// `exclude_idle` (`x86_pmu_hw_config`, `arch/x86/events/core.c`).
pub(crate) const HARDWARE_FILTER: Filter = if cfg!(any(target_arch = "x86", target_arch = "x86_64"))
{
    Filter::USER.union(Filter::KERNEL).union(Filter::WORLDS)
} else {
    Filter::LEVELS.union(Filter::WORLDS)
};

/// The parts of a filter that breakpoints honour (`perf_bp_event`).
pub(crate) const BREAKPOINT_FILTER: Filter = Filter::USER.union(Filter::KERNEL);

/// The parts of a filter that tracepoints honour: they are left out where the kernel is
/// (`perf_tp_event_match`).
pub(crate) const TRACEPOINT_FILTER: Filter = Filter::KERNEL;

#[cfg(test)]
mod tests {
    use quipu_hal::{BreakpointAccess, Cache, CacheOp, CacheResult};

    use super::*;

    #[test]
    fn a_filter_becomes_its_complement() {
        assert_eq!(exclusions(Filter::all()), AttrFlags::empty());
        assert_eq!(exclusions(Filter::empty()), AttrFlags::EXCLUSIONS);
        assert_eq!(
            exclusions(Filter::USER_ONLY),
            AttrFlags::EXCLUDE_KERNEL | AttrFlags::EXCLUDE_HV
        );
    }

    #[test]
    fn generalized_events_have_the_kernels_numbers() {
        let hw = |e| EventBits::hardware(e).config;
        assert_eq!(
            (hw(Hardware::Cycles).type_, hw(Hardware::Cycles).config),
            (0, 0)
        );
        assert_eq!(hw(Hardware::RefCycles).config, 9);
        let sw = |e| EventBits::software(e).config;
        assert_eq!(
            (sw(Software::CpuClock).type_, sw(Software::CpuClock).config),
            (1, 0)
        );
        assert_eq!(sw(Software::PageFaults).config, 2);
        assert_eq!(sw(Software::Dummy).config, 9);
        assert_eq!(sw(Software::CgroupSwitches).config, 11);
        let ll = CacheEvent::new(Cache::Ll, CacheOp::Write, CacheResult::Miss);
        let cache = EventBits::cache(ll).config;
        assert_eq!((cache.type_, cache.config), (3, 0x1_0102));
    }

    #[test]
    fn breakpoints_go_where_the_union_puts_them() {
        let bits = EventBits::breakpoint(Breakpoint {
            address: 0x1000,
            len: 4,
            access: BreakpointAccess::ReadWrite,
        });
        assert_eq!(bits.config.bp_type, 3);
        let c = bits.config;
        assert_eq!((c.type_, c.config, c.config1, c.config2), (5, 0, 0x1000, 4));
    }

    #[test]
    fn a_core_type_goes_into_the_upper_half_or_replaces_raw() {
        let cycles = EventBits::hardware(Hardware::Instructions)
            .on_core(10)
            .config;
        assert_eq!((cycles.type_, cycles.config), (0, 10 << 32 | 1));
        let raw = EventBits::raw(RawEvent::new(0x1c0)).on_core(8).config;
        assert_eq!((raw.type_, raw.config), (8, 0x1c0));
    }

    #[test]
    fn what_happens_in_the_kernel_only_says_so() {
        for &event in Software::ALL {
            let kernel_only = software_info(event).occurs_in == Filter::KERNEL;
            let switches = matches!(
                event,
                Software::ContextSwitches | Software::CpuMigrations | Software::CgroupSwitches
            );
            assert_eq!(kernel_only, switches, "{event}");
        }
    }
}
