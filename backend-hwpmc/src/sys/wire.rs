//! The operations and structures of hwpmc(4) (`sys/pmc.h`, `sys/module.h`).

use std::ffi::{c_int, c_ulong};

/// An operation (`enum pmc_ops`): the structure that it reads and writes, of integers and as large as the kernel has it. The
/// numbers are the same in FreeBSD 12 to 15.
pub(super) trait Operation {
    const NUMBER: c_int;
}

macro_rules! operations {
    ($($structure:ty: $number:literal),* $(,)?) => {$(
        impl Operation for $structure {
            const NUMBER: c_int = $number;
        }
    )*};
}

operations! {
    ConfigureLog: 0,
    FlushLog: 1,
    CpuInfo: 2,
    DriverStatistics: 3,
    ModuleVersion: 4,
    CounterList: 5,
    Allocate: 7,
    Attach: 8,
    Release: 11,
    ReadWrite: 12,
    Start: 14,
    Stop: 15,
    WriteLog: 16,
    DynamicEvents: 18,
}

/// The version of the module.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ModuleVersion(pub(super) u32);

/// The id of a counter that is given back.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Release(pub(super) u32);

/// The id of a counter that is started.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Start(pub(super) u32);

/// The id of a counter that is stopped.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Stop(pub(super) u32);

/// `struct pmc_op_configurelog`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ConfigureLog {
    pub(super) flags: c_int,
    /// The descriptor, or -1.
    pub(super) descriptor: c_int,
}

/// The log is written; there is nothing to say beside.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct FlushLog(u32);

/// `struct pmc_op_writelog`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct WriteLog(pub(super) u32);

/// `struct pmc_op_getdriverstats`, with room for more than any version has.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct DriverStatistics {
    pub(super) interrupts: [u32; 2],
    /// Interrupts that found no room for their sample.
    pub(super) no_room: u32,
    pub(super) calls: [u32; 3],
    /// Records that found no buffer of the log.
    pub(super) no_buffer: u32,
    pub(super) others: [u32; 9],
}

/// Modes of counting (`enum pmc_mode`): a whole CPU, and processes.
pub(super) const SYSTEM_COUNTING: u32 = 1;
pub(super) const PROCESS_COUNTING: u32 = 3;
/// Those of sampling.
pub(super) const SYSTEM_SAMPLING: u32 = 0;
pub(super) const PROCESS_SAMPLING: u32 = 2;

/// `PMC_F_DESCENDANTS`: children of the process are counted too.
pub(super) const DESCENDANTS: u32 = 1 << 1;
/// `PMC_F_CALLCHAIN`: samples have call chains.
pub(super) const CALL_CHAIN: u32 = 1 << 7;
/// `PMC_F_EV_PMU` of version 10: the event is in the machine-dependent words. Without it AMD's are refused.
pub(super) const EVENT_IN_WORDS: u32 = 0x200;

/// `PMC_F_NEWVALUE`: a write.
pub(super) const NEW_VALUE: u32 = 0x10;
/// `PMC_F_OLDVALUE`: a read.
pub(super) const OLD_VALUE: u32 = 0x20;

/// `PMC_CPU_ANY` of counters that are of no CPU.
pub(super) const ANY_CPU: u32 = u32::MAX;

/// `struct pmc_op_pmcallocate`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Allocate {
    pub(super) capabilities: u32,
    pub(super) cpu: u32,
    pub(super) class: u32,
    pub(super) event: u32,
    pub(super) flags: u32,
    pub(super) mode: u32,
    pub(super) id: u32,
    pub(super) count: u64,
    /// The machine-dependent words: the event select word is the first.
    pub(super) words: [u64; 4],
}

/// `struct pmc_op_pmcattach`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Attach {
    pub(super) id: u32,
    pub(super) pid: i32,
}

/// `struct pmc_op_pmcrw`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadWrite {
    pub(super) flags: u32,
    pub(super) id: u32,
    pub(super) value: u64,
}

/// `struct pmc_classinfo`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ClassInfo {
    pub(super) class: u32,
    pub(super) capabilities: u32,
    pub(super) width: u32,
    pub(super) counters: u32,
}

/// `struct pmc_op_getcpuinfo`, with room for more classes than any version has.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct CpuInfo {
    pub(super) cpu_type: u32,
    pub(super) cpus: u32,
    pub(super) counters: u32,
    pub(super) classes: u32,
    pub(super) class: [ClassInfo; 16],
}

/// `PMC_DISP_FREE`: a counter that nobody has.
pub(super) const FREE: u32 = 1;
/// `PMC_DISP_THREAD`: a counter of processes.
pub(super) const OF_PROCESSES: u32 = 2;

/// The counters that are listed at most.
pub(super) const MOST_COUNTERS: u32 = 256;

/// `struct pmc_op_getpmcinfo`, with room for more counters than any CPU has.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct CounterList {
    pub(super) cpu: u32,
    pub(super) counters: [CounterInfo; MOST_COUNTERS as usize],
}

/// `struct pmc_info`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct CounterInfo {
    pub(super) name: [u8; NAME],
    pub(super) class: u32,
    pub(super) enabled: c_int,
    /// `PMC_DISP_*`.
    pub(super) disposition: u32,
    /// The process that counts this CPU, or -1.
    pub(super) owner: i32,
    pub(super) mode: u32,
    pub(super) event: u32,
    pub(super) flags: u32,
    pub(super) reload: u64,
}

impl CounterInfo {
    pub(super) const EMPTY: Self = Self {
        name: [0; NAME],
        class: 0,
        enabled: 0,
        disposition: FREE,
        owner: -1,
        mode: 0,
        event: 0,
        flags: 0,
        reload: 0,
    };
}

/// `PMC_NAME_MAX`.
const NAME: usize = 64;
/// `PMC_EV_DYN_COUNT`.
const MOST_EVENTS: usize = 0x1000;

/// `struct pmc_op_getdyneventinfo`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct DynamicEvents {
    pub(super) class: u32,
    pub(super) count: u32,
    pub(super) events: [DynamicEvent; MOST_EVENTS],
}

impl DynamicEvents {
    pub(super) const EMPTY: Self = Self {
        class: 0,
        count: 0,
        events: [DynamicEvent {
            name: [0; NAME],
            number: 0,
        }; MOST_EVENTS],
    };
}

/// `struct pmc_dyn_event_descr`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct DynamicEvent {
    /// Up to a NUL.
    pub(super) name: [u8; NAME],
    pub(super) number: u32,
}

/// `struct module_stat` of FreeBSD 12, which later kernels take too by its size.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ModuleStat {
    pub(super) version: i32,
    pub(super) name: [u8; 32],
    pub(super) references: i32,
    pub(super) id: i32,
    /// The number of the system call, an int at the beginning.
    pub(super) data: c_ulong,
}

const _: () = {
    use std::mem::offset_of;

    // Where a 64-bit integer is aligned to 8, as on amd64 and arm64.
    if align_of::<u64>() == 8 {
        assert!(size_of::<Allocate>() == 72 && offset_of!(Allocate, count) == 32);
        assert!(size_of::<ReadWrite>() == 16 && size_of::<Attach>() == 8);
        assert!(offset_of!(CounterList, counters) == 8 && size_of::<CounterInfo>() == 104);
        assert!(offset_of!(DynamicEvents, events) == 8 && size_of::<DynamicEvent>() == 68);
        assert!(offset_of!(CpuInfo, class) == 16 && size_of::<ClassInfo>() == 16);
        assert!(size_of::<ModuleStat>() == 56 && offset_of!(ModuleStat, data) == 48);
    }
};
