//! The virtual PMU over drivers with the peculiarities of real registers.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quipu_hal::{
    Attributes, Backend, CpuModel, Encoding, Error, ErrorKind, Event, EventInfo, EventMap,
    EventSpec, ExtraRegister, Features, Filter, Group, GroupSpec, Hardware, MaxRate, ResolvedEvent,
    Result, Simultaneity, SlotSet, Target, TargetKinds, X86Select,
};
use quipu_pmu::{
    Access, InUse, ManualClock, Pmu, SimModel, SimPmu, SimRegister, Slot, TableMap, VirtualPmu,
};

/// A driver that passes everything on to the simulated PMU, with its own quirk.
struct Quirky {
    sim: SimPmu,
    quirk: Quirk,
    slots: Vec<Slot>,
    cpus: Vec<u32>,
    clock: ManualClock,
    /// The number of times it was asked to verify.
    verified: Arc<AtomicU32>,
    /// The slots that others use.
    in_use: InUse,
    /// The slots that were to be witnessed, and by which.
    witnesses: Arc<Mutex<Vec<(usize, usize)>>>,
}

#[derive(Clone, Copy, PartialEq)]
enum Quirk {
    None,
    /// Raw values are sign-extended, as writes to 0xC1 and up are on the P6.
    SignExtends,
    /// Counters cannot be cleared, as a time stamp counter cannot.
    KeepsCounting,
    /// Stopping zeroes the counter, as setting the function to 0 does through pctr(4).
    ZeroesWhenStopped,
    /// Starting fails after the first slot.
    StartsOnlyOne,
    /// Looks for changes by others only when it is asked to, once a second.
    Vigilant,
    /// Verifying takes it 200 microseconds; reads are to verify too.
    Slow,
    /// It has a witness on any slot but this.
    WitnessesBut(usize),
}

impl Quirky {
    fn new(quirk: Quirk, width: u8, clock: &ManualClock) -> Self {
        let model = SimModel {
            slots: (0..4).map(|n| Slot::general(n, width)).collect(),
            ..SimModel::default()
        };
        Self {
            slots: model.slots.clone(),
            cpus: model.cpus.clone(),
            sim: SimPmu::with_model(model, clock.clone()),
            clock: clock.clone(),
            verified: Arc::default(),
            in_use: InUse::default(),
            witnesses: Arc::default(),
            quirk,
        }
    }

    fn change(&self, slots: &[usize], raw: &mut [u64]) {
        for (&slot, raw) in slots.iter().zip(raw) {
            let slot = self.slots[slot];
            if self.quirk == Quirk::SignExtends && *raw >> (slot.width - 1) == 1 {
                *raw |= !slot.mask();
            }
        }
    }
}

/// The event of a select word is the simulated event's number.
fn simulated(encoding: &Encoding) -> Encoding {
    match encoding {
        Encoding::X86(select) => Encoding::Simulated(select.event().into()),
        other => other.clone(),
    }
}

impl Pmu for Quirky {
    fn name(&self) -> &'static str {
        "quirky"
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
        self.sim.access()
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Sequential
    }

    fn prepare(&self, encoding: &Encoding) -> Result<SlotSet> {
        self.sim.prepare(&simulated(encoding))
    }

    fn in_use(&self, _: u32) -> InUse {
        self.in_use
    }

    fn acquire(&self, cpu: u32) -> Result<()> {
        self.sim.acquire(cpu)
    }

    fn program(&self, cpu: u32, slot: usize, encoding: &Encoding) -> Result<()> {
        self.sim.program(cpu, slot, &simulated(encoding))
    }

    fn clear(&self, cpu: u32, slot: usize) -> Result<()> {
        if self.quirk == Quirk::KeepsCounting {
            return Ok(());
        }
        self.sim.clear(cpu, slot)
    }

    fn start(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        if self.quirk == Quirk::StartsOnlyOne {
            self.sim.start(cpu, &slots[..1], raw)?;
            return Err(Error::new(ErrorKind::Os, "start the second").with_errno(5));
        }
        self.sim.start(cpu, slots, raw)?;
        self.change(slots, raw);
        Ok(())
    }

    fn stop(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        self.sim.stop(cpu, slots, raw)?;
        self.change(slots, raw);
        if self.quirk == Quirk::ZeroesWhenStopped {
            for &slot in slots {
                self.sim.clear(cpu, slot)?;
            }
        }
        Ok(())
    }

    fn read(&self, cpu: u32, slots: &[usize], raw: &mut [u64]) -> Result<()> {
        let read = self.sim.read(cpu, slots, raw);
        match read {
            Err(e) if self.quirk == Quirk::Vigilant && e.kind() == ErrorKind::Interference => {}
            other => other?,
        }
        self.change(slots, raw);
        Ok(())
    }

    fn verify(&self, cpu: u32, slots: &[usize]) -> Result<()> {
        self.verified.fetch_add(1, Ordering::Relaxed);
        match self.quirk {
            Quirk::Slow => {
                self.clock.advance(Duration::from_micros(200));
                Ok(())
            }
            Quirk::Vigilant => self.sim.read(cpu, slots, &mut vec![0; slots.len()]),
            _ => Ok(()),
        }
    }

    fn verify_interval(&self) -> Option<Duration> {
        (self.quirk == Quirk::Vigilant).then_some(Duration::from_secs(1))
    }

    fn read_verify_interval(&self) -> Option<Duration> {
        (self.quirk == Quirk::Slow).then_some(Duration::from_micros(100))
    }

    fn witness(&self, _: u32, slot: usize, by: usize) -> bool {
        self.witnesses.lock().unwrap().push((slot, by));
        matches!(self.quirk, Quirk::WitnessesBut(slot) if slot != by)
    }

    fn release(&self, cpu: u32) -> Result<()> {
        self.sim.release(cpu)
    }
}

