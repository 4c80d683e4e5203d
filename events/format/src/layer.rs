//! One layer of event files: read, checked, and made a binary table.

use quipu_hal::Scheme;

use crate::bits::Bits;
use crate::descriptions::DescriptionFiles;
use crate::diagnostics::{Diagnostic, Findings, Source};
use crate::strings::Strings;
use crate::{check, document, model, packed};

/// The largest event file that is read, in bytes.
pub const LARGEST_FILE: usize = 32 << 20;

/// The layers below a file: its entries may refer to theirs.
pub trait BaseLayer {
    /// Returns the scheme of a CPU entry, if there is such an entry.
    fn scheme(&self, id: &str) -> Option<Scheme> {
        let _ = id;
        None
    }

    /// Returns the number of general and of fixed counters of a CPU entry.
    fn counters(&self, id: &str) -> (Option<u8>, Option<u8>) {
        let _ = id;
        (None, None)
    }

    /// Returns an event of a CPU entry, those of its base included.
    fn find(&self, id: &str, event: &str, mask: &str) -> Option<Bits> {
        let _ = (id, event, mask);
        None
    }

    /// Returns the masks of an event that are taken when none is named.
    fn default_masks(&self, id: &str, event: &str) -> Vec<Bits> {
        let _ = (id, event);
        Vec::new()
    }

    /// Returns the ids of the CPU entries.
    fn ids(&self) -> Vec<String> {
        Vec::new()
    }

    /// Returns true if a CPU entry defines this preset.
    fn has_preset(&self, id: &str, name: &str) -> bool {
        let _ = (id, name);
        false
    }

    /// Returns true if an event with masks and modifiers is a name on a CPU entry, as an alias too.
    fn resolves(&self, id: &str, name: &str) -> bool {
        let _ = (id, name);
        false
    }

    /// Returns true if a CPU entry defines this generalized event.
    fn has_generalized(&self, id: &str, name: &str) -> bool {
        let _ = (id, name);
        false
    }
}

/// No layer below: the base of the embedded database.
#[derive(Debug, Clone, Copy)]
pub struct NoBase;

impl BaseLayer for NoBase {}

/// The checked contents of the files of one layer.
#[derive(Debug)]
pub struct Layer {
    allowed: Vec<String>,
    cpus: Vec<model::Cpu>,
    aliases: Vec<model::Aliases>,
    strings: Strings,
}

impl Layer {
    /// Reads and checks the files of one layer, `(name, text)` each.
    ///
    /// # Errors
    /// Every finding in every file, by location.
    pub fn read(files: &[(&str, &str)], base: &dyn BaseLayer) -> Result<Self, Vec<Diagnostic>> {
        let mut findings = Findings::default();
        let mut allowed = Vec::new();
        let mut cpus = Vec::new();
        let mut aliases = Vec::new();
        let mut strings = Strings::new();
        for (index, (file, text)) in files.iter().enumerate() {
            if text.len() > LARGEST_FILE {
                let message = format!("the file is larger than {} MiB", LARGEST_FILE >> 20);
                findings.add_at_line(file, 1, message);
                continue;
            }
            let source = Source::new(file, text);
            let contents = document::read_file(&source, index as u32, &mut strings, &mut findings);
            allowed.extend(contents.allowed);
            cpus.extend(contents.cpus);
            aliases.extend(contents.aliases);
        }
        check::check(
            &mut cpus,
            &mut aliases,
            &strings,
            files,
            base,
            &mut findings,
        );
        match findings.is_empty() {
            true => Ok(Self {
                allowed,
                cpus,
                aliases,
                strings,
            }),
            false => Err(findings.into_sorted()),
        }
    }

    /// Returns the backends that the files consent to, which otherwise count only if they are named (`allow`).
    pub fn allowed(&self) -> &[String] {
        &self.allowed
    }

    /// Returns its binary table; `files` are the names of the files that were read.
    pub fn write(self, files: &[&str]) -> Vec<u8> {
        self.write_described(files, &DescriptionFiles::default())
    }

    /// Returns its binary table with the numbers of the sentences for entries that have no description.
    pub fn write_described(self, files: &[&str], descriptions: &DescriptionFiles) -> Vec<u8> {
        packed::write(&self.cpus, &self.aliases, self.strings, files, descriptions)
    }
}

/// Reads and checks the files of one layer, `(name, text)` each, and returns their binary table.
///
/// # Errors
/// Every finding in every file, by location.
pub fn compile(files: &[(&str, &str)], base: &dyn BaseLayer) -> Result<Vec<u8>, Vec<Diagnostic>> {
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    Layer::read(files, base).map(|layer| layer.write(&names))
}
