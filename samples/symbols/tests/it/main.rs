//! Functions at addresses of programs.

mod apart;
mod built;
mod code_file;
mod compiler;
mod compressed;
mod go_program;
#[cfg(target_os = "linux")]
mod jit_map;
mod jit_names;
mod kept;
mod kernel;
mod known;
mod mapped;
mod nested;
#[cfg(target_os = "linux")]
mod own_files;
mod own_program;
mod short_ids;
mod unwinding;
