//! Tests of the public interface: the text form of events, and scaling.

mod scale;
mod text;
mod text_properties;