/// Opens groups of so many events, of which the first ones are disabled, and returns the witnesses that the driver was
/// asked for.
fn witnesses_of(quirk: Quirk, disabled: &[usize], enabled: &[usize]) -> Vec<(usize, usize)> {
    witnesses_beside(InUse::default(), quirk, disabled, enabled)
}

fn witnesses_beside(
    in_use: InUse,
    quirk: Quirk,
    disabled: &[usize],
    enabled: &[usize],
) -> Vec<(usize, usize)> {
    let clock = ManualClock::new();
    let pmu = Quirky {
        in_use,
        ..Quirky::new(quirk, 48, &clock)
    };
    let (asked, map) = (Arc::clone(&pmu.witnesses), pmu.sim.event_map());
    let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(map)).unwrap();
    let open = |events: &usize, disabled| {
        let attributes = Attributes::default().with_disabled(disabled);
        let spec = GroupSpec::new(vec![Hardware::Cycles; *events]).with_attributes(attributes);
        backend.open_group(&spec, &Target::Cpu(0)).unwrap()
    };
    let _disabled: Vec<_> = disabled.iter().map(|events| open(events, true)).collect();
    let _enabled: Vec<_> = enabled.iter().map(|events| open(events, false)).collect();
    for _ in 0..3 {
        clock.advance(Duration::from_millis(4));
        backend.tick().unwrap();
    }
    let asked = asked.lock().unwrap();
    asked.clone()
}

#[test]
fn slots_that_no_group_needs_are_for_witnesses() {
    let any = Quirk::WitnessesBut(usize::MAX);
    assert_eq!(witnesses_of(any, &[], &[2]), [(0, 2), (1, 3)]);
    // Where the driver has none another slot is tried.
    let but = Quirk::WitnessesBut(2);
    assert_eq!(witnesses_of(but, &[], &[2]), [(0, 2), (0, 3), (1, 2)]);
    // A disabled group keeps its slots, and groups that take turns leave none.
    assert_eq!(witnesses_of(any, &[2], &[1]), [(0, 3)]);
    assert_eq!(witnesses_of(any, &[3], &[1]), []);
    assert_eq!(witnesses_of(any, &[4], &[1]), []);
    assert_eq!(witnesses_of(any, &[], &[3, 1, 1]), [(0, 3)]);
    // The second begins where the first had its witness.
    assert_eq!(witnesses_of(any, &[], &[1, 1]), [(0, 1), (1, 2)]);
    // What others used before, or have taken since, is none.
    for in_use in [InUse::new(0b10, 0), InUse::new(0, 0b10)] {
        assert_eq!(witnesses_beside(in_use, any, &[], &[1]), [(0, 2)]);
    }
}

#[test]
fn what_a_driver_is_used_from_is_what_the_backend_offers() {
    let clock = ManualClock::new();
    let capabilities = |access| {
        let model = SimModel {
            access,
            ..SimModel::default()
        };
        let pmu = SimPmu::with_model(model, clock.clone());
        let map = Arc::new(pmu.event_map());
        let backend = VirtualPmu::new(pmu, clock.clone(), map).unwrap();
        backend.capabilities().clone()
    };
    let always =
        Features::PINNED | Features::EXCLUSIVE | Features::MULTIPLEXING | Features::HARDWARE_EVENTS;
    let one = capabilities(Access::MeasuringThread);
    assert_eq!(one.features, always);
    assert_eq!(one.targets, TargetKinds::CURRENT_CPU);
    let any = capabilities(Access::AnyThread);
    assert_eq!(any.features, always | Features::ANY_THREAD);
    let of_cpus = TargetKinds::CPU | TargetKinds::ALL_CPUS;
    assert_eq!(any.targets, TargetKinds::CURRENT_CPU | of_cpus);
}

