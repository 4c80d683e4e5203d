//! Tests of the importers and the program.

mod lists;
mod packed;
mod program;
