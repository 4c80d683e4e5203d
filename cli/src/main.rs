//! The `quipu` command.
#![forbid(unsafe_code)]

fn main() {}
