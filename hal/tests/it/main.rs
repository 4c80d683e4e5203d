//! Tests of the public interface.

mod display;
mod encoding;
mod error;
mod max_rate;
mod readings;
mod scale;
mod slots;
mod words;
