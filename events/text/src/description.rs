//! Descriptions of the generalized events, in a few words each.

use quipu_hal::{Cache, CacheEvent, CacheResult, Event, Hardware, Software};

/// Describes a generalized event in a few words; `None` for other events, whose meaning a CPU,
/// an operating system or a program gives them.
///
/// ```
/// use quipu_hal::{Event, Software};
/// use quipu_text::describe;
///
/// let event = Event::from(Software::PageFaults);
/// assert_eq!(describe(&event).as_deref(), Some("page faults, minor and major"));
/// assert_eq!(describe(&Event::Named("X87_OPS".into())), None);
/// ```
#[must_use]
pub fn describe(event: &Event) -> Option<String> {
    match event {
        Event::Hardware(event) => hardware(*event).map(str::to_owned),
        Event::Software(event) => software(*event).map(str::to_owned),
        Event::Cache(event) => cache(*event),
        _ => None,
    }
}

fn hardware(event: Hardware) -> Option<&'static str> {
    Some(match event {
        Hardware::Cycles => "CPU cycles, at the frequency the CPU runs at",
        Hardware::Instructions => "instructions retired",
        Hardware::CacheReferences => "accesses to the last level cache, usually",
        Hardware::CacheMisses => "misses of the last level cache, usually",
        Hardware::Branches => "branch instructions retired",
        Hardware::BranchMisses => "branches predicted wrongly",
        Hardware::BusCycles => "cycles of the bus",
        Hardware::StalledCyclesFrontend => "cycles with nothing to issue",
        Hardware::StalledCyclesBackend => "cycles in which nothing retired",
        Hardware::RefCycles => "cycles at a frequency that does not change",
        _ => return None,
    })
}

fn software(event: Software) -> Option<&'static str> {
    Some(match event {
        Software::CpuClock => "time on the CPU, by its timer",
        Software::TaskClock => "time the task ran",
        Software::PageFaults => "page faults, minor and major",
        Software::ContextSwitches => "switches from one task to another",
        Software::CpuMigrations => "moves of the task to another CPU",
        Software::MinorFaults => "page faults that needed no input or output",
        Software::MajorFaults => "page faults that needed input or output",
        Software::AlignmentFaults => "unaligned accesses the kernel repaired; none on x86",
        Software::EmulationFaults => "instructions the kernel emulated",
        Software::Dummy => "counts nothing",
        Software::BpfOutput => "counts nothing; carries the output of BPF programs",
        Software::CgroupSwitches => "switches to a task of another control group",
        _ => return None,
    })
}

fn cache(event: CacheEvent) -> Option<String> {
    let cache = match event.cache {
        Cache::L1d => "level 1 data cache",
        Cache::L1i => "level 1 instruction cache",
        Cache::Ll => "last level cache",
        Cache::Dtlb => "data TLB",
        Cache::Itlb => "instruction TLB",
        Cache::Bpu => "branch prediction unit",
        Cache::Node => "local memory node",
        _ => return None,
    };
    let result = match event.result {
        CacheResult::Access => "",
        CacheResult::Miss => " that miss",
    };
    Some(format!("{cache}: {}{result}", event.op.plural()))
}
