//! Names of events that have none in their file: of those that the kernel's own numbers identify.

use quipu_hal::{
    Breakpoint, BreakpointAccess, Cache, CacheEvent, CacheOp, CacheResult, Event, EventSpec,
    Filter, Hardware, RawEvent, Software,
};

use crate::EventAttr;

/// `enum perf_type_id`.
const HARDWARE: u32 = 0;
const SOFTWARE: u32 = 1;
const HW_CACHE: u32 = 3;
const RAW: u32 = 4;
const BREAKPOINT: u32 = 5;

impl EventAttr {
    /// Returns the name of a generalized, software, cache or raw event or a breakpoint, with the privilege levels it
    /// is restricted to and its precision: `page-faults`, `cycles:u`, `cycles:ppH`, `r01c0`. Those of other types have
    /// names in sysfs or tracefs of the machine that recorded them.
    ///
    /// The numbers are those of `include/uapi/linux/perf_event.h` and `hw_breakpoint.h`.
    pub fn event_name(&self) -> Option<String> {
        let config = self.config();
        let [config1, config2, config3] = self.more_config();
        let event: Event = match self.event_type() {
            // The high half names the core PMU of a hybrid machine.
            HARDWARE => (*nth(Hardware::ALL, config & 0xffff_ffff)?).into(),
            SOFTWARE => (*nth(Software::ALL, config)?).into(),
            HW_CACHE if config & 0xff00_0000 == 0 => CacheEvent::new(
                *nth(Cache::ALL, config & 0xff)?,
                *nth(CacheOp::ALL, config >> 8 & 0xff)?,
                *nth(CacheResult::ALL, config >> 16 & 0xff)?,
            )
            .into(),
            RAW => RawEvent::new(config)
                .with_extra([config1, config2, config3])
                .into(),
            BREAKPOINT => Event::Breakpoint(Breakpoint {
                address: config1,
                len: u8::try_from(config2).ok()?,
                access: match self.breakpoint_type() {
                    1 => BreakpointAccess::Read,
                    2 => BreakpointAccess::Write,
                    3 => BreakpointAccess::ReadWrite,
                    4 => BreakpointAccess::Execute,
                    _ => return None,
                },
            }),
            _ => return None,
        };
        let mut levels = Filter::empty();
        levels.set(Filter::USER, !self.excludes_user());
        levels.set(Filter::KERNEL, !self.excludes_kernel());
        let spec = EventSpec::new(event);
        // Without the hypervisor alone is what recording without a modifier is.
        let all = levels == Filter::USER | Filter::KERNEL || levels.is_empty();
        let filter = if all {
            spec.filter
        } else {
            spec.filter.with_levels(levels)
        };
        let mut name = spec.with_filter(filter).to_string();
        let more = self.precision_and_world();
        if !more.is_empty() && all {
            name.push(':');
        }
        name.push_str(&more);
        Some(name)
    }

    /// Returns the letters of the precision, and of the world as perf writes them (`evsel__add_modifiers`,
    /// `tools/perf/util/evsel.c`): with a precision an event that leaves out guests has an `H`, as events without one do by default.
    fn precision_and_world(&self) -> String {
        let precision = usize::from(self.precise_ip());
        let mut letters = "ppp"[..precision].to_owned();
        match (self.excludes_host(), self.excludes_guest()) {
            (false, true) if precision > 0 => letters.push('H'),
            (true, false) => letters.push('G'),
            _ => {}
        }
        letters
    }
}

fn nth<T>(all: &[T], number: u64) -> Option<&T> {
    all.get(usize::try_from(number).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(type_: u32, config: u64, flags: u32, others: [u64; 2], bp_type: u32) -> Option<String> {
        let mut attr = [0; 128];
        attr[..4].copy_from_slice(&type_.to_ne_bytes());
        attr[4..8].copy_from_slice(&128u32.to_ne_bytes());
        attr[8..16].copy_from_slice(&config.to_ne_bytes());
        let flags = match cfg!(target_endian = "big") {
            true => u64::from(flags).reverse_bits(),
            false => flags.into(),
        };
        attr[40..48].copy_from_slice(&flags.to_ne_bytes());
        attr[52..56].copy_from_slice(&bp_type.to_ne_bytes());
        attr[56..64].copy_from_slice(&others[0].to_ne_bytes());
        attr[64..72].copy_from_slice(&others[1].to_ne_bytes());
        EventAttr::from_bytes(&attr)
            .expect("a good attr")
            .event_name()
    }

    #[test]
    fn the_kernels_numbers_have_names() {
        let plain = |type_, config| name(type_, config, 0, [0; 2], 0);
        for (type_, config, expected) in [
            (0, 0, Some("cycles")),
            (0, 10 << 32 | 1, Some("instructions")),
            (0, 99, None),
            (1, 2, Some("page-faults")),
            (1, 1 << 32, None),
            (2, 77, None),
            (3, 0x1_0002, Some("LLC-load-misses")),
            (3, 0, Some("L1-dcache-loads")),
            (3, 0x100, Some("L1-dcache-stores")),
            (3, 0x1_0203, Some("dTLB-prefetch-misses")),
            (3, 0x1_0009, None),
            (3, 0x300, None),
            (3, 0x2_0000, None),
            (3, 0x100_0000, None),
            (4, 0x1c0, Some("r01c0")),
            (11, 0, None),
        ] {
            assert_eq!(
                plain(type_, config).as_deref(),
                expected,
                "{type_} {config:#x}"
            );
        }
        let breakpoint = |access| name(5, 0, 0, [0x1000, 4], access);
        for (access, name) in [(1, "r"), (2, "w"), (3, "rw"), (4, "x")] {
            let name = format!("mem:0x1000/4:{name}");
            assert_eq!(breakpoint(access), Some(name));
        }
        assert_eq!(breakpoint(0), None);
        assert_eq!(breakpoint(9), None);
        assert_eq!(name(5, 0, 0, [0x1000, 300], 2), None);
    }

    #[test]
    fn names_have_the_levels() {
        const USER: u32 = 1 << 4;
        const KERNEL: u32 = 1 << 5;
        const HYPERVISOR: u32 = 1 << 6;
        for (excluded, expected) in [
            (KERNEL | HYPERVISOR, "cycles:u"),
            (KERNEL, "cycles:u"),
            (USER, "cycles:k"),
            (HYPERVISOR, "cycles"),
        ] {
            let name = name(0, 0, excluded, [0; 2], 0);
            assert_eq!(name.as_deref(), Some(expected), "{excluded:#x}");
        }
    }

    #[test]
    #[cfg(target_endian = "little")]
    fn names_have_the_precision_and_the_world() {
        const KERNEL: u32 = 1 << 5;
        const HOST: u32 = 1 << 19;
        const GUEST: u32 = 1 << 20;
        let precise = |precision: u32| precision << 15;
        for (flags, expected) in [
            (precise(2) | GUEST, "cycles:ppH"),
            (precise(1), "cycles:p"),
            (precise(3) | KERNEL, "cycles:uppp"),
            (KERNEL | GUEST, "cycles:u"),
            (HOST, "cycles:G"),
            (GUEST, "cycles"),
        ] {
            let name = name(0, 0, flags, [0; 2], 0);
            assert_eq!(name.as_deref(), Some(expected), "{flags:#x}");
        }
    }
}
