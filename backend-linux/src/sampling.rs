//! Sampling: a record each time an event has happened so many times, in a ring that the kernel writes
//! and the program reads (perf_event_open(2), "MMAP layout").
//!
//! [`LinuxBackend::open_sampler`](crate::LinuxBackend::open_sampler) opens a `Sampler` for a
//! `SamplerSpec` on a target. It has a `Ring` for each part of the target; `Ring::records` gives the
//! records that are there, in place, and [`RawRecord::decode`] says what they are.
//!
//! ```no_run
//! # #[cfg(target_os = "linux")]
//! # fn main() -> quipu_hal::Result<()> {
//! use std::time::Duration;
//!
//! use quipu_hal::{Software, Target};
//! use quipu_linux::LinuxBackend;
//! use quipu_linux::sampling::{Rate, Record, SampleType, SamplerSpec};
//!
//! let mut spec = SamplerSpec::new([(Software::CpuClock, Rate::Frequency(999))]);
//! spec.sample_type |= SampleType::CALLCHAIN;
//! let mut sampler = LinuxBackend::new()?.open_sampler(&spec, &Target::CurrentThread)?;
//! sampler.wait(Some(Duration::from_secs(1)))?;
//! let layout = *sampler.layout();
//! for ring in sampler.rings_mut() {
//!     for record in &mut ring.records() {
//!         if let Record::Sample(sample) = record?.decode(&layout)? {
//!             println!("{:x?} in {:?}", sample.ip(), sample.callchain());
//!         }
//!     }
//! }
//! # Ok(())
//! # }
//! # #[cfg(not(target_os = "linux"))]
//! # fn main() {}
//! ```
//!
//! Decoding is that of [`quipu_perf_data`], which needs the bytes and a [`RecordLayout`], on any operating
//! system, so it serves `perf.data` files as well. It allocates nothing, copies nothing and takes any
//! bytes. Samplers of several CPUs have a ring for each, in order by itself; [`TimeOrder`] brings them together.

pub use quipu_perf_data::record::{self, CpuMode, Misc, RawRecord, Record, Records, ThreadId};
pub use quipu_perf_data::{
    AbortReason, Blocked, Branch, BranchPrivilege, BranchSampleType, BranchStack, BranchType,
    Callchain, Context, CounterValue, DataSource, EventAttr, Excess, Frame, MemoryLevel,
    MemoryLevels, MemoryOperation, Periods, ReadFormat, ReadValues, RecordLayout, RegisterAbi,
    Sample, SampleId, SampleType, SampledRegisters, Snoop, Speculation, TimeOrder, TlbAccess,
    Transaction, UserStack, Weight, Words,
};

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod sampled_attr;
        mod aux_area;
        mod batch;
        mod counter;
        mod notices;
        mod open_sampler;
        mod ring;
        mod sampler;
        mod sampler_error;
        mod spec;

        pub use batch::{Batch, BatchIter};
        pub use counter::SampledCounter;
        pub use notices::{Losses, Throttled};
        pub use ring::Ring;
        pub use quipu_hal::Woken;
        pub use sampler::Sampler;
        pub use spec::{AuxAction, ExtraRecords, Rate, SampledEvent, SamplerFlags, SamplerSpec, Wakeup, WhenFull};
    }
}
