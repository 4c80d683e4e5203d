//! Anchors: counters kept open so that opening others is cheap.

use quipu_hal::{Error, ErrorKind, Event, Result, Software};

use crate::events::EventBits;
use crate::sys::{Attach, CounterFd, perf_event_open};

/// Software counters that are open and count nothing, one for each kind of event.
///
/// The kernel patches its own code when the first counter of page faults, context switches or
/// migrations on the whole machine is opened, and again when the last one is closed (static keys:
/// `perf_swevent_enabled`, `kernel/events/core.c`). Each patch takes about ten times as long as
/// opening a counter otherwise does. While an anchor of the same kind is held, none is needed.
///
/// For programs that open and close such counters again and again. Holding anchors leaves the
/// kernel's hooks for these events switched on, which costs every process a few instructions for
/// each of these events; so it is for the program to ask for, not for a library. They are closed by
/// [`release`](Self::release), or when dropped.
///
/// ```
/// use quipu_hal::Software;
/// # #[cfg(target_os = "linux")]
/// use quipu_linux::Anchors;
///
/// # #[cfg(target_os = "linux")]
/// if let Ok(anchors) = Anchors::hold(&[Software::PageFaults, Software::ContextSwitches]) {
///     // Many short measurements.
///     anchors.release();
/// }
/// ```
#[derive(Debug)]
#[must_use = "the anchors are released when this is dropped"]
pub struct Anchors {
    _counters: Vec<CounterFd>,
}

impl Anchors {
    /// Opens an anchor for each of these kinds of event.
    ///
    /// # Errors
    /// [`NoPermission`](ErrorKind::NoPermission) when this process may not count at all, and
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when the kernel does not have an event; no
    /// anchor is held then.
    pub fn hold(kinds: &[Software]) -> Result<Self> {
        let counters = kinds
            .iter()
            .map(|kind| open(*kind))
            .collect::<Result<_>>()?;
        Ok(Self {
            _counters: counters,
        })
    }

    /// Closes the anchors.
    pub fn release(self) {}
}

fn open(kind: Software) -> Result<CounterFd> {
    let bits = EventBits::software(kind);
    perf_event_open(&bits.idle_attr(), Attach::thread(0), None).map_err(|failure| {
        let errno = failure.errno();
        let error_kind = match errno {
            libc::EACCES | libc::EPERM => ErrorKind::NoPermission,
            libc::ENOENT | libc::EINVAL => ErrorKind::UnsupportedEvent,
            libc::ENOSYS => ErrorKind::NoSuchDevice,
            _ => ErrorKind::Os,
        };
        Error::new(
            error_kind,
            format!("hold an anchor of {}", Event::from(kind)),
        )
        .with_errno(errno)
    })
}
