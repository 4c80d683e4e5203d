//! What reaches C of backends that panic, and of devices that are tied to a thread.

use std::ffi::CStr;
use std::panic::panic_any;
use std::ptr::without_provenance_mut;
use std::sync::Arc;

use quipu::hal::{
    Access, Backend, Capabilities, DynBackend, EventInfo, Group, ManualClock, Part, ReadBuf,
    SimModel, SimPmu, Simultaneity, VirtualPmu,
};
use quipu::{Attributes, GroupSpec, IntoGroups, Target};

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

type Simulated = VirtualPmu<SimPmu, ManualClock>;

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
fn described(backend: Arc<dyn DynBackend>, target: Target) -> *mut quipu_set {
    let config = Config {
        target,
        attributes: Attributes {
            disabled: true,
            ..Attributes::default()
        },
        user_mode_fallback: false,
        backend: Some(backend),
    };
    let set = Set::Described {
        config,
        groups: "cycles".groups().expect("an event"),
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

/// Counts as a simulated PMU does, but panics where it is told to.
struct Panicking {
    simulated: Simulated,
    opening: bool,
}

struct PanickingGroup(<Simulated as Backend>::Group);

impl Backend for Panicking {
    type Group = PanickingGroup;

    fn name(&self) -> &'static str {
        "panicking"
    }

    fn capabilities(&self) -> &Capabilities {
        Backend::capabilities(&self.simulated)
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> quipu::Result<PanickingGroup> {
        assert!(!self.opening, "opening panics");
        Backend::open(&self.simulated, spec, target).map(PanickingGroup)
    }
}

impl Group for PanickingGroup {
    fn members(&self) -> &[EventInfo] {
        self.0.members()
    }

    fn parts(&self) -> &[Part] {
        self.0.parts()
    }

    fn simultaneity(&self) -> Simultaneity {
        self.0.simultaneity()
    }

    fn enable(&mut self) -> quipu::Result<()> {
        panic!("enabling panics")
    }

    fn disable(&mut self) -> quipu::Result<()> {
        self.0.disable()
    }

    fn reset(&mut self) -> quipu::Result<()> {
        self.0.reset()
    }

    fn read(&mut self, _: &mut ReadBuf) -> quipu::Result<()> {
        panic!("reading panics")
    }
}

impl Drop for PanickingGroup {
    fn drop(&mut self) {
        panic!("closing panics")
    }
}

fn panicking(opening: bool) -> *mut quipu_set {
    let simulated = simulated(Access::AnyThread);
    described(Arc::new(Panicking { simulated, opening }), Target::Cpu(0))
}

/// Each call contains its own, and the handle can be used and closed afterwards.
#[test]
fn a_backend_that_panics_breaks_nothing_else() {
    let (set, never_opened) = (panicking(false), panicking(true));
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
