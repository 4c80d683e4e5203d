//! Calibration: a set's own overhead is found exactly where it is scripted, and measured where it is real.

use std::sync::Arc;
use std::time::Duration;

use quipu::{
    Backend, Error, ErrorKind, EventInfo, EventSet, GroupSpec, Part, ReadBuf, Reading, Result,
    Target,
};
use quipu_hal::{Capabilities, Group, Simultaneity};
use quipu_pmu::{ManualClock, SimPmu, VirtualPmu};
use quipu_scripted::{Scripted, ScriptedGroup};

/// `BRANCHES` and `BRANCH_MISSES` of the ready-made model.
const EVENTS: [u32; 2] = [3, 4];

/// A simulated PMU on which starting, stopping and reading a group make events occur themselves.
struct Costly {
    pmu: SimPmu,
    inner: VirtualPmu<SimPmu>,
}

struct CostlyGroup {
    pmu: SimPmu,
    inner: Box<dyn Group>,
    reads: u64,
}

impl CostlyGroup {
    fn spend(&self, branches: u64) {
        self.pmu.happen(EVENTS[0], 0, branches, 0);
        self.pmu.happen(EVENTS[1], 0, 0, 1);
    }
}

impl Backend for Costly {
    fn name(&self) -> &'static str {
        "costly"
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        Ok(Box::new(CostlyGroup {
            pmu: self.pmu.clone(),
            inner: self.inner.open(spec, target)?,
            reads: 0,
        }))
    }
}

impl Group for CostlyGroup {
    fn members(&self) -> &[EventInfo] {
        self.inner.members()
    }

    fn parts(&self) -> &[Part] {
        self.inner.parts()
    }

    fn simultaneity(&self) -> Simultaneity {
        self.inner.simultaneity()
    }

    /// 100 before it counts, and 30 after.
    fn enable(&mut self) -> Result<()> {
        self.spend(100);
        self.inner.enable()?;
        self.spend(30);
        Ok(())
    }

    /// 7 while it counts, and 100 after.
    fn disable(&mut self) -> Result<()> {
        self.spend(7);
        self.inner.disable()?;
        self.spend(100);
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        self.inner.reset()
    }

    /// 11 before the registers are read and 13 after, every fifth time 2 more.
    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        self.reads += 1;
        let more = if self.reads.is_multiple_of(5) { 2 } else { 0 };
        self.spend(11 + more);
        self.inner.read(out)?;
        self.spend(13);
        Ok(())
    }
}

fn costly(events: &str) -> (ManualClock, EventSet) {
    let clock = ManualClock::new();
    let pmu = SimPmu::new(clock.clone());
    let map = Arc::new(pmu.event_map());
    let inner = VirtualPmu::new(pmu.clone(), clock.clone(), map).unwrap();
    let backend = Costly { pmu, inner };
    let mut builder = EventSet::builder();
    let builder = builder
        .target(Target::Cpu(0))
        .backends([Arc::new(backend) as Arc<dyn Backend>]);
    let set = builder.events(events).unwrap().open().unwrap();
    (clock, set)
}

#[test]
fn a_scripted_overhead_is_found_exactly() {
    let (clock, mut set) = costly("{branches,branch-misses}");
    let overhead = set.calibrate().unwrap();
    let branches = overhead[0].as_ref().unwrap();
    let spread = branches.start_to_stop;
    assert_eq!((spread.lowest, spread.median, spread.highest), (37, 37, 37));
    assert!(spread.is_constant());
    let spread = branches.read_to_read;
    assert_eq!((spread.lowest, spread.median, spread.highest), (24, 24, 26));
    assert!(!spread.is_constant());
    let misses = overhead[1].as_ref().unwrap();
    assert_eq!(
        (misses.start_to_stop.median, misses.read_to_read.median),
        (2, 2)
    );

    // Nothing of it is left, and what is subtracted leaves what was done.
    let mut counts = set.counts();
    set.read(&mut counts).unwrap();
    assert_eq!(counts.get(0).unwrap().total().unwrap().exact(), Some(0));
    set.enable().unwrap();
    clock.advance(Duration::from_micros(1));
    set.disable().unwrap();
    set.read(&mut counts).unwrap();
    let counted = counts.get(0).unwrap().total().unwrap().exact().unwrap();
    assert_eq!(counted - branches.start_to_stop.median, 1_030);
}

/// Three rounds warm up, and 31 are measured: here each adds one more than the one before.
#[test]
fn an_odd_number_of_rounds_is_measured_after_those_that_warm_up() {
    let open = |spec: &GroupSpec, _: &Target| {
        let (mut reads, mut value) = (0, 0);
        Ok(ScriptedGroup::of(spec).reading(move |out| {
            // Every second read is the end of a round.
            value += (reads % 2) * (reads / 2 % 34);
            reads += 1;
            out[0][0] = Reading::new(value, 1, 1);
            Ok(())
        }))
    };
    let backend: Arc<dyn Backend> = Arc::new(Scripted::new("rounds", open));
    let mut builder = EventSet::builder();
    let builder = builder.events("a").unwrap().backends([backend]);
    let overhead = builder.open().unwrap().calibrate().unwrap();
    let overhead = overhead[0].as_ref().unwrap();
    for spread in [overhead.start_to_stop, overhead.read_to_read] {
        assert_eq!((spread.lowest, spread.median, spread.highest), (3, 18, 33));
    }
}

#[test]
fn events_without_an_overhead_say_why() {
    let (_, mut set) = costly("branches,no-such-event,TEMPERATURE");
    let overhead = set.calibrate().unwrap();
    assert!(overhead[0].is_ok());
    let kind = |result: &Result<_>| result.as_ref().err().map(Error::kind);
    assert_eq!(kind(&overhead[1]), Some(ErrorKind::UnsupportedEvent));
    // A gauge shows its level at any time: that is no overhead.
    assert_eq!(kind(&overhead[2]), Some(ErrorKind::UnsupportedFeature));
}

#[cfg(target_os = "linux")]
#[test]
fn software_events_of_this_thread() {
    let events = "page-faults:u,task-clock:u";
    let mut set = EventSet::builder().events(events).unwrap().open().unwrap();
    let overhead = set.calibrate().unwrap();
    let faults = overhead[0]
        .as_ref()
        .expect("page faults are counted everywhere");
    assert_eq!(
        (faults.start_to_stop.median, faults.read_to_read.median),
        (0, 0)
    );
    let clock = overhead[1]
        .as_ref()
        .expect("the clock is counted everywhere");
    assert!(clock.start_to_stop.lowest > 0 && clock.read_to_read.lowest > 0);
}
