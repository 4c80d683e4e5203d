//! Tests of the text form of events through its public interface.

mod text;
mod text_properties;
