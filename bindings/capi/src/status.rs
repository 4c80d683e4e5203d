//! The status that functions return.

use std::ffi::{CStr, c_char, c_int};

use quipu::ErrorKind;

/// The result of every function that can fail: 0, or a negative number that says what kind of failure
/// it was. quipu_last_error() has the details.
#[repr(i32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_status {
    /// Done.
    QUIPU_OK = 0,
    /// The event does not exist here: not on this CPU, kernel or backend.
    QUIPU_EEVENT = -1,
    /// The event exists, but something asked of it (a filter, inheritance, a target) is not offered.
    QUIPU_EFEATURE = -2,
    /// Not permitted for this user; the hint says which permission is missing.
    QUIPU_EPERM = -3,
    /// No such thread, process, CPU or control group.
    QUIPU_ETARGET = -4,
    /// No such device or driver: the whole backend is missing.
    QUIPU_EDEVICE = -5,
    /// The group has more events than can ever be counted at the same time.
    QUIPU_ETOOMANY = -6,
    /// Another process holds the counters.
    QUIPU_EBUSY = -7,
    /// An argument is wrong: null where it may not be, of the wrong size, malformed, contradictory.
    QUIPU_EINVAL = -8,
    /// The counter is in the error state: a pinned group could not be put on the PMU.
    QUIPU_ESTATE = -9,
    /// The device is tied to another thread than the calling one.
    QUIPU_ETHREAD = -10,
    /// The registers were changed by another process during the measurement.
    QUIPU_EINTERFERENCE = -11,
    /// Any other refusal by the operating system; see the errno.
    QUIPU_EOS = -12,
    /// The handle is none that was given out, or was closed already.
    QUIPU_EHANDLE = -13,
    /// Another thread is in a call with the same handle.
    QUIPU_EINUSE = -14,
    /// A defect of the library itself, which was contained.
    QUIPU_EBUG = -15,
    /// The counter moved further than its event can have occurred: its value means nothing.
    QUIPU_EJUMP = -16,
}

use quipu_status::*;

impl quipu_status {
    /// Every status, from 0 down.
    const ALL: [Self; 17] = [
        QUIPU_OK,
        QUIPU_EEVENT,
        QUIPU_EFEATURE,
        QUIPU_EPERM,
        QUIPU_ETARGET,
        QUIPU_EDEVICE,
        QUIPU_ETOOMANY,
        QUIPU_EBUSY,
        QUIPU_EINVAL,
        QUIPU_ESTATE,
        QUIPU_ETHREAD,
        QUIPU_EINTERFERENCE,
        QUIPU_EOS,
        QUIPU_EHANDLE,
        QUIPU_EINUSE,
        QUIPU_EBUG,
        QUIPU_EJUMP,
    ];

    pub(crate) const fn text(self) -> &'static CStr {
        match self {
            QUIPU_OK => c"no error",
            QUIPU_EEVENT => c"event not supported",
            QUIPU_EFEATURE => c"feature not supported",
            QUIPU_EPERM => c"not permitted",
            QUIPU_ETARGET => c"no such target",
            QUIPU_EDEVICE => c"no such device",
            QUIPU_ETOOMANY => c"too many events for one group",
            QUIPU_EBUSY => c"counters are busy",
            QUIPU_EINVAL => c"invalid request",
            QUIPU_ESTATE => c"counter in error state",
            QUIPU_ETHREAD => c"called on the wrong thread",
            QUIPU_EINTERFERENCE => c"registers were changed by another process",
            QUIPU_EOS => c"refused by the operating system",
            QUIPU_EHANDLE => c"not an open handle",
            QUIPU_EINUSE => c"handle in use by another thread",
            QUIPU_EBUG => c"defect of the library",
            QUIPU_EJUMP => c"the counter jumped",
        }
    }
}

impl From<ErrorKind> for quipu_status {
    fn from(kind: ErrorKind) -> Self {
        match kind {
            ErrorKind::UnsupportedEvent => QUIPU_EEVENT,
            ErrorKind::UnsupportedFeature => QUIPU_EFEATURE,
            ErrorKind::NoPermission => QUIPU_EPERM,
            ErrorKind::NoSuchTarget => QUIPU_ETARGET,
            ErrorKind::NoSuchDevice => QUIPU_EDEVICE,
            ErrorKind::TooManyEvents => QUIPU_ETOOMANY,
            ErrorKind::Busy => QUIPU_EBUSY,
            ErrorKind::InvalidConfiguration => QUIPU_EINVAL,
            ErrorKind::CounterInErrorState => QUIPU_ESTATE,
            ErrorKind::WrongThread => QUIPU_ETHREAD,
            ErrorKind::Interference => QUIPU_EINTERFERENCE,
            ErrorKind::CounterJumped => QUIPU_EJUMP,
            _ => QUIPU_EOS,
        }
    }
}

/// A status in a few words, for any number: "event not supported". The text is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn quipu_strerror(status: c_int) -> *const c_char {
    let known = quipu_status::ALL.iter().find(|s| **s as c_int == status);
    known
        .map_or(c"unknown status", |status| status.text())
        .as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_says_what_its_kind_says() {
        for &kind in ErrorKind::ALL {
            let status = quipu_status::from(kind);
            assert_eq!(status.text().to_str(), Ok(kind.as_str()));
        }
        for (number, status) in quipu_status::ALL.into_iter().enumerate() {
            assert_eq!(status as c_int, -(number as c_int));
        }
    }
}
