//! Functions at addresses of programs.

mod apart;
mod built;
mod compressed;
mod nested;
mod own_program;
mod short_ids;
