#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
// They panic where the stream cannot be written to.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod address_space;
mod archive;
mod build_id;
mod call_frames;
mod code;
mod copies;
mod debug_files;
mod debuginfod;
mod demangled;
mod elf;
mod excerpt;
mod functions;
mod go;
mod image;
mod inline_depth;
mod input;
mod jit;
#[cfg(target_os = "linux")]
mod jit_map;
mod jit_names;
mod jitdump;
mod kept;
mod kept_bytes;
mod kept_rules;
mod kernel;
mod kernel_module;
mod kernel_space;
mod left_out;
mod lines;
mod loaded;
mod locate;
mod mapped_file;
mod maps_line;
mod no_names;
mod packed;
mod plt;
mod process_maps;
mod processes;
mod recorded_symbols;
mod section;
mod symbolizer;
mod table;
mod unwind;

pub use address_space::Mapped;
pub use build_id::{build_id_of_this_kernel, is_same_build_id};
pub use code::{Code, CodeFile, NoCode};
pub use copies::Copies;
pub use demangled::demangle;
pub use elf::build_id_of;
pub use excerpt::copy_excerpt;
pub use image::ReadFile;
pub use input::regular_file;
#[cfg(target_os = "linux")]
pub use jit_map::JitMap;
pub use kept::KeptNames;
pub use kernel::{InKernel, KernelSymbols, KernelText, Reference};
pub use kernel_module::ModuleCode;
pub use left_out::LeftOut;
pub use loaded::{LoadedCode, LoadedFile};
pub use locate::{Doubt, build_id_of_mapped, identity_of_file, is_file_of, open_mapped};
pub use mapped_file::{FileIdentity, MappedFile};
pub use maps_line::MapsLine;
pub use no_names::NoNames;
pub use process_maps::ProcessMaps;
pub use processes::Processes;
pub use recorded_symbols::{RecordedAddresses, RecordedSymbols};
pub use symbolizer::{AddressOwner, Function, FunctionId, Symbolizer};
pub use unwind::{Architecture, CallerOf, ThreadState};
