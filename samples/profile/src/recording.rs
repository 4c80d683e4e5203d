//! Recordings: opening one, and going through its records in the order of their times.

mod chain;
mod cut_chain;
mod debug_package;
mod deferred;
mod function_names;
mod input;
mod kernel;
mod listed;
mod memory;
mod no_names;
mod not_unwound;
mod open;
mod owner;
mod places;
mod replay;
mod selection;
mod symbol_options;
mod visit;

pub(crate) use chain::ChainFrame;
pub(crate) use cut_chain::{ChainSource, FrameKind};
pub(crate) use input::Input;
#[cfg(unix)]
pub use input::name;
pub(crate) use no_names::{Nameless, NamelessCounts, note_on_left_out};
#[cfg(unix)]
pub use open::reader;
pub(crate) use owner::{is_fault, owner, owner_of_address};
pub(crate) use places::{Inlined, Place, Places};
pub(crate) use replay::Replay;
#[cfg(target_os = "linux")]
pub(crate) use replay::identity_of;
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) use selection::NameOptions;
pub(crate) use selection::{SampleSelection, SelectionOptions};
pub(crate) use symbol_options::SymbolOptions;
pub(crate) use visit::Visit;
