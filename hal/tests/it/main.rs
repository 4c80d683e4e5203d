//! Tests of the public interface.

mod backend;
mod display;
mod encoding;
mod error;
mod events;
mod max_rate;
mod readings;
mod scale;
mod slots;
mod words;
