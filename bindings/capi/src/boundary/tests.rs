//! Statuses that C gets of backends that panic or take long, and of devices that are tied to a thread.

use std::ffi::CStr;
use std::panic::panic_any;
use std::ptr::without_provenance_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use quipu::{Attributes, GroupSpec, IntoGroups, Target};
use quipu_hal::{Backend, Capabilities, EventInfo, Group, Part, ReadBuf, Simultaneity};
use quipu_pmu::{Access, ManualClock, SimModel, SimPmu, VirtualPmu};

use super::*;
use crate::config::Config;
use crate::last_error::{quipu_error, quipu_last_error};
use crate::quipu_status::*;
use crate::reading::{quipu_count, quipu_set_read, quipu_state};
use crate::set::{
    SETS, Set, quipu_set, quipu_set_close, quipu_set_open, quipu_set_start, quipu_set_stop,
};

/// The reason of the thread's last error.
fn reason() -> String {
    let mut error: quipu_error = zeroed();
    error.size = size_of::<quipu_error>();
    // SAFETY: a struct with its size set, and a text that is there until the next failure.
    unsafe {
        assert_eq!(quipu_last_error(&mut error), QUIPU_OK);
        CStr::from_ptr(error.reason)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    }
}

type Simulated = VirtualPmu<SimPmu>;

fn simulated(access: Access) -> Simulated {
    let clock = ManualClock::new();
    let model = SimModel {
        access,
        ..SimModel::default()
    };
    let pmu = SimPmu::with_model(model, clock.clone());
    let map = Arc::new(pmu.event_map());
    VirtualPmu::new(pmu, clock, map).expect("a PMU of plain memory")
}

/// A set of cycles that is still to be opened.
fn described(backend: Arc<dyn Backend>, target: Target) -> *mut quipu_set {
    let config = Config {
        target,
        attributes: Attributes::default(),
        user_mode_fallback: false,
        machine: None,
        backends: Some(vec![backend]),
        is_simulated: true,
    };
    let set = Set::Described {
        config,
        groups: "cycles"
            .into_groups(&quipu::text::NoNames)
            .expect("an event"),
        presets: Vec::new(),
    };
    without_provenance_mut(SETS.insert(set).expect("room for a set"))
}

fn read(set: *mut quipu_set) -> (quipu_status, quipu_count) {
    let mut count = quipu_count::default();
    // SAFETY: the set has one event.
    let status = unsafe { quipu_set_read(set, &mut count, 1) };
    (status, count)
}

#[test]
fn a_panic_becomes_a_status() {
    assert_eq!(guarded(|| panic!("a text")), QUIPU_EBUG);
    assert_eq!(reason(), "defect of the library: a text");
    let number = 7;
    assert_eq!(guarded(|| panic!("number {number}")), QUIPU_EBUG);
    assert_eq!(reason(), "defect of the library: number 7");

    struct PanicsAgain;
    impl Drop for PanicsAgain {
        fn drop(&mut self) {
            panic!("and once more");
        }
    }
    assert_eq!(guarded(|| panic_any(PanicsAgain)), QUIPU_EBUG);
    assert_eq!(reason(), "defect of the library: ");
    assert_eq!(guarded(|| Ok(())), QUIPU_OK);
}

/// A call that a backend gets.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    Open,
    Enable,
    Read,
    Close,
}

type Disturb = Arc<dyn Fn(Call) + Send + Sync>;

/// Counts as a simulated PMU does, but is disturbed by each call first.
struct Disturbed {
    simulated: Simulated,
    disturb: Disturb,
}

struct DisturbedGroup {
    group: Box<dyn Group>,
    disturb: Disturb,
}

impl Backend for Disturbed {
    fn name(&self) -> &'static str {
        "disturbed"
    }

    fn capabilities(&self) -> &Capabilities {
        Backend::capabilities(&self.simulated)
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> quipu::Result<Box<dyn Group>> {
        (self.disturb)(Call::Open);
        Ok(Box::new(DisturbedGroup {
            group: self.simulated.open(spec, target)?,
            disturb: self.disturb.clone(),
        }))
    }
}

impl Group for DisturbedGroup {
    fn members(&self) -> &[EventInfo] {
        self.group.members()
    }

    fn parts(&self) -> &[Part] {
        self.group.parts()
    }

    fn simultaneity(&self) -> Simultaneity {
        self.group.simultaneity()
    }

    fn enable(&mut self) -> quipu::Result<()> {
        (self.disturb)(Call::Enable);
        self.group.enable()
    }

    fn disable(&mut self) -> quipu::Result<()> {
        self.group.disable()
    }

    fn reset(&mut self) -> quipu::Result<()> {
        self.group.reset()
    }

    fn read(&mut self, out: &mut ReadBuf) -> quipu::Result<()> {
        (self.disturb)(Call::Read);
        self.group.read(out)
    }
}

