//! Return codes of `papi.h`, and their texts.

use std::ffi::{CStr, c_int};
use std::num::NonZero;

use crate::abi::V7_2;

/// A return code other than [`OK`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ErrorCode(NonZero<c_int>);

impl ErrorCode {
    /// Returns the code of a number. Those of this library are made when it is compiled, which 0 would not.
    pub(crate) const fn new(number: c_int) -> Self {
        match NonZero::new(number) {
            Some(number) => Self(number),
            None => panic!("0 is no code"),
        }
    }

    /// Returns its number.
    pub(crate) const fn number(self) -> c_int {
        self.0.get()
    }
}

/// The result of a function of the library.
pub(crate) type Outcome<T = ()> = Result<T, ErrorCode>;

pub(crate) const OK: c_int = 0;
pub(crate) const EINVAL: ErrorCode = ErrorCode::new(-1);
pub(crate) const ENOMEM: ErrorCode = ErrorCode::new(-2);
pub(crate) const ESYS: ErrorCode = ErrorCode::new(-3);
pub(crate) const ECMP: ErrorCode = ErrorCode::new(-4);
pub(crate) const ECLOST: ErrorCode = ErrorCode::new(-5);
pub(crate) const EBUG: ErrorCode = ErrorCode::new(-6);
pub(crate) const ENOEVNT: ErrorCode = ErrorCode::new(-7);
pub(crate) const ECNFLCT: ErrorCode = ErrorCode::new(-8);
pub(crate) const ENOTRUN: ErrorCode = ErrorCode::new(-9);
pub(crate) const EISRUN: ErrorCode = ErrorCode::new(-10);
pub(crate) const ENOEVST: ErrorCode = ErrorCode::new(-11);
pub(crate) const ENOTPRESET: ErrorCode = ErrorCode::new(-12);
pub(crate) const EMISC: ErrorCode = ErrorCode::new(-14);
pub(crate) const EPERM: ErrorCode = ErrorCode::new(-15);
pub(crate) const ENOINIT: ErrorCode = ErrorCode::new(-16);
pub(crate) const ENOCMP: ErrorCode = ErrorCode::new(-17);
pub(crate) const ENOSUPP: ErrorCode = ErrorCode::new(-18);
pub(crate) const EINVAL_DOM: ErrorCode = ErrorCode::new(-21);
pub(crate) const ECOUNT: ErrorCode = ErrorCode::new(-23);
pub(crate) const ECMP_DISABLED: ErrorCode = ErrorCode::new(-25);

/// Texts of the codes, by their numbers without the sign. The last is there since version 7.2.
const TEXTS: [&CStr; 29] = [
    c"no error",
    c"an argument is not valid",
    c"there is not enough memory",
    c"a system call failed",
    c"the component does not offer this",
    c"the counters could not be read, or were lost",
    c"an error inside of the library",
    c"there is no such event",
    c"the event cannot be counted together with the others",
    c"the event set is not running",
    c"the event set is running",
    c"there is no such event set",
    c"the event is no preset",
    c"this hardware has no counters",
    c"an error of another kind",
    c"permission is lacking",
    c"the library is not initialized",
    c"there is no such component, or none is assigned",
    c"this is not supported",
    c"this is not implemented",
    c"the buffer is too small",
    c"the domain cannot be counted",
    c"an attribute of the event is missing or not valid",
    c"there are too many events or attributes",
    c"these features do not go together",
    c"the component of the event is disabled",
    c"the component is initialized when it is first used",
    c"the event takes several passes of the program",
    c"a part of the component is disabled",
];

/// Returns the text of a number, in a version of the interface, if it is that of a code.
pub(crate) fn text_of(number: c_int, version: c_int) -> Option<&'static CStr> {
    let index = usize::try_from(number.checked_neg()?).ok()?;
    let known = match version {
        V7_2.. => &TEXTS[..],
        _ => &TEXTS[..TEXTS.len() - 1],
    };
    known.get(index).copied()
}
