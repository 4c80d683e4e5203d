//! Metrics for a collector of OpenTelemetry, by HTTP (OTLP 1.x, protobuf).

mod message;
mod queue;
mod sender;

pub(crate) use message::batches;
pub(crate) use sender::{Endpoint, Sender};
