//! The database: the embedded tables, and users' layers on top of them.

use std::path::{Path, PathBuf};

use quipu_environment::variable;
use quipu_events_format::name::select;
use quipu_events_format::packed::{CpuView, Table};
use quipu_events_format::shortened;
use quipu_hal::{Error, ErrorKind, Result, Scheme};
use quipu_text::nearest_of;

use crate::cpu_table::CpuTable;
use crate::layers::{Layer, LayerFile, Layers};
use crate::{description, metrics, uncore};

/// The table of `db/*.toml`, which `quipu-import pack` makes.
static EMBEDDED: &[u8] = include_bytes!("../tables/events.bin");

/// The most bytes that the tables may add to a program.
const LARGEST_EMBEDDED: usize = 3 << 20;
const _: () = assert!(
    EMBEDDED.len() + uncore::EMBEDDED.len() + description::EMBEDDED.len() + metrics::EMBEDDED.len()
        <= LARGEST_EMBEDDED,
    "the event database has outgrown its bound"
);

/// Event tables in layers: later layers add entries or override them one by one.
///
/// Cloning is cheap, and opening the embedded layer decodes nothing.
///
/// ```
/// use std::path::Path;
///
/// use quipu_events::{Database, LayerFile};
///
/// let mine = "[[cpu]]\nid = \"intel-skl\"\n[cpu.events]\nMY_LOADS = { code = 0xd0, unit-mask = 0x81 }\n";
/// let database = Database::embedded().with_text(Path::new("mine.toml"), mine)?;
/// let event = database.cpu("intel-skl")?.event("my_loads").expect("it was added");
/// assert_eq!((event.code, event.unit_mask), (0xd0, 0x81));
/// assert_eq!(event.layer, LayerFile::File("mine.toml".into()));
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Database {
    pub(crate) layers: Layers,
}

/// A CPU entry in short.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CpuSummary {
    /// The id: `intel-p5`.
    pub id: String,
    /// The name for people.
    pub name: String,
    /// The scheme its events are encoded in.
    pub scheme: Scheme,
}

/// The location of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Origin {
    /// The layer.
    pub layer: LayerFile,
    /// The CPU entry it belongs to: the CPU's own, or its base.
    pub cpu: String,
    /// The file: for the embedded layer its path in the source tree.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The name as it is written there.
    pub name: String,
}

impl Database {
    /// Returns the embedded database alone.
    pub fn embedded() -> Self {
        Self {
            layers: Layers::of(Layer {
                table: Table::new(EMBEDDED),
                origin: LayerFile::Embedded,
                allowed: Vec::new(),
            }),
        }
    }

    /// Opens the embedded database with the layers of this system and user: `/etc/quipu/events.toml`,
    /// `$XDG_CONFIG_HOME/quipu/events.toml`, `$QUIPU_EVENTS`, then `file`. The first two may be missing.
    ///
    /// # Errors
    /// As [`with_file`](Self::with_file).
    pub fn open(file: Option<&Path>) -> Result<Self> {
        let (database, left_out) = Self::open_lenient(file)?;
        match left_out.into_iter().next() {
            Some(error) => Err(error),
            None => Ok(database),
        }
    }

    /// Opens as [`open`](Self::open), but leaves out the files of this system and user that cannot be used,
    /// and returns the errors.
    ///
    /// # Errors
    /// As [`with_file`](Self::with_file), for `file`.
    pub fn open_lenient(file: Option<&Path>) -> Result<(Self, Vec<Error>)> {
        let mut database = Self::embedded();
        let mut left_out = Vec::new();
        let named = variable("QUIPU_EVENTS").filter(|name| !name.is_empty());
        let there = standard_files().into_iter().filter(|path| path.is_file());
        for path in there.chain(named.map(PathBuf::from)) {
            match database.with_file(&path) {
                Ok(more) => database = more,
                Err(error) => left_out.push(error),
            }
        }
        if let Some(file) = file {
            database = database.with_file(file)?;
        }
        Ok((database, left_out))
    }

