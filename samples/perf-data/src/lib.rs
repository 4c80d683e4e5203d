#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod layout;

pub use layout::{BranchSampleType, ReadFormat, RecordLayout, SampleType};

cfg_if::cfg_if! {
    if #[cfg(feature = "formats")] {
        mod text;
        mod trace_format;

        pub use trace_format::{FieldList, FieldValue, TraceField, TraceFormat};
    }
}

cfg_if::cfg_if! {
    if #[cfg(feature = "records")] {
        mod attr;
        mod bytes;
        mod error;
        mod order;
        mod periods;
        pub mod record;
        mod record_header;
        mod sample;

        pub use attr::EventAttr;
        pub use bytes::Words;
        pub use error::Error;
        pub use order::TimeOrder;
        pub use periods::{Excess, Periods};
        pub use record::{CpuMode, Misc, RawRecord, Record, Records, ThreadId};
        pub use sample::{
            AbortReason, Blocked, Branch, BranchPrivilege, BranchStack, BranchType, Callchain, Context,
            CounterValue, DataSource, Frame, MemoryLevel, MemoryLevels, MemoryOperation, ReadValues,
            RegisterAbi, SampledRegisters, Sample, SampleId, Snoop, Speculation, TlbAccess, Transaction,
            UserStack, Weight,
        };

        /// The result of everything that can fail here.
        pub type Result<T, E = Error> = std::result::Result<T, E>;
    }
}

cfg_if::cfg_if! {
    if #[cfg(feature = "file")] {
        mod appendix;
        mod bpf_features;
        mod build_ids;
        mod byte_order;
        mod compression;
        mod event_name;
        mod event_names;
        mod features;
        mod file_records;
        mod header;
        mod losses;
        mod machine_features;
        mod pmu_features;
        mod read_deltas;
        mod reader;
        mod recorded_event;
        mod section;
        mod simpleperf;
        pub mod stat;
        mod stream_writer;
        pub mod synthesized;
        mod throttling;
        mod trace_print;
        mod tracing;
        mod writer;

        pub use appendix::append;
        pub use bpf_features::{BpfFunction, BpfProgram, BpfTypes};
        pub use build_ids::{BuildId, BuildIdOwner};
        pub use compression::{Compression, Compressor};
        pub use features::{EventGroup, Features};
        pub use file_records::FileRecords;
        pub use losses::Losses;
        pub use machine_features::{
            CpuCache, CpuNumbers, CpuTopology, MemoryBlocks, MemoryTopology, NumaNode,
        };
        pub use pmu_features::{PmuCapabilities, PmuCpus};
        pub use read_deltas::ReadDeltas;
        pub use reader::{Reader, is_stream};
        pub use recorded_event::RecordedEvent;
        pub use simpleperf::{RecordedFile, RecordedSymbol, SymbolAddresses};
        pub use stream_writer::StreamWriter;
        pub use throttling::Throttling;
        pub use trace_print::TracePrint;
        pub use tracing::TracingData;
        pub use writer::Writer;
    }
}

#[cfg(feature = "zstd")]
mod decompression;
