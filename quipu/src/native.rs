//! The native events of a machine: its tables of the event database, opened when first needed.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use quipu_events::{CpuTable, Database, Interface};
use quipu_hal::{Error, EventMap, Result};

/// The native events of a machine: one table for each kind of core.
///
/// Nothing is read and the CPU is not asked before the first table is wanted; then both happen once.
///
/// ```
/// use quipu::NativeEvents;
///
/// let pentium = NativeEvents::new().of_cpu("intel-p5");
/// assert!(!pentium.is_open());
/// assert_eq!(pentium.tables()?[0].name(), "Intel Pentium");
/// assert!(pentium.is_open());
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct NativeEvents {
    cpu: Option<String>,
    file: Option<PathBuf>,
    opened: OnceLock<Result<Opened>>,
}

#[derive(Debug)]
struct Opened {
    database: Database,
    tables: Result<Vec<CpuTable>>,
    left_out: Vec<Error>,
}

impl NativeEvents {
    /// Those of this machine, from the embedded database and the event files of this system and user
    /// ([`Database::open`]).
    pub fn new() -> Self {
        Self::default()
    }

    /// The one that [`Machine::this`](crate::Machine::this) uses.
    pub fn this() -> &'static Arc<Self> {
        static THIS: OnceLock<Arc<NativeEvents>> = OnceLock::new();
        THIS.get_or_init(Arc::default)
    }

    /// The same as if this machine had another CPU, by its id in the database.
    #[must_use]
    pub fn of_cpu(mut self, id: impl Into<String>) -> Self {
        self.cpu = Some(id.into());
        self
    }

    /// The same with an event file on top of the others.
    #[must_use]
    pub fn with_file(mut self, path: impl Into<PathBuf>) -> Self {
        self.file = Some(path.into());
        self
    }

    /// The database.
    ///
    /// # Errors
    /// When the [file](Self::with_file) cannot be used. Others that cannot are left out; see
    /// [`left_out`](Self::left_out).
    pub fn database(&self) -> Result<&Database> {
        Ok(&self.open()?.database)
    }

    /// The tables: one for each kind of core.
    ///
    /// # Errors
    /// As [`database`](Self::database); [`UnsupportedFeature`](quipu_hal::ErrorKind::UnsupportedFeature)
    /// or [`NoSuchDevice`](quipu_hal::ErrorKind::NoSuchDevice) when the database does not know this CPU
    /// or nobody says which it is; [`InvalidConfiguration`](quipu_hal::ErrorKind::InvalidConfiguration)
    /// when there is none of the [id](Self::of_cpu).
    pub fn tables(&self) -> Result<&[CpuTable]> {
        self.open()?.tables.as_deref().map_err(Clone::clone)
    }

    /// The tables as a backend takes them.
    ///
    /// # Errors
    /// As [`tables`](Self::tables).
    pub fn maps(&self, interface: Interface) -> Result<Vec<Arc<dyn EventMap>>> {
        let map = |table: &CpuTable| Arc::new(table.events_for(interface)) as Arc<dyn EventMap>;
        Ok(self.tables()?.iter().map(map).collect())
    }

    /// Whether the database has been opened.
    pub fn is_open(&self) -> bool {
        self.opened.get().is_some()
    }

    /// The event files that were left out when the database was opened, each with the reason. Opens
    /// nothing.
    pub fn left_out(&self) -> &[Error] {
        match self.opened.get() {
            Some(Ok(opened)) => &opened.left_out,
            _ => &[],
        }
    }

    fn open(&self) -> Result<&Opened> {
        let opened = self.opened.get_or_init(|| {
            let (database, left_out) = Database::open_sound(self.file.as_deref())?;
            let tables = match &self.cpu {
                Some(id) => database.cpu(id).map(|table| vec![table]),
                None => database.this_machine(),
            };
            Ok(Opened {
                database,
                tables,
                left_out,
            })
        });
        opened.as_ref().map_err(Clone::clone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_hal::ErrorKind;

    #[test]
    fn nothing_is_opened_before_it_is_wanted() {
        let native = NativeEvents::new().with_file("/nowhere/events.toml");
        assert!(native.left_out().is_empty() && !native.is_open());
        let error = native.tables().expect_err("no such file");
        assert!(
            error.to_string().contains("/nowhere/events.toml"),
            "{error}"
        );
        assert!(native.is_open());
    }

    #[test]
    fn another_cpu_has_its_own_events() {
        let zen = NativeEvents::new().of_cpu("amd-zen4");
        let ids: Vec<_> = zen.tables().unwrap().iter().map(CpuTable::id).collect();
        assert_eq!(ids, ["amd-zen4"]);
        assert_eq!(zen.maps(Interface::Linux).unwrap().len(), 1);
        let none = NativeEvents::new().of_cpu("amd-zen0");
        assert_eq!(
            none.tables().unwrap_err().kind(),
            ErrorKind::InvalidConfiguration
        );
        assert!(none.database().is_ok());
    }
}
