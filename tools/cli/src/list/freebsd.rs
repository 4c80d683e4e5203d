//! The events that FreeBSD's kernel reports to hwpmc(4).

use quipu::{Error, ErrorKind};
use quipu_hal::PmuEvent;
use quipu_hwpmc::{Driver, Hwpmc};

use super::catalog::Catalog;
use super::entry::ListedEvent;
use super::selection::{EventKind, ListFilter};

impl Catalog {
    /// Adds the kernel's own events, or why they cannot be listed.
    pub fn add_events_of_the_kernel(&mut self, selection: &ListFilter) {
        if !selection.has_kind(EventKind::Pmu) {
            return;
        }
        let known = Hwpmc::open().and_then(|driver| {
            let known = driver.software_events();
            known.map_err(|errno| {
                Error::new(ErrorKind::Os, "list the kernel's events").with_errno(errno as i32)
            })
        });
        let known = match known {
            Ok(known) => known,
            Err(error) => return self.unavailable.push((EventKind::Pmu, error)),
        };
        for (name, _) in known {
            let name = name.to_lowercase();
            let event = PmuEvent::new("soft").with(&name);
            let entry = ListedEvent::event(EventKind::Pmu, event, described(&name));
            self.add(selection, entry, &[&name]);
        }
    }
}

/// Returns a description of an event (`PMC_SOFT_DEFINE` in the kernel), or none.
fn described(name: &str) -> &'static str {
    match name {
        "clock.hard" => "ticks of the clock",
        "clock.stat" => "ticks of the clock for statistics",
        "clock.prof" => "ticks of the clock for profil(2)",
        "lock.failed" => "locks of the kernel that were held by others when they were asked for",
        "page_fault.all" => {
            "page faults by reading and by writing, not those to fetch instructions"
        }
        "page_fault.read" => "page faults by reading",
        "page_fault.write" => "page faults by writing",
        _ => "",
    }
}
