#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod attr;
mod bytes;
mod error;
mod features;
mod header;
mod order;
mod reader;
mod record;
pub mod synthesized;
mod tracing;
mod writer;

pub use attr::{EventAttr, RecordedEvent};
pub use error::Error;
pub use features::{BuildId, BuildIdPlace, Features};
pub use order::TimeOrder;
pub use reader::{Reader, Records};
pub use record::{Record, kind, misc};
pub use tracing::TracingData;
pub use writer::Writer;

/// The result of everything that can fail here.
pub type Result<T, E = Error> = std::result::Result<T, E>;
