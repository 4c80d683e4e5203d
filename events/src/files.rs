//! Event files: layers on top of the embedded tables.

use std::fs;
use std::io::{ErrorKind as IoErrorKind, Read as _};
use std::path::Path;

use quipu_events_format::name::Names;
use quipu_events_format::packed::{CpuView, Table};
use quipu_events_format::{BaseLayer, Bits, Diagnostic, LARGEST_FILE, Layer as FileLayer};
use quipu_hal::{Error, ErrorKind, Result, Scheme};

use crate::cpu_table::CpuTable;
use crate::database::Database;
use crate::layers::{Layer, LayerFile};

impl Database {
    /// Returns the database with a file on top.
    ///
    /// # Errors
    /// [`Os`](ErrorKind::Os) and its like when the file cannot be read;
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when there is anything wrong with what
    /// it says, with the first finding as the reason.
    pub fn with_file(&self, path: &Path) -> Result<Self> {
        let (text, is_roots) = read(path)?;
        let layer = self.check(path, &text)?;
        // Not both the text and the table at a time.
        drop(text);
        if is_roots {
            return Ok(self.with_layer(path, layer));
        }
        self.without_consent(path, layer)
    }

    /// Returns the database with the text of a file on top; `path` is its name.
    ///
    /// # Errors
    /// As [`with_file`](Self::with_file). A text is no file of root's: it cannot `allow` a backend.
    pub fn with_text(&self, path: &Path, text: &str) -> Result<Self> {
        let layer = self.check(path, text)?;
        self.without_consent(path, layer)
    }

    /// Adds a layer of a file that another user than root may have written.
    fn without_consent(&self, path: &Path, layer: FileLayer) -> Result<Self> {
        match layer.allowed() {
            [] => Ok(self.with_layer(path, layer)),
            [backend, ..] => Err(Error::new(
                ErrorKind::InvalidConfiguration,
                format!("use the event file {}", path.display()),
            )
            .with_reason(format!(
                "it allows {backend}, which a file may do only if root owns it and no other user can write to it"
            ))
            .with_hint("move `allow` to /etc/quipu/events.toml")),
        }
    }

    /// Reads and checks the text of a file.
    fn check(&self, path: &Path, text: &str) -> Result<FileLayer> {
        let name = path.display().to_string();
        FileLayer::read(&[(&name, text)], self).map_err(|findings| {
            let first = findings.first().map(ToString::to_string);
            let error = Error::new(ErrorKind::InvalidConfiguration, "use the event file")
                .with_reason(first.unwrap_or_default());
            match findings.len() {
                ..=1 => error,
                all => error.with_hint(format!("`quipu events check {name}` lists all {all}")),
            }
        })
    }

    fn with_layer(&self, path: &Path, layer: FileLayer) -> Self {
        let name = path.display().to_string();
        let layers = self.layers.with(Layer {
            allowed: layer.allowed().to_vec(),
            table: Table::new(layer.write(&[&name])),
            origin: LayerFile::File(path.to_owned()),
        });
        Self { layers }
    }
}

impl BaseLayer for Database {
    fn scheme(&self, id: &str) -> Option<Scheme> {
        Some(CpuTable::new(self.layers.clone(), id)?.scheme())
    }

    fn counters(&self, id: &str) -> (Option<u8>, Option<u8>) {
        let first = |number: fn(&CpuView<'_>) -> Option<u8>| {
            self.layers.views(id).find_map(|(_, view)| number(&view))
        };
        (
            first(|view| view.general().map(|counters| counters.number)),
            first(|view| view.fixed().map(|counters| counters.number)),
        )
    }

    fn find(&self, id: &str, event: &str, mask: &str) -> Option<Bits> {
        Names::find(&CpuTable::new(self.layers.clone(), id)?, event, mask)
    }

