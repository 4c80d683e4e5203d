//! The C functions called from Rust, and the header and the guide that describe them.

#[path = "../commands/mod.rs"]
mod commands;
#[macro_use]
#[path = "../structs/mod.rs"]
mod structs;

mod database;
mod header;
mod misuse;
mod nulls;
mod papi_table;
mod readings;
mod sampler;