    /// Returns the database with a file on top: it is refused, as this program was built without reading files.
    #[cfg(not(feature = "files"))]
    fn with_file(&self, path: &Path) -> Result<Self> {
        let attempted = format!("use the event file {}", path.display());
        Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
            .with_reason("this program was built without reading event files")
            .with_hint("build it with the feature `event-files` of quipu-counters"))
    }

    /// Returns true if this system or user has an event file, as [`open`](Self::open) reads them. Reads none.
    pub fn has_user_files() -> bool {
        variable("QUIPU_EVENTS").is_some_and(|name| !name.is_empty())
            || standard_files().iter().any(|path| path.is_file())
    }

    /// Returns true if a file of root's consents to a backend that otherwise counts only if it is named (`allow`).
    pub fn allows(&self, backend: &str) -> bool {
        let mut allowed = self.layers.iter().flat_map(|layer| &layer.allowed);
        allowed.any(|name| name == backend)
    }

    /// Returns the CPU entries, in the order in which they are tried.
    pub fn cpus(&self) -> Vec<CpuSummary> {
        let mut cpus: Vec<CpuSummary> = Vec::new();
        for layer in self.layers.iter() {
            for view in layer.table.cpus() {
                if cpus.iter().any(|known| known.id == view.id()) {
                    continue;
                }
                if let Ok(table) = self.cpu(view.id()) {
                    cpus.push(CpuSummary {
                        id: table.id().to_owned(),
                        name: table.name().to_owned(),
                        scheme: table.scheme(),
                    });
                }
            }
        }
        cpus
    }

    /// Returns the table of a CPU by id.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when there is no such entry, with the
    /// nearest id as the hint.
    pub fn cpu(&self, id: &str) -> Result<CpuTable> {
        CpuTable::new(self.layers.clone(), id).ok_or_else(|| {
            let shown = shortened(id);
            let error = Error::new(
                ErrorKind::InvalidConfiguration,
                format!("use the CPU {shown}"),
            )
            .with_reason("the event database has no such CPU");
            let cpus = || self.layers.iter().flat_map(|layer| layer.table.cpus());
            let near = match nearest_of(id, cpus().map(|cpu| cpu.id()))[..] {
                [nearest, ..] => vec![nearest],
                [] => called(id, cpus()),
            };
            match near[..] {
                [] => error.with_hint("`quipu list cpus` lists them"),
                _ => error.with_hint(format!("did you mean {}?", near.join(", "))),
            }
        })
    }
}

impl CpuTable {
    /// Returns every definition of a name, the one in force first.
    pub fn origins(&self, name: &str) -> Vec<Origin> {
        let head = name.split(':').next().unwrap_or(name);
        let known = select(self, name).is_ok() || self.bits_of(head).is_some();
        let (event, mask) = head.split_once('.').unwrap_or((head, ""));
        let first_mask = name.split(':').nth(1).unwrap_or_default();
        let mut origins = Vec::new();
        for (layer, view) in self.views() {
            let entry = view
                .find(event, mask)
                .filter(|_| mask.is_empty() && first_mask.is_empty() || !mask.is_empty())
                .or_else(|| view.find(event, first_mask))
                .or_else(|| view.find(event, mask));
            let mapping = view
                .presets()
                .chain(view.generalized())
                .find(|mapping| mapping.name() == name);
            let found = match (entry, mapping) {
                (Some(entry), _) if known => (entry.name(), entry.line()),
                (_, Some(mapping)) => (mapping.name(), mapping.line()),
                _ => continue,
            };
            origins.push(Origin {
                layer: layer.origin.clone(),
                cpu: view.id().to_owned(),
                file: view.file().to_owned(),
                line: found.1,
                name: found.0.to_owned(),
            });
        }
        origins
    }
}

/// Returns the ids of the CPUs in whose id or name a text stands (`zen4`, `skylake`), the first few.
fn called<'t>(text: &str, cpus: impl Iterator<Item = CpuView<'t>>) -> Vec<&'t str> {
    const SHORTEST: usize = 2;
    const MOST: usize = 4;
    let text = text.to_ascii_lowercase();
    let has = |cpu: &CpuView<'_>| {
        let name = cpu.name().to_ascii_lowercase();
        cpu.id().contains(&text) || name.contains(&text) || name.replace(' ', "").contains(&text)
    };
    let found = cpus.filter(|cpu| text.len() >= SHORTEST && has(cpu));
    found.map(|cpu| cpu.id()).take(MOST).collect()
}

/// Returns the files that are read where they exist.
fn standard_files() -> Vec<PathBuf> {
    let config = variable("XDG_CONFIG_HOME")
        .filter(|home| Path::new(home).is_absolute())
        .map(PathBuf::from)
        .or_else(|| Some(PathBuf::from(variable("HOME")?).join(".config")));
    std::iter::once(PathBuf::from("/etc"))
        .chain(config)
        .map(|folder| folder.join("quipu/events.toml"))
        .collect()
}
