#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod architectural;
mod cpu_table;
mod database;
mod decode;
mod describe;
mod description;
mod details;
mod encode;
mod event_map;
#[cfg(feature = "files")]
mod files;
pub mod identify;
mod increment;
mod layers;
mod metrics;
mod pmu_names;
mod standard_presets;
mod uncore;

pub use cpu_table::CpuTable;
pub use database::{CpuSummary, Database, Origin};
pub use decode::Decoded;
pub use describe::{Field, describe};
pub use details::{EventDetails, GeneralizedEvent, PresetEvent};
pub use encode::Interface;
pub use event_map::CpuEvents;
#[cfg(feature = "files")]
pub use files::{check_file, check_text};
pub use layers::LayerFile;
pub use metrics::MetricDetails;
#[cfg(feature = "files")]
pub use quipu_events_format::Diagnostic;
pub use quipu_events_format::{Formula, FormulaError, Revisions, Threshold};
pub use standard_presets::counted_by;
pub use uncore::UncoreDetails;