impl Drop for DisturbedGroup {
    fn drop(&mut self) {
        (self.disturb)(Call::Close);
    }
}

fn disturbed(disturb: impl Fn(Call) + Send + Sync + 'static) -> *mut quipu_set {
    let backend = Disturbed {
        simulated: simulated(Access::AnyThread),
        disturb: Arc::new(disturb),
    };
    described(Arc::new(backend), Target::Cpu(0))
}

/// Each call contains its own, and the handle can be used and closed afterwards.
#[test]
fn a_backend_that_panics_breaks_nothing_else() {
    let never_opened = disturbed(|call| assert!(call != Call::Open, "opening panics"));
    let set = disturbed(|call| match call {
        Call::Open => {}
        Call::Enable => panic!("enabling panics"),
        Call::Read => panic!("reading panics"),
        Call::Close => panic!("closing panics"),
    });
    // SAFETY: handles.
    unsafe {
        assert_eq!(quipu_set_open(never_opened), QUIPU_EBUG);
        assert_eq!(reason(), "defect of the library: opening panics");
        assert_eq!(quipu_set_open(never_opened), QUIPU_EBUG);
        assert_eq!(quipu_set_close(never_opened), QUIPU_OK);

        assert_eq!(quipu_set_open(set), QUIPU_OK);
        assert_eq!(quipu_set_start(set), QUIPU_EBUG);
        assert_eq!(reason(), "defect of the library: enabling panics");
        assert_eq!(read(set).0, QUIPU_EBUG);
        assert_eq!(reason(), "defect of the library: reading panics");
        assert_eq!(quipu_set_stop(set), QUIPU_OK);
        assert_eq!(quipu_set_close(set), QUIPU_EBUG);
        assert_eq!(reason(), "defect of the library: closing panics");
        assert_eq!(quipu_set_close(set), QUIPU_EHANDLE);
    }
}

/// A thread stays in the middle of a read; were there a lock around it, what is done meanwhile would wait for
/// it to end.
#[test]
fn a_read_waits_for_nobody() {
    let (entered, inside) = mpsc::channel();
    let (leave, told) = mpsc::channel::<()>();
    let told = Mutex::new(told);
    let left = Arc::new(AtomicBool::new(false));
    let leaving = left.clone();
    let slow = disturbed(move |call| {
        if call == Call::Read {
            entered.send(()).expect("a listener");
            // Only so that a failure is one, and no hang.
            let _ = told.lock().expect("one reader").recv_timeout(GIVE_UP);
            leaving.store(true, Ordering::SeqCst);
        }
    });
    let set = described(Arc::new(simulated(Access::AnyThread)), Target::Cpu(0));
    for set in [slow, set] {
        // SAFETY: a handle.
        assert_eq!(unsafe { quipu_set_open(set) }, QUIPU_OK);
    }
    let handle = slow.addr();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || read(without_provenance_mut(handle)).0);
        inside.recv().expect("a reader");
        assert_eq!(read(set).0, QUIPU_OK);
        assert_eq!(read(slow).0, QUIPU_EINUSE);
        // SAFETY: a handle.
        assert_eq!(unsafe { quipu_set_close(slow) }, QUIPU_EINUSE);
        assert!(!left.load(Ordering::SeqCst), "waited for the other's read");
        leave.send(()).expect("a reader");
        assert_eq!(reader.join().expect("no panic"), QUIPU_OK);
    });
    for set in [slow, set] {
        // SAFETY: a handle.
        assert_eq!(unsafe { quipu_set_close(set) }, QUIPU_OK);
    }
}

/// After so long a test that waits for another thread fails.
const GIVE_UP: Duration = Duration::from_secs(20);

#[test]
fn a_device_of_one_thread_says_so_on_others() {
    let backend = Arc::new(simulated(Access::MeasuringThread));
    let set = described(backend, Target::CurrentCpu);
    // SAFETY: a handle.
    unsafe {
        assert_eq!(quipu_set_open(set), QUIPU_OK);
        assert_eq!(quipu_set_start(set), QUIPU_OK);
    }
    let handle = set.addr();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let set = without_provenance_mut(handle);
            let (status, count) = read(set);
            assert_eq!(status, QUIPU_OK, "the other events of a set are read");
            assert_eq!(count.status, QUIPU_ETHREAD as i32);
            assert_eq!(count.state, quipu_state::QUIPU_NOT_READ as u32);
            // SAFETY: a handle.
            assert_eq!(unsafe { quipu_set_stop(set) }, QUIPU_ETHREAD);
        });
    });
    let (status, count) = read(set);
    assert_eq!((status, count.status), (QUIPU_OK, QUIPU_OK as i32));
    assert_eq!(count.state, quipu_state::QUIPU_EXACT as u32);
    // SAFETY: a handle.
    assert_eq!(unsafe { quipu_set_close(set) }, QUIPU_OK);
}
