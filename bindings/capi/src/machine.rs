//! The library's version, and what can count on this machine.

use std::ffi::{CString, c_char, c_int};
use std::sync::OnceLock;

use quipu::{BackendStatus, Machine};
use quipu_hal::{Features, Filter, TargetKinds};

use crate::boundary::{self, Versioned, guarded};
use crate::failure::{Failure, Texts, text};
use crate::last_error::as_struct;
use crate::quipu_status;
use crate::set::simultaneity;

/// The version of the header: this and the next two. quipu_version() has the library's.
pub const QUIPU_VERSION_MAJOR: u32 = 0;
/// See QUIPU_VERSION_MAJOR.
pub const QUIPU_VERSION_MINOR: u32 = 1;
/// See QUIPU_VERSION_MAJOR.
pub const QUIPU_VERSION_PATCH: u32 = 0;

/// The version of the library: major << 16 | minor << 8 | patch.
#[unsafe(no_mangle)]
pub extern "C" fn quipu_version() -> u32 {
    QUIPU_VERSION_MAJOR << 16 | QUIPU_VERSION_MINOR << 8 | QUIPU_VERSION_PATCH
}

/// The version of the library as text: "0.1.0". The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn quipu_version_string() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Kinds of targets that a backend can count on; several are added. The bit of a quipu_target is 1
/// shifted by it, but QUIPU_CPU and QUIPU_CPUS share one.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_target_kind {
    /// The calling thread.
    QUIPU_ON_THIS_THREAD = 1,
    /// Any thread.
    QUIPU_ON_THREAD = 2,
    /// A process.
    QUIPU_ON_PROCESS = 4,
    /// The CPU one is on.
    QUIPU_ON_THIS_CPU = 8,
    /// One CPU or several.
    QUIPU_ON_CPU = 16,
    /// All CPUs.
    QUIPU_ON_ALL_CPUS = 32,
    /// A control group.
    QUIPU_ON_CGROUP = 64,
}

/// Features that not every backend has; several are added.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_feature {
    /// QUIPU_INHERIT.
    QUIPU_CAN_INHERIT = 1,
    /// QUIPU_PINNED.
    QUIPU_CAN_PIN = 2,
    /// QUIPU_EXCLUSIVE.
    QUIPU_CAN_EXCLUDE = 4,
    /// QUIPU_ENABLE_ON_EXEC.
    QUIPU_CAN_ENABLE_ON_EXEC = 8,
    /// More groups can be open than fit on the PMU; they take turns.
    QUIPU_CAN_MULTIPLEX = 16,
    /// Events that need a PMU can be counted on this machine.
    QUIPU_HAS_HARDWARE_EVENTS = 32,
    /// Software events can be counted.
    QUIPU_HAS_SOFTWARE_EVENTS = 64,
    /// Breakpoints can be counted.
    QUIPU_HAS_BREAKPOINTS = 128,
    /// Tracepoints can be counted.
    QUIPU_HAS_TRACEPOINTS = 256,
    /// Named PMUs with terms can be counted.
    QUIPU_HAS_NAMED_PMUS = 512,
    /// Sets can be used from any thread.
    QUIPU_HAS_ANY_THREAD = 1024,
    /// QUIPU_INHERIT_THREAD.
    QUIPU_CAN_INHERIT_THREAD = 4096,
    /// QUIPU_REMOVE_ON_EXEC.
    QUIPU_CAN_REMOVE_ON_EXEC = 8192,
}

/// Modes of the CPU that events are counted in; several are added.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_filter {
    /// User mode (":u").
    QUIPU_IN_USER = 1,
    /// Kernel mode (":k").
    QUIPU_IN_KERNEL = 2,
    /// Hypervisor mode (":h").
    QUIPU_IN_HYPERVISOR = 4,
    /// While the CPU idles.
    QUIPU_IN_IDLE = 8,
    /// On the host (":H").
    QUIPU_IN_HOST = 16,
    /// In guests (":G").
    QUIPU_IN_GUEST = 32,
}

// The numbers above are those of the vocabulary, handed through.
const _: () = {
    assert!(TargetKinds::all().bits() == 127);
    assert!(TargetKinds::CGROUP.bits() as u32 == quipu_target_kind::QUIPU_ON_CGROUP as u32);
    assert!(TargetKinds::CPU.bits() as u32 == quipu_target_kind::QUIPU_ON_CPU as u32);
    assert!(Features::MULTIPLEXING.bits() == quipu_feature::QUIPU_CAN_MULTIPLEX as u32);
    assert!(Features::ANY_THREAD.bits() == quipu_feature::QUIPU_HAS_ANY_THREAD as u32);
    assert!(Filter::GUEST.bits() as u32 == quipu_filter::QUIPU_IN_GUEST as u32);
    assert!(Filter::all().bits() == 63);
};

