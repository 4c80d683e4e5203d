//! Event files: TOML in, checked tables out. The build script compiles the embedded database with it,
//! and users' layers go through the same door at run time.

mod check;
mod cpu;
pub(crate) mod diagnostics;
mod events;
pub(crate) mod fields;
pub(crate) mod generalized;
pub(crate) mod model;
mod reach;

use diagnostics::{Diagnostic, Findings, Source};
use model::{Bits, Cpu, Scheme};

/// The largest event file that is read.
pub(crate) const LARGEST_FILE: usize = 32 << 20;

/// What the layers below already know, for references across layers.
pub(crate) trait Below {
    /// The scheme of a CPU entry, if there is such an entry.
    fn scheme(&self, id: &str) -> Option<Scheme>;

    /// Its number of counters: general, then fixed.
    fn counters(&self, id: &str) -> (Option<u8>, Option<u8>);

    /// An event of a CPU entry, those of its base included.
    fn find(&self, id: &str, event: &str, mask: &str) -> Option<Bits>;

    /// The masks of an event that are taken when none is named.
    fn default_masks(&self, id: &str, event: &str) -> Vec<Bits>;

    /// Whether a CPU entry says what this generalized event is on it.
    fn has_generalized(&self, id: &str, name: &str) -> bool;
}

/// Reads and checks the files of one layer: `(name, text)` each.
///
/// # Errors
/// Every finding in every file, by place.
pub(crate) fn read_layer(
    files: &[(&str, &str)],
    below: &dyn Below,
) -> Result<Vec<Cpu>, Vec<Diagnostic>> {
    let mut findings = Findings::default();
    let mut cpus = Vec::new();
    for (index, (file, text)) in files.iter().enumerate() {
        if text.len() > LARGEST_FILE {
            let message = format!("the file is larger than {} MiB", LARGEST_FILE >> 20);
            findings.add_at_line(file, 1, message);
            continue;
        }
        let source = Source::new(file, text);
        cpus.extend(cpu::read_file(&source, index as u32, &mut findings));
    }
    check::check(&mut cpus, files, below, &mut findings);
    if findings.is_empty() {
        Ok(cpus)
    } else {
        Err(findings.into_sorted())
    }
}
