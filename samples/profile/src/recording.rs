//! Recordings: opening one, and going through its records in the order of their times.

mod chain;
mod deferred;
mod input;
mod kernel;
mod listed;
mod not_unwound;
mod open;
mod owner;
mod places;
mod replay;
mod selection;

pub(crate) use chain::ChainFrame;
pub(crate) use input::Input;
#[cfg(unix)]
pub use input::name;
#[cfg(unix)]
pub use open::reader;
pub(crate) use owner::{owner, owner_of_address};
pub(crate) use places::{Inlined, Place, Places};
pub(crate) use replay::{Replay, Visit, note_on_left_out};
#[cfg(target_os = "linux")]
pub(crate) use selection::NameOptions;
pub(crate) use selection::{SampleSelection, SelectionOptions};
