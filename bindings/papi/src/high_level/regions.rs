//! The regions of each thread, and the events that are counted in them.

use std::ffi::{c_int, c_longlong};
use std::sync::{Arc, Mutex, OnceLock};

use crate::code::{ENOEVNT, Outcome};
use crate::event::lookup;
use crate::event_set::set::Set;

/// An event of the regions.
pub(super) struct RegionEvent {
    pub(super) name: String,
    pub(super) code: c_int,
    pub(super) component: usize,
    /// True if the report has the value itself, not the difference to the begin of the region.
    pub(super) is_instant: bool,
}

/// The values of one moment: cycles, nanoseconds, then the events.
pub(super) type Values = Vec<c_longlong>;

/// One run through a region.
pub(super) struct Region {
    pub(super) id: usize,
    pub(super) name: String,
    pub(super) parent: Option<usize>,
    pub(super) begin: Values,
    /// The counts from the begin to the end.
    pub(super) total: Option<Values>,
    /// The counts from the begin to each read.
    pub(super) reads: Vec<Values>,
}

/// The regions of a thread: those that ended in their order, and those that are open.
#[derive(Default)]
pub(super) struct Regions {
    pub(super) all: Vec<Region>,
    pub(super) open: Vec<usize>,
}

/// The threads that had regions, in the order of their first.
pub(super) static REGIONS: Mutex<Vec<Arc<Mutex<Regions>>>> = Mutex::new(Vec::new());

/// Returns the events that `PAPI_EVENTS` names; without any that can be counted, cycles, or the time of the task.
pub(super) fn events() -> Outcome<&'static [RegionEvent]> {
    static EVENTS: OnceLock<Vec<RegionEvent>> = OnceLock::new();
    let events = EVENTS.get_or_init(|| {
        let asked = quipu_environment::text("PAPI_EVENTS").unwrap_or_default();
        let mut all: Vec<RegionEvent> = asked.split(',').filter_map(counted).collect();
        if all.is_empty() {
            let usual = ["PAPI_TOT_CYC", "perf::TASK-CLOCK"];
            all.extend(usual.into_iter().find_map(counted));
        }
        all
    });
    match events.is_empty() {
        true => Err(ENOEVNT),
        false => Ok(events),
    }
}

/// Returns an event of the list if it can be counted alone.
fn counted(text: &str) -> Option<RegionEvent> {
    let text = text.trim();
    let (name, is_instant) = match text.strip_suffix("=instant") {
        Some(name) => (name, true),
        None => (text.strip_suffix("=delta").unwrap_or(text), false),
    };
    let code = lookup::any_code_of(name)
        .ok()
        .filter(|_| !name.is_empty())?;
    let mut alone = Set::for_this_thread().ok()?;
    alone.add(code).ok()?;
    Some(RegionEvent {
        name: name.to_owned(),
        code,
        component: alone.component?,
        is_instant,
    })
}
