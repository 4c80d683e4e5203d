//! A group read of four counters beside a bare loop of four reads: on registers that are files in
//! memory, and on `/dev/cpu` where it can be used. And opening on 256 CPUs beside opening on one.

use std::fs::{self, File};
use std::hint::black_box;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use criterion::{Criterion, criterion_group, criterion_main};
use quipu_hal::{
    Backend, CpuModel, Encoding, Event, EventInfo, EventMap, Filter, Group, GroupSpec,
    MonotonicClock, ResolvedEvent, Result, Rotation, Scheduling, SlotSet, Target, VirtualPmu,
    X86Select,
};
use quipu_msr::sim::{Generation, SimulatedMsrs};
use quipu_msr::{LinuxMsr, MsrBus, MsrPmu, Options};

/// Where AMD's first counter is.
const COUNTER: u32 = 0xc001_0004;

/// Every event is cycles.
struct Cycles(CpuModel);

impl EventMap for Cycles {
    fn cpu(&self) -> &CpuModel {
        &self.0
    }

    fn resolve(&self, _event: &Event, _filter: Filter) -> Result<ResolvedEvent> {
        let select = X86Select::new(0x76, 0).with_flags(X86Select::USER | X86Select::KERNEL);
        Ok(ResolvedEvent {
            encoding: Encoding::X86(select),
            slots: SlotSet::ANY_GENERAL,
            info: EventInfo::counter("cycles"),
        })
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
        if self.open.load(Ordering::Relaxed) {
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

fn backend<B: MsrBus>(bus: B, model: CpuModel) -> VirtualPmu<MsrPmu<B>, MonotonicClock> {
    let pmu = MsrPmu::new(bus, &model, Options::default()).expect("working counters");
    let scheduling = Scheduling {
        rotation: Rotation::Manual,
        ..Scheduling::default()
    };
    let map = Arc::new(Cycles(model));
    VirtualPmu::with_scheduling(pmu, MonotonicClock::new(), map, scheduling).expect("a proper PMU")
}

fn bare(c: &mut Criterion, name: &str, file: &File) {
    c.bench_function(name, |b| {
        let mut values = [0; 4];
        b.iter(|| {
            for (n, value) in values.iter_mut().enumerate() {
                let mut bytes = [0; 8];
                let at = u64::from(COUNTER) + n as u64;
                file.read_exact_at(&mut bytes, at).expect("a register");
                *value = u64::from_le_bytes(bytes);
            }
            black_box(&values);
        });
    });
}

fn group(c: &mut Criterion, name: &str, group: &mut impl Group) {
    let mut out = group.read_buf();
    c.bench_function(name, |b| {
        b.iter(|| {
            group.read(&mut out).expect("a reading");
            black_box(&out);
        });
    });
}

fn reading(c: &mut Criterion) {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    let directory = directory.expect("a directory");
    fs::create_dir(directory.path().join("0")).expect("a directory");
    let file = File::create_new(directory.path().join("0/msr")).expect("a file");
    // All but its length is a hole.
    file.set_len(u64::from(COUNTER) + 0x100).expect("room");
    let registers = SimulatedMsrs::new(Generation::AmdK7, 1);
    let model = registers.model();
    let open = Arc::new(AtomicBool::new(false));
    let bus = Files {
        registers,
        files: LinuxMsr::open_in(directory.path()).expect("the file"),
        open: Arc::clone(&open),
    };
    let backend = backend(bus, model);
    let mut opened = backend.open(&four(), &Target::Cpu(0)).expect("a group");
    open.store(true, Ordering::Relaxed);
    let file = File::open(directory.path().join("0/msr")).expect("the file");
    bare(c, "files: bare reads of 4", &file);
    group(c, "files: group of 4", &mut opened);
    open.store(false, Ordering::Relaxed);
}

fn device(c: &mut Criterion) {
    let amd = Generation::Amd10h.model();
    let pmu = LinuxMsr::open().and_then(|bus| MsrPmu::new(bus, &amd, Options::default()));
    let opened = pmu.and_then(|pmu| {
        let map = Arc::new(Cycles(amd));
        let backend = VirtualPmu::new(pmu, MonotonicClock::new(), map)?;
        backend.open(&four(), &Target::Cpu(0))
    });
    match (opened, File::open(Path::new("/dev/cpu/0/msr"))) {
        (Ok(mut opened), Ok(file)) => {
            bare(c, "/dev/cpu: bare reads of 4", &file);
            group(c, "/dev/cpu: group of 4", &mut opened);
        }
        (Err(why), _) => println!("SKIP /dev/cpu: {why}"),
        (_, Err(why)) => println!("SKIP /dev/cpu: {why}"),
    }
}

fn opening(c: &mut Criterion) {
    for cpus in [1, 256] {
        let bus = SimulatedMsrs::new(Generation::AmdPerfMonV2 { counters: 6 }, cpus);
        let model = bus.model();
        let backend = backend(bus, model);
        c.bench_function(&format!("open and close on {cpus} simulated CPUs"), |b| {
            b.iter(|| backend.open(&four(), &Target::AllCpus).expect("a group"));
        });
    }
}

criterion_group!(benches, reading, device, opening);
criterion_main!(benches);
