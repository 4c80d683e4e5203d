//! Tests of the public interface: errors, scaling and bounds.

mod error;
mod max_rate;
mod scale;
