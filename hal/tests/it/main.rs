//! Tests of the public interface: the text form of events, and scaling.

mod max_rate;
mod scale;
mod text;
mod text_properties;
