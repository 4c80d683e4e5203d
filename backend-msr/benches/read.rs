//! A group read of four counters beside a bare loop of four reads: on registers that are files in
//! memory, and on the registers of this machine where they can be used. And opening on 256 CPUs beside opening on one.

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use quipu_hal::{
    CpuModel, Encoding, Event, EventInfo, EventMap, Filter, Group, GroupSpec, ResolvedEvent,
    Result, SlotSet, Target, X86Select,
};
use quipu_msr::sim::{Generation, SimulatedMsrs};
use quipu_msr::{LinuxMsr, MsrBus, MsrPmu, Options, SystemMsr};
use quipu_pmu::{MonotonicClock, Rotation, Scheduling, VirtualPmu};

/// The address of AMD's first counter.
const COUNTER: u32 = 0xc001_0004;

/// Every event is cycles.
struct Cycles(CpuModel);

impl EventMap for Cycles {
    fn cpu(&self) -> &CpuModel {
        &self.0
    }

    fn resolve(&self, _event: &Event, _filter: Filter) -> Result<ResolvedEvent> {
        let select = X86Select::new(0x76, 0).with_flags(X86Select::USER | X86Select::KERNEL);
        Ok(ResolvedEvent::new(
            Encoding::X86(select),
            SlotSet::ANY_GENERAL,
            EventInfo::counter("cycles"),
        ))
    }
}

/// Simulated registers to open a group on, and real files to read it from then.
struct Files {
    registers: SimulatedMsrs,
    files: LinuxMsr,
    open: Arc<AtomicBool>,
}

impl MsrBus for Files {
    fn cpus(&self) -> &[u32] {
        self.files.cpus()
    }

    fn current_cpu(&self) -> Result<u32> {
        Ok(0)
    }

    fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        if self.open.load(Ordering::Relaxed) && address >= COUNTER {
            self.files.read(cpu, address)
        } else {
            self.registers.read(cpu, address)
        }
    }

    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        self.registers.write(cpu, address, value)
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
        self.registers.cpuid(leaf, subleaf)
    }

    fn exercise(&self, cpu: u32) -> Result<()> {
        self.registers.exercise(cpu)
    }
}

fn four() -> GroupSpec {
    GroupSpec::new((0..4).map(|_| Event::Named("cycles".into())))
}

fn backend<B: MsrBus>(bus: B, model: CpuModel) -> VirtualPmu<MsrPmu<B>> {
    let pmu = MsrPmu::new(bus, &model, Options::default()).expect("working counters");
    let scheduling = Scheduling {
        rotation: Rotation::Manual,
        ..Scheduling::default()
    };
    let map = Arc::new(Cycles(model));
    VirtualPmu::with_scheduling(pmu, MonotonicClock::new(), map, scheduling).expect("a proper PMU")
}

/// A bare loop of reads.
fn bare(read: impl Fn(u32) -> u64) {
    let values: [u64; 4] = std::array::from_fn(|n| read(COUNTER + n as u32));
    black_box(&values);
}

/// A register that is eight bytes of a file.
fn in_file(file: &File, address: u32) -> u64 {
    let mut bytes = [0; 8];
    let read = file.read_exact_at(&mut bytes, u64::from(address));
    read.expect("a register");
    u64::from_le_bytes(bytes)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_unstable_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The median nanoseconds of each of two works, timed in turns so that both see the same machine.
fn in_turns(works: [&mut dyn FnMut(); 2], batches: usize, batch: u32) -> [f64; 2] {
    let mut times = [const { Vec::new() }; 2];
    let [first, second] = works;
    for _ in 0..batches {
        for (work, times) in [&mut *first, &mut *second].into_iter().zip(&mut times) {
            let start = Instant::now();
            (0..batch).for_each(|_| work());
            times.push(start.elapsed().as_nanos() as f64 / f64::from(batch));
        }
    }
    times.map(|mut times| median(&mut times))
}

/// One line: both, their ratio, and whether it is as small as it has to be.
fn row(what: &str, [one, other]: [f64; 2], most: f64) {
    let share = other / one;
    let verdict = if share <= most { "met" } else { "MISSED" };
    println!("{what}: {one:.1} ns, {other:.1} ns, {share:.3} x  (at most {most}: {verdict})");
}

fn reads(what: &str, read: impl Fn(u32) -> u64, group: &mut impl Group, most: f64) {
    let mut out = group.read_buf();
    let mut read_group = || {
        group.read(&mut out).expect("a reading");
        black_box(&out);
    };
    let times = in_turns([&mut || bare(&read), &mut read_group], 2_000, 100);
    row(&format!("{what}: bare reads of 4, group of 4"), times, most);
}

/// On registers that are files in memory.
fn files() {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let directory = directory.expect("a directory");
    fs::create_dir(directory.path().join("0")).expect("a directory");
    let file = File::create_new(directory.path().join("0/msr")).expect("a file");
    // All but the counters is a hole.
    file.set_len(u64::from(COUNTER) + 0x100).expect("room");
    // The counters, each above the value from which it counts.
    file.write_all_at(&[0x60; 16], u64::from(COUNTER))
        .expect("room");
    let registers = SimulatedMsrs::new(Generation::AmdK7, 1);
    let model = registers.model();
    let open = Arc::new(AtomicBool::new(false));
    let bus = Files {
        registers,
        files: LinuxMsr::open_in(directory.path()).expect("the file"),
        open: Arc::clone(&open),
    };
    let backend = backend(bus, model);
    let mut opened = backend
        .open_group(&four(), &Target::Cpu(0))
        .expect("a group");
    open.store(true, Ordering::Relaxed);
    let file = File::open(directory.path().join("0/msr")).expect("the file");
    reads(
        "files in memory",
        |at| in_file(&file, at),
        &mut opened,
        1.05,
    );
    open.store(false, Ordering::Relaxed);
}

/// On the registers of this machine, where they count: read all the time, one read in 100 microseconds is followed
/// by a check of five more registers.
fn device() {
    let amd = Generation::Amd10h.model();
    let backend = SystemMsr::open().and_then(|bus| {
        let pmu = MsrPmu::new(bus, &amd, Options::default())?;
        VirtualPmu::new(pmu, MonotonicClock::new(), Arc::new(Cycles(amd)))
    });
    let opened = backend.and_then(|backend| {
        let group = backend.open_group(&four(), &Target::Cpu(0))?;
        Ok((backend, group))
    });
    match opened {
        Ok((backend, mut group)) => {
            let bus = backend.pmu().bus();
            let read = |at| bus.read(0, at).expect("a register");
            reads("registers", read, &mut group, 1.25);
        }
        Err(why) => println!("SKIP registers: {why}"),
    }
}

/// Opening on many CPUs may take four times as long for each as on one.
fn opening() {
    const MANY: u32 = 256;
    let machine = |cpus| {
        let bus = SimulatedMsrs::new(Generation::AmdPerfMonV2 { counters: 6 }, cpus);
        let model = bus.model();
        backend(bus, model)
    };
    let (one, many) = (machine(1), machine(MANY));
    let open = |backend: &VirtualPmu<_>| {
        drop(
            backend
                .open_group(&four(), &Target::AllCpus)
                .expect("a group"),
        );
    };
    let [one, many] = in_turns([&mut || open(&one), &mut || open(&many)], 200, 5);
    let each = many / f64::from(MANY);
    row("open and close: on 1 CPU, on each of 256", [one, each], 4.0);
}

fn main() {
    files();
    device();
    opening();
}
