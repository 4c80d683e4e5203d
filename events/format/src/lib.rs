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
//! Without the feature `tables` there are formulas alone, and nothing that reads files.

#![forbid(unsafe_code)]

mod formula;
mod generalized;

pub use formula::{Formula, FormulaError};
pub use generalized::cache_key;

cfg_if::cfg_if! {
    if #[cfg(feature = "tables")] {
        mod check;
        mod cpu;
        mod descriptions;
        mod diagnostics;
        mod document;
        mod events;
        mod fields;
        mod layer;
        mod masks;
        mod metrics;
        mod model;
        pub mod name;
        mod numbers;
        pub mod packed;
        pub mod pattern;
        mod pieces;
        mod strings;
        mod uncore;

        pub use cpu::ISAS;
        pub use descriptions::DescriptionFiles;
        pub use diagnostics::Diagnostic;
        pub use fields::shortened;
        pub use layer::{BaseLayer, LARGEST_FILE, Layer, NoBase, compile};
        pub use masks::Together;
        pub use metrics::{Threshold, compile_metrics};
        pub use model::{Bits, Counters, SCHEMES, flag, is_software, join};
        pub use uncore::compile_uncore;
    }
}
