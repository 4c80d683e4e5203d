//! Encodings: the bits a backend programs for an event on a given CPU.
//!
//! One module per scheme knows its layout. A database makes encodings, a backend consumes them, and
//! neither knows the other.

mod armv8;
mod fixed;
mod p5;
mod perf;
mod x86;

pub use armv8::Armv8Event;
pub use fixed::FixedCounter;
pub use p5::P5Function;
pub use perf::PerfConfig;
pub use x86::{ExtraRegister, X86Select};

/// The bits for one event in the scheme of the counter that shall count it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Encoding {
    /// An x86 event select word (P6 and later Intel, K7 and later AMD), with extra registers.
    X86(X86Select),
    /// A 9-bit function of the Pentium's CESR.
    P5(P5Function),
    /// An Intel fixed-function counter.
    Fixed(FixedCounter),
    /// An ARMv8 PMU event type.
    Armv8(Armv8Event),
    /// A perf_event type and its config words.
    Perf(PerfConfig),
    /// The time stamp counter, which needs no bits.
    TimeStamp,
    /// An event number of the simulated PMU.
    Simulated(u64),
}
