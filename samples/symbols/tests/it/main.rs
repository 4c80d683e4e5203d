//! Functions at addresses of programs.

mod compressed;
mod own_program;