    fn default_masks(&self, id: &str, event: &str) -> Vec<Bits> {
        CpuTable::new(self.layers.clone(), id)
            .map(|table| Names::default_masks(&table, event))
            .unwrap_or_default()
    }

    fn ids(&self) -> Vec<String> {
        let cpus = self.layers.iter().flat_map(|layer| layer.table.cpus());
        cpus.map(|cpu| cpu.id().to_owned()).collect()
    }

    fn has_preset(&self, id: &str, name: &str) -> bool {
        CpuTable::new(self.layers.clone(), id).is_some_and(|table| table.preset(name).is_some())
    }

    fn resolves(&self, id: &str, name: &str) -> bool {
        CpuTable::new(self.layers.clone(), id).is_some_and(|table| table.select(name).is_ok())
    }

    fn has_generalized(&self, id: &str, name: &str) -> bool {
        CpuTable::new(self.layers.clone(), id)
            .is_some_and(|table| table.generalized_event(name).is_some())
    }
}

/// Returns the text of a file, and true if root alone may have written it.
fn read(path: &Path) -> Result<(String, bool)> {
    let refuse = |kind| Error::new(kind, format!("read the event file {}", path.display()));
    let os = |error: std::io::Error| {
        let kind = match error.kind() {
            IoErrorKind::PermissionDenied => ErrorKind::NoPermission,
            IoErrorKind::NotFound => {
                return refuse(ErrorKind::Os).with_reason("there is no such file");
            }
            _ => ErrorKind::Os,
        };
        match error.raw_os_error() {
            Some(errno) => refuse(kind).with_errno(errno),
            None => refuse(kind).with_reason(error.to_string()),
        }
    };
    // A pipe or a device has no size to look at beforehand.
    let file = fs::File::open(path).map_err(os)?;
    let about = file.metadata().ok();
    let is_roots = about.as_ref().is_some_and(is_roots);
    let size = about.map_or(0, |about| about.len() as usize);
    // One more byte, so that the end is found without growing.
    let mut bytes = Vec::with_capacity(size.min(LARGEST_FILE) + 1);
    file.take(LARGEST_FILE as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(os)?;
    if bytes.len() > LARGEST_FILE {
        return Err(refuse(ErrorKind::InvalidConfiguration)
            .with_reason(format!("it is larger than {} MiB", LARGEST_FILE >> 20)));
    }
    let text = String::from_utf8(bytes).map_err(|error| {
        refuse(ErrorKind::InvalidConfiguration).with_reason(format!(
            "it is not UTF-8 from byte {} on",
            error.utf8_error().valid_up_to()
        ))
    })?;
    Ok((text, is_roots))
}

/// Returns true if a file is root's, and neither a group nor everybody may write it.
#[cfg(unix)]
fn is_roots(about: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    about.uid() == 0 && about.mode() & 0o022 == 0
}

#[cfg(not(unix))]
fn is_roots(_: &fs::Metadata) -> bool {
    false
}

/// Returns every finding in an event file, read as a layer over `below`.
///
/// # Errors
/// When the file cannot be read at all.
pub fn check_file(path: &Path, below: &Database) -> Result<Vec<Diagnostic>> {
    let (text, _) = read(path)?;
    Ok(check_text(&path.display().to_string(), &text, below))
}

/// Returns every finding in the text of an event file.
///
/// ```
/// use quipu_events::{Database, check_text};
///
/// let text = "[[cpu]]\nid = \"amd-zen4\"\n[cpu.presets]\nP = \"ex_ret_instr + ex_ret_brm\"\n";
/// let findings = check_text("mine.toml", text, &Database::embedded());
/// assert_eq!(
///     findings[0].to_string(),
///     "mine.toml:4:5: P names `ex_ret_brm`: there is no such event"
/// );
/// ```
pub fn check_text(name: &str, text: &str, below: &Database) -> Vec<Diagnostic> {
    let layer = FileLayer::read(&[(name, text)], below);
    layer.err().unwrap_or_default()
}
