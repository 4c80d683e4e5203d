#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod address_space;
mod call_frames;
mod code;
mod debug_files;
mod demangled;
mod elf;
mod functions;
mod go;
mod input;
mod jit;
mod kernel;
mod left_out;
mod lines;
mod maps_line;
mod plt;
mod processes;
mod section;
mod symbolizer;
mod table;
mod unwind;

pub use address_space::Mapped;
pub use code::{Code, CodeFile, NoCode};
pub use demangled::demangle;
pub use elf::build_id_of;
pub use kernel::{KernelSymbols, Reference};
pub use left_out::LeftOut;
pub use maps_line::MapsLine;
pub use processes::Processes;
pub use symbolizer::{AddressOwner, Function, FunctionId, Symbolizer};
pub use unwind::{Architecture, ThreadState};
