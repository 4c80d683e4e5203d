//! Tests of the public interface.

mod text;
mod text_properties;
mod written;
