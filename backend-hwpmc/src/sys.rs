//! FreeBSD's calls: the module's system call, `sysctl kern.proc`, kqueue(2) and clocks.

mod forks;
mod memory;
mod module;
mod process;
mod wire;

pub use self::memory::{KernelFile, MappedFile, kernel_files, kernel_symbol, mapped_files};
pub use self::process::{command_name, has_ended};

use std::os::fd::{AsRawFd, BorrowedFd};
use std::thread;
use std::time::Duration;

use nix::errno::Errno;
use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};

use quipu_hal::{Error, ErrorKind};

use self::wire::{
    ANY_CPU, Allocate, Attach, CALL_CHAIN, ConfigureLog, CounterInfo, CounterList, CpuInfo,
    DESCENDANTS, DriverStatistics, DynamicEvents, EVENT_IN_WORDS, FREE, FlushLog, MOST_COUNTERS,
    ModuleVersion, NEW_VALUE, OF_PROCESSES, OLD_VALUE, PROCESS_COUNTING, PROCESS_SAMPLING,
    ReadWrite, Release, SYSTEM_COUNTING, SYSTEM_SAMPLING, Start, Stop, WriteLog,
};
use crate::abi::Class;
use crate::backend::os_error;
use crate::driver::{ClassOfCounters, Driver, Forks, Held, Machine, PmcId, Request, Row, Task};

/// hwpmc(4) of this machine.
#[derive(Debug)]
pub struct Hwpmc {
    call: module::Call,
    version: u32,
}

impl Hwpmc {
    /// Finds the module.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) if it is not loaded.
    pub fn open() -> quipu_hal::Result<Self> {
        let find = || {
            let call = module::Call::find()?;
            let mut version = ModuleVersion::default();
            call.make(&mut version)?;
            let ModuleVersion(version) = version;
            Ok(Self { call, version })
        };
        find().map_err(|errno: Errno| match errno {
            Errno::ENOENT => Error::new(ErrorKind::NoSuchDevice, "use hwpmc(4)")
                .with_reason("the module hwpmc is not loaded")
                .with_hint("as root: kldload hwpmc"),
            errno => os_error("use hwpmc(4)", errno),
        })
    }

    fn cpu_info(&self) -> Result<CpuInfo, Errno> {
        let mut info = CpuInfo {
            cpu_type: 0,
            cpus: 0,
            counters: 0,
            classes: 0,
            class: Default::default(),
        };
        self.call.make(&mut info)?;
        Ok(info)
    }
}

impl Driver for Hwpmc {
    fn version(&self) -> Result<u32, Errno> {
        Ok(self.version)
    }

    fn machine(&self) -> Result<Machine, Errno> {
        let info = self.cpu_info()?;
        let known = info.class.iter().take(info.classes as usize);
        Ok(Machine {
            cpu_type: info.cpu_type,
            cpus: info.cpus,
            classes: known
                .map(|class| ClassOfCounters {
                    class: Class(class.class),
                    counters: class.counters,
                    width: class.width,
                })
                .collect(),
            has_amd_extended_counters: has_amd_extended_counters(),
        })
    }

    fn rows(&self, cpu: u32) -> Result<Vec<Row>, Errno> {
        let counters = self.cpu_info()?.counters;
        if counters > MOST_COUNTERS {
            return Err(Errno::EOVERFLOW);
        }
        let mut list = CounterList {
            cpu,
            counters: [CounterInfo::EMPTY; MOST_COUNTERS as usize],
        };
        self.call.make(&mut list)?;
        let listed = list.counters.iter().take(counters as usize);
        Ok(listed
            .map(|counter| Row {
                class: Class(counter.class),
                held: match counter.disposition {
                    FREE => Held::Free,
                    OF_PROCESSES => Held::ForProcesses,
                    _ => Held::ForCpus {
                        owner: (counter.owner >= 0).then_some(counter.owner),
                    },
                },
            })
            .collect())
    }

    fn software_events(&self) -> Result<Vec<(String, u32)>, Errno> {
        let mut list = Box::new(DynamicEvents {
            class: Class::SOFTWARE.0,
            ..DynamicEvents::EMPTY
        });
        self.call.make(&mut *list)?;
        let listed = list.events.iter().take(list.count as usize);
        Ok(listed
            .map(|event| {
                let name = event.name.split(|byte| *byte == 0).next();
                let name = String::from_utf8_lossy(name.unwrap_or_default()).into_owned();
                (name, event.number)
            })
            .collect())
    }

