//! Makes the tables of the event database: event files from the lists that vendors publish, and the packed tables
//! from event files. [docs/event-database.md](../../../docs/event-database.md) has the commands.

#![forbid(unsafe_code)]

pub mod lists;
pub mod pack;
