//! Call chains, with the markers that say where the frames below them ran.

use crate::bytes::Words;

/// `PERF_CONTEXT_MAX`: every address from here up is a marker.
const FIRST_MARKER: u64 = -4095_i64 as u64;

/// Mode of the CPU in a frame of a call chain (`enum perf_callchain_context`,
/// `include/uapi/linux/perf_event.h`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Context {
    /// No marker came before it, or one that is not known.
    #[default]
    Unknown,
    /// In the hypervisor.
    Hypervisor,
    /// In the kernel.
    Kernel,
    /// In user mode.
    User,
    /// In a guest.
    Guest,
    /// In the kernel of a guest.
    GuestKernel,
    /// In user mode of a guest.
    GuestUser,
}

impl Context {
    /// Marker before frames of the kernel (`PERF_CONTEXT_KERNEL`).
    pub const KERNEL_MARKER: u64 = -128_i64 as u64;
    /// Marker before frames of user mode (`PERF_CONTEXT_USER`).
    pub const USER_MARKER: u64 = -512_i64 as u64;

    fn of_marker(marker: u64) -> Self {
        match marker {
            Self::KERNEL_MARKER => Self::Kernel,
            Self::USER_MARKER => Self::User,
            other => match (other as i64).wrapping_neg() {
                32 => Self::Hypervisor,
                2048 => Self::Guest,
                2176 => Self::GuestKernel,
                2560 => Self::GuestUser,
                _ => Self::Unknown,
            },
        }
    }
}

/// `PERF_CONTEXT_USER_DEFERRED`: what follows is a cookie, and the user's frames are in a later
/// record with the same one (Linux 6.19).
const USER_DEFERRED: u64 = -640_i64 as u64;

/// One frame of a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Frame {
    /// The sampled instruction in the first frame, return addresses in the others.
    pub address: u64,
    /// Mode of the CPU.
    pub context: Context,
}

/// A call chain, the innermost function first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Callchain<'a>(pub(crate) Words<'a>);

impl<'a> Callchain<'a> {
    /// Returns addresses and markers as the kernel wrote them.
    #[inline]
    pub fn entries(&self) -> Words<'a> {
        self.0
    }

    /// Returns the frames, with the markers resolved.
    pub fn frames(&self) -> impl Iterator<Item = Frame> + Clone + use<'a> {
        let mut context = Context::Unknown;
        let mut cookie_follows = false;
        self.0.iter().filter_map(move |entry| {
            if std::mem::take(&mut cookie_follows) {
                return None;
            }
            if entry >= FIRST_MARKER {
                cookie_follows = entry == USER_DEFERRED;
                context = Context::of_marker(entry);
                return None;
            }
            Some(Frame {
                address: entry,
                context,
            })
        })
    }

    /// Returns the cookie under which the frames of user mode come later
    /// ([`CallchainDeferred`](crate::record::CallchainDeferred)), if they do.
    pub fn deferred(&self) -> Option<u64> {
        let mut entries = self.0.iter();
        entries.find(|entry| *entry == USER_DEFERRED)?;
        entries.next()
    }
}

impl std::fmt::Debug for Callchain<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.frames()).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(entries: &[i64]) -> Vec<u8> {
        entries.iter().flat_map(|e| e.to_ne_bytes()).collect()
    }

    #[test]
    fn markers_become_the_context_of_what_follows() {
        let bytes = bytes(&[
            1, -128, 2, 3, -512, 4, -2048, 5, -2176, 6, -2560, 7, -32, 8, -7, 9,
        ]);
        let chain = Callchain(Words::new(&bytes));
        let frames: Vec<_> = chain.frames().map(|f| (f.address, f.context)).collect();
        assert_eq!(
            frames,
            [
                (1, Context::Unknown),
                (2, Context::Kernel),
                (3, Context::Kernel),
                (4, Context::User),
                (5, Context::Guest),
                (6, Context::GuestKernel),
                (7, Context::GuestUser),
                (8, Context::Hypervisor),
                (9, Context::Unknown),
            ]
        );
        assert_eq!(chain.deferred(), None);
    }

    #[test]
    fn a_cookie_is_no_frame() {
        let bytes = bytes(&[-128, 2, -640, 77]);
        let chain = Callchain(Words::new(&bytes));
        assert_eq!(chain.deferred(), Some(77));
        assert_eq!(chain.frames().count(), 1);
    }
}
