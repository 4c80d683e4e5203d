//! Buckets of addresses: the program's memory that profiles are counted in.

use std::ffi::{c_int, c_longlong};
use std::sync::Arc;
#[cfg(target_os = "linux")]
use std::sync::atomic::{AtomicU32, Ordering};

use crate::abi::Sprofil;

const RANDOM: c_int = 0x1;
const WEIGHTED: c_int = 0x2;
const COMPRESS: c_int = 0x4;
pub(crate) const BUCKET_16: c_int = 0x8;
const BUCKET_32: c_int = 0x10;
const BUCKET_64: c_int = 0x20;
pub(crate) const BUCKETS: c_int = BUCKET_16 | BUCKET_32 | BUCKET_64;
/// All flags that there are.
pub(crate) const FLAGS: c_int = 0x1ff;

/// A profile of one event.
pub(crate) struct Profiled {
    pub(crate) code: c_int,
    pub(crate) threshold: c_longlong,
    pub(crate) regions: Vec<Sprofil>,
}

/// The profiles of a set.
#[derive(Default)]
pub(crate) struct Profiles {
    pub(crate) events: Vec<Arc<Profiled>>,
    pub(crate) flags: c_int,
}

// SAFETY: the buckets are the program's, which promises that they may be written by any of its threads.
unsafe impl Send for Profiled {}
// SAFETY: as above; the rest is only read.
unsafe impl Sync for Profiled {}

/// The state of the random numbers.
#[cfg(target_os = "linux")]
static RANDOM_STATE: AtomicU32 = AtomicU32::new(0x2545_f491);

/// Returns a number between 0 and 65535: xorshift, by Marsaglia.
#[cfg(target_os = "linux")]
fn random() -> u16 {
    let mut random = RANDOM_STATE.load(Ordering::Relaxed);
    random ^= random << 13;
    random ^= random >> 17;
    random ^= random << 5;
    RANDOM_STATE.store(random, Ordering::Relaxed);
    (random >> 16) as u16
}

impl Profiles {
    /// Returns true if nothing is profiled.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_empty()
    }

    /// Profiles an event no longer.
    pub(crate) fn forget(&mut self, code: c_int) {
        self.events.retain(|event| event.code != code);
    }

    /// Counts an address; `false` if the event is not profiled.
    #[cfg(target_os = "linux")]
    pub(crate) fn count(&self, code: c_int, address: usize, excess: c_longlong) -> bool {
        let Some((event, flags)) = self.of(code) else {
            return false;
        };
        event.count(flags, address, excess);
        true
    }

    /// Returns the profile of an event, and the flags of it.
    #[cfg(target_os = "linux")]
    pub(crate) fn of(&self, code: c_int) -> Option<(Arc<Profiled>, c_int)> {
        let event = self.events.iter().find(|event| event.code == code)?;
        Some((Arc::clone(event), self.flags))
    }
}

#[cfg(target_os = "linux")]
impl Profiled {
    /// Counts an address.
    pub(crate) fn count(&self, flags: c_int, address: usize, excess: c_longlong) {
        let below = self.regions.iter().filter(|region| region.offset < address);
        let region = below
            .max_by_key(|region| region.offset)
            .or(self.regions.first());
        let Some(region) = region.filter(|region| region.offset <= address) else {
            return;
        };
        let by = Increment {
            flags,
            excess,
            threshold: self.threshold,
            random: random(),
        };
        let index = bucket(region, address);
        // SAFETY: `PAPI_sprofil` was given buckets of as many bytes as the region says.
        unsafe {
            match flags & BUCKETS {
                BUCKET_64 => add::<u64>(region, index, &by),
                BUCKET_32 => add::<u32>(region, index, &by),
                _ => add::<u16>(region, index, &by),
            }
        }
    }
}

/// Returns the bucket of an address: of scale 131072 each has a byte, of 65536 two.
fn bucket(region: &Sprofil, address: usize) -> usize {
    if region.offset == 0 && region.scale == 2 {
        return 0;
    }
    let scaled = (address - region.offset) as u128 * u128::from(region.scale);
    usize::try_from(scaled >> 17).unwrap_or(usize::MAX)
}

/// By how much a bucket is counted up.
struct Increment {
    flags: c_int,
    excess: c_longlong,
    threshold: c_longlong,
    random: u16,
}

impl Increment {
    fn of(&self, value: u64) -> u8 {
        if self.flags & RANDOM != 0 && self.random <= u16::MAX / 4 {
            return 0;
        }
        if self.flags & COMPRESS != 0 && u64::from(self.random) < value {
            return 0;
        }
        if self.flags & WEIGHTED == 0 || self.excess <= 1 {
            return 1;
        }
        let weight = i128::from(self.excess) * 255 / i128::from(self.threshold.max(1));
        u8::try_from(weight.max(1)).unwrap_or(u8::MAX)
    }
}

/// Counts a bucket up.
///
/// # Safety
/// The region's buckets may be written, as many bytes as it says.
unsafe fn add<T>(region: &Sprofil, index: usize, by: &Increment)
where
    T: Copy + Into<u64> + From<u8> + Wrapping,
{
    let end = index
        .checked_add(1)
        .and_then(|end| end.checked_mul(size_of::<T>()));
    if end.is_none_or(|end| end > region.size as usize) || region.base.is_null() {
        return;
    }
    // SAFETY: the bucket lies in the region.
    let bucket = unsafe { region.base.cast::<T>().add(index) };
    // SAFETY: as above.
    let value = unsafe { bucket.read_unaligned() };
    // SAFETY: as above.
    unsafe { bucket.write_unaligned(value.plus(T::from(by.of(value.into())))) };
}

/// Numbers that start over above their largest.
trait Wrapping {
    fn plus(self, other: Self) -> Self;
}

macro_rules! wrapping {
    ($($number:ty),*) => {$(
        impl Wrapping for $number {
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
        }
    )*};
}

wrapping!(u16, u32, u64);

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::ffi::c_uint;

    use super::*;

    fn region(buckets: &mut [u16], scale: c_uint) -> Sprofil {
        Sprofil {
            base: buckets.as_mut_ptr().cast(),
            size: size_of_val(buckets) as c_uint,
            offset: 0x1000,
            scale,
        }
    }

    fn profile(regions: Vec<Sprofil>, flags: c_int) -> Profiles {
        Profiles {
            events: vec![Arc::new(Profiled {
                code: 7,
                threshold: 1000,
                regions,
            })],
            flags,
        }
    }

    #[test]
    fn addresses_are_counted_in_their_buckets_and_not_beyond() {
        let mut buckets = [0u16; 4];
        let profile = profile(vec![region(&mut buckets, 65536)], BUCKET_16);
        for address in [0x1000, 0x1001, 0x1002, 0x1006, 0x1008, 0xfff] {
            assert!(profile.count(7, address, 0));
        }
        assert!(!profile.count(8, 0x1000, 0));
        assert_eq!(buckets, [2, 1, 0, 1]);
    }

    #[test]
    fn weights_follow_the_excess() {
        let mut buckets = [0u16; 2];
        let profile = profile(vec![region(&mut buckets, 131_072)], BUCKET_16 | WEIGHTED);
        profile.count(7, 0x1000, 500);
        profile.count(7, 0x1001, 5000);
        assert_eq!(buckets, [127, 255]);
    }
}