/// A backend on this machine: usable, or why it is not. Set `size` first (QUIPU_INIT). Texts are never
/// freed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_backend_info {
    /// sizeof (quipu_backend_info).
    pub size: usize,
    /// Its name: "linux".
    pub name: *const c_char,
    /// QUIPU_OK when it can be used here, else why it cannot.
    pub status: c_int,
    /// Not 0 when it is used only where quipu_config names it.
    pub on_request: c_int,
    /// Why it cannot be used, in one sentence; empty when it can.
    pub message: *const c_char,
    /// Advice for a person, or null.
    pub hint: *const c_char,
    /// The targets it can count on: sum of quipu_target_kind.
    pub targets: u32,
    /// Sum of quipu_feature.
    pub features: u32,
    /// Which filters hardware events honour: sum of quipu_filter.
    pub filters: u32,
    /// The best simultaneity that a group is read with: a quipu_simultaneity.
    pub simultaneity: u32,
    /// The number of counters that can be on the PMU simultaneously, or -1 if it is not known; on a machine with
    /// several kinds of core, the fewest of any kind.
    pub counters: c_int,
    /// The number of counters that were shown to count, likewise, or -1 if it was not tested. A hypervisor may hold
    /// the others.
    pub counting_counters: c_int,
}

// SAFETY: integers and pointers, for all of which zero is a value.
unsafe impl Versioned for quipu_backend_info {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

struct Described {
    name: CString,
    texts: Texts,
    on_request: bool,
    status: &'static BackendStatus,
}

/// Every backend, in order of preference, with its texts.
fn backends() -> &'static [Described] {
    static BACKENDS: OnceLock<Vec<Described>> = OnceLock::new();
    BACKENDS.get_or_init(|| {
        let machine = Machine::this();
        let describe = |on_request| {
            move |status: &'static BackendStatus| Described {
                name: text(status.name()),
                texts: Texts::new(
                    status
                        .error()
                        .map_or(quipu_status::QUIPU_OK, |error| error.kind().into()),
                    status.error(),
                ),
                on_request,
                status,
            }
        };
        let usual = machine.backends().iter().map(describe(false));
        usual
            .chain(machine.on_request().iter().map(describe(true)))
            .collect()
    })
}

/// Says how many backends the library knows.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_backend_count(out: *mut usize) -> quipu_status {
    // SAFETY: the caller's promise.
    guarded(|| unsafe { boundary::write(out, backends().len(), "out") })
}

/// Describes a backend, in order of preference from 0: what it can do here, or why it cannot be used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_backend_get(
    index: usize,
    out: *mut quipu_backend_info,
) -> quipu_status {
    guarded(|| {
        let backends = backends();
        let backend = backends.get(index).ok_or_else(|| {
            let attempted = format!("look at backend {index}");
            let reason = format!("there are {}, numbered from 0", backends.len());
            Failure::invalid(&attempted, reason)
        })?;
        let error = as_struct(&backend.texts);
        let mut info = quipu_backend_info {
            name: backend.name.as_ptr(),
            status: error.status,
            on_request: backend.on_request.into(),
            message: error.message,
            hint: error.hint,
            counters: -1,
            counting_counters: -1,
            ..boundary::zeroed()
        };
        if let Some(usable) = backend.status.backend() {
            let can = usable.capabilities();
            info.targets = can.targets.bits().into();
            info.features = can.features.bits();
            info.filters = can.filters.bits().into();
            info.simultaneity = simultaneity(can.simultaneity);
            info.counters = can.slots.map_or(-1, |slots| slots as c_int);
            info.counting_counters = can.counting_slots.map_or(-1, |slots| slots as c_int);
        }
        // SAFETY: the caller's promise.
        unsafe { boundary::write_versioned(out, info, "out") }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_version_of_the_package() {
        let numbers = [
            QUIPU_VERSION_MAJOR,
            QUIPU_VERSION_MINOR,
            QUIPU_VERSION_PATCH,
        ];
        let text = numbers.map(|number| number.to_string()).join(".");
        assert_eq!(text, env!("CARGO_PKG_VERSION"));
    }
}