#[test]
fn a_driver_that_wants_to_is_asked_to_verify_in_time() {
    let clock = ManualClock::new();
    let pmu = Quirky::new(Quirk::Vigilant, 48, &clock);
    let (sim, map) = (pmu.sim.clone(), pmu.sim.event_map());
    let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(map)).unwrap();
    let spec = GroupSpec::new([Hardware::Cycles]);
    let mut group = backend.open_group(&spec, &Target::Cpu(0)).unwrap();
    let mut out = group.read_buf();
    clock.advance(Duration::from_millis(500));
    sim.overwrite(0, 0, SimRegister::default());
    backend.tick().unwrap();
    group.read(&mut out).unwrap();
    clock.advance(Duration::from_millis(500));
    backend.tick().unwrap();
    let error = group.read(&mut out).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Interference);
    clock.advance(Duration::from_millis(500));
    group.read(&mut out).unwrap();
    let reading = out[0][0];
    assert_eq!(reading.time_running, 1_000_000_000);
    assert_eq!(reading.time_enabled, 1_500_000_000);
}

/// Verifying may take a sixth of the time of a program that does nothing but read.
#[test]
fn reads_verify_less_often_where_that_takes_long() {
    let clock = ManualClock::new();
    let pmu = Quirky::new(Quirk::Slow, 48, &clock);
    let (verified, map) = (Arc::clone(&pmu.verified), pmu.sim.event_map());
    let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(map)).unwrap();
    let spec = GroupSpec::new([Hardware::Cycles]);
    let mut group = backend.open_group(&spec, &Target::Cpu(0)).unwrap();
    let mut out = group.read_buf();
    for _ in 0..6_000 {
        clock.advance(Duration::from_micros(10));
        group.read(&mut out).unwrap();
    }
    // 60 ms of reading, 5 x 200 us between two of them.
    let times = verified.load(Ordering::Relaxed);
    assert!((58..=61).contains(&times), "{times}");
}

#[test]
fn no_quirk_of_raw_values_shows_in_readings() {
    for quirk in [
        Quirk::SignExtends,
        Quirk::KeepsCounting,
        Quirk::ZeroesWhenStopped,
    ] {
        let clock = ManualClock::new();
        let pmu = Quirky::new(quirk, 32, &clock);
        let (sim, map) = (pmu.sim.clone(), Arc::new(pmu.sim.event_map()));
        let backend = VirtualPmu::new(pmu, clock.clone(), map).unwrap();
        let branches = Event::Named("BRANCHES".into());
        let open = |n| {
            let spec = GroupSpec::new(std::iter::repeat_n(branches.clone(), n));
            backend.open_group(&spec, &Target::Cpu(0)).unwrap()
        };
        let (mut one, mut two) = (open(3), open(3));
        for _ in 0..40 {
            // Four fifths of a wrap each time.
            clock.advance(Duration::from_millis(3336));
            for group in [&mut one, &mut two] {
                let mut out = group.read_buf();
                group.read(&mut out).unwrap();
                let reading = out[0][1];
                let truth = sim.truth_at(3, 0, Filter::all(), reading.time_running);
                assert_eq!(reading.value, truth);
            }
            backend.tick().unwrap();
        }
    }
}

#[test]
fn what_was_started_before_an_error_is_stopped() {
    let clock = ManualClock::new();
    let pmu = Quirky::new(Quirk::StartsOnlyOne, 48, &clock);
    let (sim, map) = (pmu.sim.clone(), Arc::new(pmu.sim.event_map()));
    let backend = VirtualPmu::new(pmu, clock, map).unwrap();
    let mut spec = GroupSpec::new([Hardware::Cycles, Hardware::Instructions]);
    spec.attributes.disabled = true;
    let mut group = backend.open_group(&spec, &Target::Cpu(0)).unwrap();
    assert_eq!(group.enable().unwrap_err().errno(), Some(5));
    assert!(sim.registers(0).iter().all(|register| !register.counting));
}

/// Two events of one off-core response register, one that does not use it, one that counts whatever
/// the filter says, and one whose code the driver does not take.
struct OffCore(TableMap);

impl EventMap for OffCore {
    fn cpu(&self) -> &CpuModel {
        self.0.cpu()
    }

    fn max_rate(&self, encoding: &Encoding) -> MaxRate {
        match encoding {
            Encoding::X86(word) => MaxRate::per_cycle(word.event() as u8),
            other => MaxRate::of(other),
        }
    }

