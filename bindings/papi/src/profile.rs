//! Profiles: buckets of addresses, counted up when an event overflows.

use std::ffi::{c_int, c_longlong, c_uint, c_void};
use std::sync::Arc;

use crate::abi::Sprofil;
use crate::boundary::call::done;
use crate::code::{ECNFLCT, EINVAL, ENOEVNT, Outcome};
use crate::event_set::set::{ATTACHED, CPU_ATTACHED, Set};
use crate::event_set::sets::SETS;
use crate::overflow::watched::FORCE_SW;
use buckets::{BUCKET_16, BUCKETS, FLAGS, Profiled};

pub(crate) mod buckets;

/// The handler of a set that is profiled and nothing else.
extern "C" fn nothing(_: c_int, _: *mut c_void, _: c_longlong, _: *mut c_void) {}

impl Set {
    /// Profiles an event; a threshold of 0 ends that.
    fn profile(
        &mut self,
        regions: Vec<Sprofil>,
        code: c_int,
        threshold: c_int,
        mut flags: c_int,
    ) -> Outcome {
        self.require_stopped()?;
        if self.state & (ATTACHED | CPU_ATTACHED) != 0 {
            return Err(EINVAL);
        }
        self.component()?;
        self.index(code).ok_or(ENOEVNT)?;
        let is_scale =
            |region: &Sprofil| region.scale == 131_072 || (2..=65536).contains(&region.scale);
        let derived = Self::is_derived(code) && flags & FORCE_SW == 0;
        let first = self.profile.is_empty() && threshold == 0;
        if derived || threshold < 0 || first || !regions.iter().all(is_scale) {
            return Err(EINVAL);
        }
        if threshold == 0 {
            flags |= self.profile.flags;
        }
        let buckets = flags & BUCKETS;
        if flags & !FLAGS != 0 || buckets.count_ones() > 1 {
            return Err(EINVAL);
        }
        let known = self
            .profile
            .events
            .iter()
            .position(|event| event.code == code);
        if threshold == 0 && known.is_none() {
            return Err(EINVAL);
        }
        let differs = (flags ^ self.profile.flags) & FORCE_SW != 0;
        if threshold > 0 && !self.profile.is_empty() && differs {
            return Err(ECNFLCT);
        }
        self.watch(code, threshold, flags & FORCE_SW, Some(nothing))?;
        self.profile.forget(code);
        if threshold > 0 {
            self.profile.events.push(Arc::new(Profiled {
                code,
                threshold: c_longlong::from(threshold),
                regions,
            }));
        }
        self.profile.flags = match (self.profile.is_empty(), buckets) {
            (true, _) => 0,
            (_, 0) => flags | BUCKET_16,
            _ => flags,
        };
        self.note_overflow();
        Ok(())
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_sprofil(
    regions: *const Sprofil,
    length: c_int,
    number: c_int,
    code: c_int,
    threshold: c_int,
    flags: c_int,
) -> c_int {
    done(|| {
        let mut copied = Vec::new();
        if !regions.is_null() {
            for at in 0..usize::try_from(length).unwrap_or(0) {
                // SAFETY: the caller's array has as many elements as it says.
                copied.push(unsafe { regions.add(at).read_unaligned() });
            }
        }
        SETS.with(number, |set| set.profile(copied, code, threshold, flags))
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_profil(
    base: *mut c_void,
    size: c_uint,
    offset: usize,
    scale: c_uint,
    number: c_int,
    code: c_int,
    threshold: c_int,
    flags: c_int,
) -> c_int {
    let region = Sprofil {
        base,
        size,
        offset,
        scale,
    };
    let regions = if threshold > 0 {
        vec![region]
    } else {
        Vec::new()
    };
    done(|| SETS.with(number, |set| set.profile(regions, code, threshold, flags)))
}
