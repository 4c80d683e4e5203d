//! Drivers that are quick on their CPU only: one thread for each CPU makes all calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;
use std::time::Duration;

use quipu_hal::{
    Attributes, Count, Encoding, ErrorKind, Group, GroupSpec, Hardware, Result, Simultaneity,
    SlotSet, Target,
};
use quipu_pmu::{
    Access, MonotonicClock, Pmu, Rotation, Scheduling, SimModel, SimOperation, SimPmu, Slot,
    VirtualPmu,
};

/// The simulated PMU, with the threads that call for each CPU.
struct Local {
    sim: SimPmu,
    slots: Vec<Slot>,
    cpus: Vec<u32>,
    pinned: Arc<Mutex<HashMap<u32, ThreadId>>>,
    calls: Arc<Mutex<Vec<(u32, ThreadId)>>>,
}

impl Local {
    fn note(&self, cpu: u32) {
        let call = (cpu, std::thread::current().id());
        let mut calls = self.calls.lock().unwrap();
        if !calls.contains(&call) {
            calls.push(call);
        }
    }
}

impl Pmu for Local {
    fn name(&self) -> &'static str {
        "local"
    }

    fn slots(&self) -> &[Slot] {
        &self.slots
    }

    fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn current_cpu(&self) -> Result<u32> {
        self.sim.current_cpu()
    }

    fn access(&self) -> Access {
        Access::AnyThread
    }

    fn pin(&self, cpu: u32) -> bool {
        let me = std::thread::current().id();
        let mut pinned = self.pinned.lock().unwrap();
        assert_eq!(pinned.insert(cpu, me), None, "CPU {cpu} has one thread");
        true
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Sequential
    }

    fn prepare(&self, encoding: &Encoding) -> Result<SlotSet> {
        self.sim.prepare(encoding)
    }

    fn acquire(&self, cpu: u32) -> Result<()> {
        self.note(cpu);
        self.sim.acquire(cpu)
    }

    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()> {
        self.note(cpu);
        self.sim.program(cpu, slot, encoding)
    }

    fn clear(&self, cpu: u32, slot: usize) -> Result<()> {
        self.note(cpu);
        self.sim.clear(cpu, slot)
    }

    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        self.note(cpu);
        self.sim.start(cpu, slots, raw)
    }

    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        self.note(cpu);
        self.sim.stop(cpu, slots, raw)
    }

    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        self.note(cpu);
        self.sim.read(cpu, slots, raw)
    }

    fn release(&self, cpu: u32) -> Result<()> {
        self.note(cpu);
        self.sim.release(cpu)
    }
}

struct Machine {
    sim: SimPmu,
    backend: VirtualPmu<Local>,
    pinned: Arc<Mutex<HashMap<u32, ThreadId>>>,
    calls: Arc<Mutex<Vec<(u32, ThreadId)>>>,
}

fn machine() -> Machine {
    let clock = MonotonicClock::new();
    let model = SimModel::default();
    let (slots, cpus) = (model.slots.clone(), model.cpus.clone());
    let sim = SimPmu::with_model(model, clock.clone());
    let (pinned, calls) = (Arc::default(), Arc::default());
    let local = Local {
        sim: sim.clone(),
        slots,
        cpus,
        pinned: Arc::clone(&pinned),
        calls: Arc::clone(&calls),
    };
    let scheduling = Scheduling {
        interval: Duration::from_micros(200),
        rotation: Rotation::Automatic,
    };
    let map = Arc::new(sim.event_map());
    let backend = VirtualPmu::with_scheduling(local, clock, map, scheduling).unwrap();
    Machine {
        sim,
        backend,
        pinned,
        calls,
    }
}

#[test]
fn all_calls_for_a_cpu_are_made_on_its_thread() {
    let machine = machine();
    let spec = GroupSpec::new([Hardware::Cycles; 3]);
    let open = || machine.backend.open_group(&spec, &Target::AllCpus).unwrap();
    let mut groups = [open(), open()];
    let turns = || machine.sim.calls(SimOperation::Start);
    let begin = turns();
    while turns() < begin + 50 {
        for group in &mut groups {
            let mut out = group.read_buf();
            group.read(&mut out).unwrap();
        }
    }
    for group in &mut groups {
        group.reset().unwrap();
        group.disable().unwrap();
    }
    drop(groups);
    let pinned = machine.pinned.lock().unwrap().clone();
    assert_eq!(pinned.len(), 2);
    assert_ne!(pinned[&0], pinned[&1]);
    for (cpu, thread) in &*machine.calls.lock().unwrap() {
        assert_eq!(*thread, pinned[cpu], "CPU {cpu}");
    }
    for cpu in 0..2 {
        let registers = machine.sim.registers(cpu);
        assert!(registers.iter().all(|register| !register.counting));
    }
}

#[test]
fn a_reading_is_of_the_moment_it_was_asked_for() {
    let machine = machine();
    let before = machine.sim.truth(1, 0);
    let spec = GroupSpec::new([Hardware::Cycles]);
    let mut group = machine.backend.open_group(&spec, &Target::Cpu(0)).unwrap();
    let opened = machine.sim.truth(1, 0);
    let mut out = group.read_buf();
    let mut last = 0;
    for _ in 0..100 {
        let least = machine.sim.truth(1, 0) - opened;
        group.read(&mut out).unwrap();
        let most = machine.sim.truth(1, 0) - before;
        let value = out[0][0].value;
        assert!((least..=most).contains(&value), "{least} {value} {most}");
        assert!(value >= last);
        assert!(matches!(out[0][0].count(), Count::Exact(_)));
        last = value;
    }
    let allocated = allocation_counter::measure(|| {
        for _ in 0..100 {
            group.read(&mut out).unwrap();
        }
    });
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn errors_of_the_thread_come_to_the_caller() {
    let machine = machine();
    let stopped = Attributes::default().with_disabled(true);
    let spec = GroupSpec::new([Hardware::Cycles]).with_attributes(stopped);
    machine.sim.fail(SimOperation::Acquire, 1, 16);
    let refused = machine.backend.open_group(&spec, &Target::Cpu(0));
    assert_eq!(refused.unwrap_err().kind(), ErrorKind::Busy);
    let mut group = machine.backend.open_group(&spec, &Target::Cpu(0)).unwrap();
    machine.sim.fail(SimOperation::Start, 1, 5);
    assert_eq!(group.enable().unwrap_err().errno(), Some(5));
    group.enable().unwrap();
    machine.sim.fail(SimOperation::Read, 1, 5);
    let mut out = group.read_buf();
    assert_eq!(group.read(&mut out).unwrap_err().errno(), Some(5));
    group.read(&mut out).unwrap();
}
