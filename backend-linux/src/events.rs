//! Events: from what a group asks for to where it can be counted, with which bits.

mod arm_names;
#[cfg_attr(not(feature = "names"), allow(dead_code))]
mod bits;
#[cfg(feature = "names")]
pub(crate) mod condition;
mod core_pmus;
#[cfg(feature = "names")]
mod debug_file;
#[cfg(feature = "names")]
mod elf_symbol;
#[cfg(feature = "names")]
mod ifunc;
#[cfg(feature = "names")]
mod mini_debug;
#[cfg(feature = "names")]
mod names;
#[cfg(feature = "names")]
mod native;
#[cfg_attr(not(feature = "names"), allow(dead_code, unused_variables))]
mod placement;
#[cfg(feature = "names")]
pub(crate) mod probe;
mod rates;
mod refusal;
mod source;
#[cfg(feature = "names")]
mod traced_probe;

pub(crate) use bits::{EventBits, HARDWARE_FILTER, exclusions};
#[cfg(feature = "names")]
pub(crate) use native::NativeNames;
#[cfg(all(test, feature = "names"))]
pub(crate) use placement::Unit;
pub(crate) use placement::{Counting, Placement, Resolved};
pub(crate) use rates::Rates;
pub(crate) use source::EventSource;
#[cfg(test)]
pub(crate) use source::tests;
#[cfg(feature = "names")]
pub(crate) use traced_probe::{TracedProbe, make_inheritable};