    fn allocate(&self, request: &Request) -> Result<PmcId, Errno> {
        let mut flags = 0;
        if request.descendants {
            flags |= DESCENDANTS;
        }
        if self.version >> 24 >= 10 {
            flags |= EVENT_IN_WORDS;
        }
        if request.sampling.is_some_and(|how| how.call_chains) {
            flags |= CALL_CHAIN;
        }
        let mut allocate = Allocate {
            capabilities: request.capabilities,
            cpu: request.cpu.unwrap_or(ANY_CPU),
            class: request.class.0,
            flags,
            mode: match (request.cpu, request.sampling) {
                (Some(_), None) => SYSTEM_COUNTING,
                (None, None) => PROCESS_COUNTING,
                (Some(_), Some(_)) => SYSTEM_SAMPLING,
                (None, Some(_)) => PROCESS_SAMPLING,
            },
            count: request.sampling.map_or(0, |how| how.period),
            ..Allocate::default()
        };
        match request.class {
            Class::SOFTWARE => allocate.event = request.select,
            _ => allocate.words[0] = request.select.into(),
        }
        self.call.make(&mut allocate)?;
        Ok(PmcId(allocate.id))
    }

    fn attach(&self, id: PmcId, pid: i32) -> Result<(), Errno> {
        let mut attach = Attach { id: id.0, pid };
        self.call.make(&mut attach)
    }

    fn set(&self, id: PmcId, value: u64) -> Result<(), Errno> {
        self.call.make(&mut ReadWrite {
            flags: NEW_VALUE,
            id: id.0,
            value,
        })
    }

    fn start(&self, id: PmcId) -> Result<(), Errno> {
        self.call.make(&mut Start(id.0))
    }

    fn read(&self, id: PmcId) -> Result<u64, Errno> {
        let mut read = ReadWrite {
            flags: OLD_VALUE,
            id: id.0,
            value: 0,
        };
        self.call.make(&mut read)?;
        Ok(read.value)
    }

    fn switch(&self) -> Result<(), Errno> {
        // A thread that is preempted may be chosen again, without a switch; one that sleeps is not.
        let sleeps = || getrusage(UsageWho::RUSAGE_THREAD).map(|u| u.voluntary_context_switches());
        let before = sleeps()?;
        while sleeps()? == before {
            thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    fn stop(&self, id: PmcId) -> Result<(), Errno> {
        self.call.make(&mut Stop(id.0))
    }

    fn open_log(&self, to: BorrowedFd<'_>) -> Result<(), Errno> {
        self.call.make(&mut ConfigureLog {
            flags: 0,
            descriptor: to.as_raw_fd(),
        })
    }

    fn close_log(&self) -> Result<(), Errno> {
        self.call.make(&mut ConfigureLog {
            flags: 0,
            descriptor: -1,
        })
    }

    fn flush_log(&self) -> Result<(), Errno> {
        self.call.make(&mut FlushLog::default())
    }

    fn mark_log(&self, mark: u32) -> Result<(), Errno> {
        self.call.make(&mut WriteLog(mark))
    }

    fn lost(&self) -> Result<u32, Errno> {
        let mut statistics = DriverStatistics::default();
        self.call.make(&mut statistics)?;
        Ok(statistics.no_room.wrapping_add(statistics.no_buffer))
    }

    fn release(&self, id: PmcId) -> Result<(), Errno> {
        self.call.make(&mut Release(id.0))
    }

    fn process(&self, pid: i32) -> Result<Task, Errno> {
        process::task(pid)
    }

    fn threads(&self, pid: i32, each: &mut dyn FnMut(i32, &Task)) -> Result<(), Errno> {
        process::threads(pid, each)
    }

    fn own_thread(&self) -> i32 {
        process::own_thread()
    }

    fn watch_forks(&self, pid: i32) -> Result<Box<dyn Forks>, Errno> {
        Ok(Box::new(forks::Watch::begin(pid)?))
    }

    fn current_cpu(&self) -> Result<u32, Errno> {
        let cpu = nix::sched::sched_getcpu()?;
        u32::try_from(cpu).map_err(|_| Errno::EINVAL)
    }

    fn own_pid(&self) -> i32 {
        std::process::id().cast_signed()
    }

    fn own_cpu_time(&self) -> Result<u64, Errno> {
        nanoseconds(ClockId::CLOCK_PROCESS_CPUTIME_ID)
    }

    fn wall_time(&self) -> Result<u64, Errno> {
        nanoseconds(ClockId::CLOCK_MONOTONIC)
    }
}

fn nanoseconds(clock: ClockId) -> Result<u64, Errno> {
    let time = Duration::from(clock_gettime(clock)?);
    u64::try_from(time.as_nanos()).map_err(|_| Errno::EOVERFLOW)
}

/// Returns true if CPUID reports `PerfCtrExtCore` (leaf 0x80000001, ECX bit 23).
#[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
fn has_amd_extended_counters() -> bool {
    let extended = raw_cpuid::CpuId::new().get_extended_processor_and_feature_identifiers();
    extended.is_some_and(|features| features.has_perf_cntr_extensions())
}

#[cfg(not(any(target_arch = "x86", target_arch = "x86_64")))]
fn has_amd_extended_counters() -> bool {
    false
}
