//! Recordings: opening one, and going through its records in the order of their times.

mod chain;
mod open;
mod places;
mod replay;
mod selection;

pub(crate) use chain::ChainFrame;
pub(crate) use open::Input;
#[cfg(unix)]
pub use open::{name, reader};
pub(crate) use places::{Place, Places};
pub(crate) use replay::{Replay, Visit, owner, owner_of_address};
#[cfg(target_os = "linux")]
pub(crate) use selection::NameOptions;
pub(crate) use selection::{Selection, SelectionOptions};
