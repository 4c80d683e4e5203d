//! The reports of `quipu stat` on counts that are given.

mod csv;
mod json;
mod metric_only;
mod metrics;
mod notes;
mod number;
mod overhead;
mod repeat;
mod sample;
mod text;
