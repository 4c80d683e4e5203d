//! Notes on standard error.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());

/// Writes a line to standard error, once in a process: groups of benchmarks make a counter each.
pub(crate) fn once(text: String) {
    let mut said = SAID.lock().unwrap_or_else(PoisonError::into_inner);
    if !said.contains(&text) {
        // A note that cannot be written is left out.
        let _ = writeln!(std::io::stderr(), "quipu-criterion: {text}");
        said.insert(text);
    }
}
