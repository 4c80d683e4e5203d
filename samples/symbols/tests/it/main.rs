//! Functions at addresses of programs.

mod apart;
mod compressed;
mod own_program;
mod short_ids;
