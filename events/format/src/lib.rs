//! Event files and the binary event table.
//!
//! `quipu-events` is made of this crate: [`compile`] checks event files (TOML) and makes a
//! binary table of them, [`packed::Table`] reads one in place, and [`name`] looks up written event names.
//! Programs use `quipu-events`; this crate changes with it.
//!
//! ```
//! use quipu_events_format::packed::Table;
//! use quipu_events_format::{NoBase, compile};
//!
//! let file = "[[cpu]]\nid = \"x-a\"\nscheme = \"p6\"\n[cpu.events]\nLOADS = 0x43\n";
//! let table = Table::new(compile(&[("mine.toml", file)], &NoBase).unwrap());
//! let cpu = table.cpus().next().unwrap();
//! assert_eq!(cpu.find("loads", "").unwrap().bits().code, 0x43);
//!
//! let findings = compile(&[("mine.toml", &file.replace("scheme", "shceme"))], &NoBase).unwrap_err();
//! assert_eq!(findings[1].to_string(), "mine.toml:3:1: unknown key `shceme`; did you mean `scheme`?");
//! ```
//!
//! Without the feature `files` nothing reads or writes event files, and without `tables` there are formulas alone.

#![forbid(unsafe_code)]

mod formula;
mod generalized;

pub use formula::{Formula, FormulaError};
pub use generalized::cache_key;

cfg_if::cfg_if! {
    if #[cfg(feature = "tables")] {
        mod bits;
        mod masks;
        pub mod name;
        pub mod packed;
        pub mod pattern;
        mod printable;
        mod revisions;
        mod threshold;

        pub use masks::Together;
        pub use bits::{Bits, Counters, ISAS, SCHEMES, flag, is_software, isa_of, join};
        pub use printable::shortened;
        pub use revisions::Revisions;
        pub use threshold::Threshold;
    }
}

cfg_if::cfg_if! {
    if #[cfg(feature = "files")] {
        mod check;
        mod cpu;
        mod descriptions;
        mod diagnostics;
        mod document;
        mod events;
        mod fields;
        mod layer;
        mod metrics;
        mod model;
        mod numbers;
        mod pieces;
        pub mod settings;
        mod strings;
        mod uncore;

        pub use descriptions::DescriptionFiles;
        pub use diagnostics::Diagnostic;
        pub use layer::{BaseLayer, LARGEST_FILE, Layer, NoBase, compile};
        pub use metrics::compile_metrics;
        pub use uncore::compile_uncore;
    }
}
