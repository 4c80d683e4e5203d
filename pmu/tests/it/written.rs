//! Counters of which another program writes the value, and wraps that look like it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use quipu_hal::{
    Count, Encoding, ErrorKind, EventInfo, Group, GroupSpec, Hardware, Reading, Result,
    Simultaneity, SlotSet, Target,
};
use quipu_pmu::{Access, ManualClock, Pmu, Slot, TableMap, VirtualGroup, VirtualPmu};

const MODULUS: u64 = 1 << 48;

type Hook = Box<dyn FnOnce() + Send>;

/// One register of 48 bits, which anybody can write.
#[derive(Clone, Default)]
struct Bare {
    register: Arc<AtomicU64>,
    /// The value from which it counts.
    origin: u64,
    /// Work between the next read of the register and its return.
    meanwhile: Arc<Mutex<Option<Hook>>>,
}

impl Bare {
    fn from(origin: u64) -> Self {
        Self {
            origin,
            ..Self::default()
        }
    }

    fn counts(&self, times: u64) {
        let value = self.register.load(Ordering::SeqCst) + times;
        self.register.store(value % MODULUS, Ordering::SeqCst);
    }

    fn look(&self, raw: &mut [u64]) {
        raw.fill(self.register.load(Ordering::SeqCst));
    }
}

impl Pmu for Bare {
    fn name(&self) -> &'static str {
        "bare"
    }

    fn slots(&self) -> &[Slot] {
        const { &[Slot::general(0, 48)] }
    }

    fn cpus(&self) -> &[u32] {
        &[0]
    }

    fn current_cpu(&self) -> Result<u32> {
        Ok(0)
    }

    fn access(&self) -> Access {
        Access::AnyThread
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Sequential
    }

    fn prepare(&self, _: &Encoding) -> Result<SlotSet> {
        Ok(SlotSet::general(1))
    }

    fn acquire(&self, _: u32) -> Result<()> {
        Ok(())
    }

    fn program(&self, _: u32, _: usize, _: &Encoding) -> Result<()> {
        Ok(())
    }

    fn clear(&self, _: u32, _: usize) -> Result<()> {
        self.register.store(self.origin, Ordering::SeqCst);
        Ok(())
    }

    fn start(&self, _: u32, _: &[usize], raw: &mut [u64]) -> Result<()> {
        self.look(raw);
        Ok(())
    }

    fn stop(&self, _: u32, _: &[usize], raw: &mut [u64]) -> Result<()> {
        self.look(raw);
        Ok(())
    }

    fn read(&self, _: u32, _: &[usize], raw: &mut [u64]) -> Result<()> {
        self.look(raw);
        let hook = self.meanwhile.lock().unwrap().take();
        if let Some(hook) = hook {
            hook();
        }
        Ok(())
    }

    fn verify_interval(&self) -> Option<Duration> {
        Some(Duration::from_secs(1))
    }

    fn release(&self, _: u32) -> Result<()> {
        Ok(())
    }
}

fn counting(bare: &Bare) -> (ManualClock, VirtualPmu<Bare>, VirtualGroup<Bare>) {
    let clock = ManualClock::new();
    let map = TableMap::new()
        .event(1, EventInfo::counter("cycles"), SlotSet::general(1))
        .also(Hardware::Cycles);
    let backend = VirtualPmu::new(bare.clone(), clock.clone(), Arc::new(map)).unwrap();
    let spec = GroupSpec::new([Hardware::Cycles]);
    let group = backend.open_group(&spec, &Target::Cpu(0)).unwrap();
    (clock, backend, group)
}

fn read(group: &mut VirtualGroup<Bare>) -> Result<Reading> {
    let mut out = group.read_buf();
    group.read(&mut out)?;
    Ok(out[0][0])
}

/// Lets a second pass, in which so many events occur.
fn pass(clock: &ManualClock, bare: &Bare, times: u64) {
    clock.advance(Duration::from_secs(1));
    bare.counts(times);
}

/// The call that notices that a value went back.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Look {
    Read,
    Tick,
    Disable,
}

#[test]
fn a_value_that_went_back_is_told_once_and_its_span_is_not_counted() {
    for look in [Look::Read, Look::Tick, Look::Disable] {
        let bare = Bare::default();
        let (clock, backend, mut group) = counting(&bare);
        pass(&clock, &bare, 4_000);
        assert_eq!(read(&mut group).unwrap().value, 4_000, "{look:?}");
        pass(&clock, &bare, 4_000);
        bare.register.store(17, Ordering::SeqCst);
        let told = match look {
            Look::Read => read(&mut group).unwrap_err(),
            Look::Disable => group.disable().unwrap_err(),
            Look::Tick => {
                backend.tick().unwrap();
                read(&mut group).unwrap_err()
            }
        };
        assert_eq!(told.kind(), ErrorKind::Interference, "{look:?}");
        assert!(
            told.reason()
                .is_some_and(|reason| reason.contains("went back"))
        );
        if look == Look::Disable {
            group.enable().unwrap();
        }
        pass(&clock, &bare, 4_000);
        let reading = read(&mut group).unwrap();
        assert_eq!(reading.count(), Count::Estimated(12_000), "{look:?}");
        assert_eq!(reading.time_running, 2_000_000_000, "{look:?}");
    }
}

#[test]
fn a_counter_that_begins_above_zero_shows_that_it_was_zeroed_before_anybody_looked() {
    let bare = Bare::from(1 << 46);
    let (clock, _backend, mut group) = counting(&bare);
    bare.register.store(0, Ordering::SeqCst);
    pass(&clock, &bare, 4_000);
    assert_eq!(
        read(&mut group).unwrap_err().kind(),
        ErrorKind::Interference
    );
}

#[test]
fn a_wrap_that_there_was_time_for_is_one() {
    let bare = Bare::from(MODULUS - 1_000);
    let (clock, backend, mut group) = counting(&bare);
    pass(&clock, &bare, 4_000);
    assert_eq!(read(&mut group).unwrap().count(), Count::Exact(4_000));
    pass(&clock, &bare, MODULUS - 4_000);
    clock.advance(Duration::from_secs(3_600));
    backend.tick().unwrap();
    assert_eq!(read(&mut group).unwrap().value, MODULUS);
}

/// The scheduler has read the register, and before it adds that, a reader reads more.
#[test]
fn a_reader_that_overtakes_the_look_makes_no_wrap() {
    let bare = Bare::default();
    let (clock, backend, group) = counting(&bare);
    let group = Arc::new(Mutex::new(group));
    pass(&clock, &bare, 100);
    let overtaking = {
        let (bare, group) = (bare.clone(), Arc::clone(&group));
        move || {
            bare.counts(10);
            assert_eq!(read(&mut group.lock().unwrap()).unwrap().value, 110);
        }
    };
    *bare.meanwhile.lock().unwrap() = Some(Box::new(overtaking));
    backend.tick().unwrap();
    assert!(bare.meanwhile.lock().unwrap().is_none(), "it was not asked");
    bare.counts(10);
    let reading = read(&mut group.lock().unwrap()).unwrap();
    assert_eq!(reading.count(), Count::Exact(120));
}