    fn resolve(&self, event: &Event, _: Filter) -> Result<ResolvedEvent> {
        let name = event.to_string();
        let code = if name == "FOREIGN" { 0xff } else { 3 };
        let mut select = X86Select::new(code, 0);
        let value = match &*name {
            "DEMAND_READS" => Some(0x1),
            "DEMAND_WRITES" => Some(0x2),
            _ => None,
        };
        let register = |value| ExtraRegister {
            address: 0x1a6,
            value,
        };
        select.extra.extend(value.map(register));
        Ok(ResolvedEvent::new(
            Encoding::X86(select),
            SlotSet::ANY_GENERAL,
            match &*name {
                "CLOCKS" => EventInfo::counter(name).honouring(Filter::empty()),
                _ => EventInfo::counter(name),
            },
        ))
    }
}

#[test]
fn events_that_disagree_on_a_shared_register_are_never_on_together() {
    let clock = ManualClock::new();
    let pmu = Quirky::new(Quirk::None, 48, &clock);
    let map = Arc::new(OffCore(TableMap::new()));
    let backend = VirtualPmu::new(pmu, clock.clone(), map).unwrap();
    let open = |names: &[&str]| {
        let events = names.iter().map(|name| Event::Named((*name).into()));
        backend.open_group(&GroupSpec::new(events), &Target::Cpu(0))
    };
    let e = open(&["OTHER", "DEMAND_READS", "DEMAND_WRITES"]).unwrap_err();
    assert_eq!((e.kind(), e.member()), (ErrorKind::TooManyEvents, Some(2)));
    assert_eq!(
        e.reason(),
        Some("DEMAND_READS and DEMAND_WRITES need different values in register 0x1a6")
    );
    let mut groups = [
        open(&["OTHER", "DEMAND_READS", "DEMAND_READS"]).unwrap(),
        open(&["DEMAND_WRITES"]).unwrap(),
    ];
    for _ in 0..10 {
        clock.advance(Duration::from_micros(1));
        backend.tick().unwrap();
    }
    for group in &mut groups {
        let mut out = group.read_buf();
        group.read(&mut out).unwrap();
        assert_eq!(out[0][0].time_running, 5_000);
    }
}

#[test]
fn what_the_map_lets_through_and_the_registers_cannot_do_is_refused() {
    let clock = ManualClock::new();
    let pmu = Quirky::new(Quirk::None, 48, &clock);
    let backend = VirtualPmu::new(pmu, clock, Arc::new(OffCore(TableMap::new()))).unwrap();
    let open = |name: &str, filter| {
        let event = EventSpec::new(Event::Named(name.into())).with_filter(filter);
        backend.open_group(&GroupSpec::single(event), &Target::Cpu(0))
    };
    open("CLOCKS", Filter::all()).unwrap();
    let e = open("CLOCKS", Filter::USER_ONLY).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnsupportedFeature);
    let reason = "its counter cannot leave out kernel mode and hypervisor mode";
    assert_eq!(e.reason(), Some(reason));
    let e = open("FOREIGN", Filter::all()).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
}

#[test]
fn the_bound_of_the_map_is_that_of_the_readings() {
    let clock = ManualClock::new();
    let pmu = Quirky::new(Quirk::None, 48, &clock);
    let backend = VirtualPmu::new(pmu, clock.clone(), Arc::new(OffCore(TableMap::new()))).unwrap();
    let group = GroupSpec::new([Event::Named("OTHER".into()), Event::Named("CLOCKS".into())]);
    let mut group = backend.open_group(&group, &Target::Cpu(0)).unwrap();
    clock.advance(Duration::from_micros(1));
    let mut out = group.read_buf();
    group.read(&mut out).unwrap();
    assert_eq!(out[0][0].max_rate, MaxRate::per_cycle(3));
    assert_eq!(out[0][1].max_rate, MaxRate::per_cycle(3));
}

#[test]
fn a_description_that_cannot_be_is_refused() {
    let refuse = |slots: Vec<Slot>, cpus: Vec<u32>| {
        let clock = ManualClock::new();
        let mut pmu = Quirky::new(Quirk::None, 48, &clock);
        (pmu.slots, pmu.cpus) = (slots, cpus);
        let made = VirtualPmu::new(pmu, clock, Arc::new(TableMap::new()));
        let e = made.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidConfiguration);
        e.reason().unwrap().to_owned()
    };
    let slot = |n| Slot::general(n, 48);
    assert_eq!(refuse(vec![], vec![0]), "it has 0 slots, not 1 to 64");
    let many = (0..65).map(slot).collect();
    assert_eq!(refuse(many, vec![0]), "it has 65 slots, not 1 to 64");
    assert_eq!(
        refuse(vec![slot(0), slot(1), slot(0)], vec![0]),
        "counter 0 is listed twice"
    );
    for width in [0, 65] {
        assert_eq!(
            refuse(vec![Slot::fixed(1, width)], vec![0]),
            format!("fixed counter 1 is {width} bits wide")
        );
    }
    assert_eq!(refuse(vec![slot(0)], vec![]), "it has no CPU");
    assert_eq!(refuse(vec![slot(0)], vec![2, 2]), "CPU 2 is listed twice");
}
