//! The numbers of options (`papi.h`).

use std::ffi::c_int;

pub(crate) const DETACH: c_int = 1;
pub(crate) const DEBUG: c_int = 2;
pub(crate) const MULTIPLEX: c_int = 3;
pub(crate) const DEFDOM: c_int = 4;
pub(crate) const DOMAIN: c_int = 5;
pub(crate) const DEFGRN: c_int = 6;
pub(crate) const GRANUL: c_int = 7;
pub(crate) const DEF_MPX_NS: c_int = 8;
pub(crate) const MAX_MPX_CTRS: c_int = 11;
pub(crate) const PRELOAD: c_int = 13;
pub(crate) const CLOCKRATE: c_int = 14;
pub(crate) const MAX_HWCTRS: c_int = 15;
pub(crate) const HWINFO: c_int = 16;
pub(crate) const EXEINFO: c_int = 17;
pub(crate) const MAX_CPUS: c_int = 18;
pub(crate) const ATTACH: c_int = 19;
pub(crate) const SHLIBINFO: c_int = 20;
pub(crate) const LIB_VERSION: c_int = 21;
pub(crate) const COMPONENTINFO: c_int = 22;
pub(crate) const DATA_ADDRESS: c_int = 23;
pub(crate) const INSTR_ADDRESS: c_int = 24;
pub(crate) const DEF_ITIMER: c_int = 25;
pub(crate) const DEF_ITIMER_NS: c_int = 26;
pub(crate) const CPU_ATTACH: c_int = 27;
pub(crate) const INHERIT: c_int = 28;
pub(crate) const USER_EVENTS_FILE: c_int = 29;
