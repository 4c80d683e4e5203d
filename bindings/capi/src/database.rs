//! The event database.

use std::ffi::c_char;
use std::sync::OnceLock;

use quipu_events::Database;

use crate::boundary::{self, guarded, one_of, share};
use crate::cpu_info::{Described, quipu_cpu_info};
use crate::handle::HandleTable;
use crate::quipu_status;

/// An open event database. A handle, not an address; any threads may use it.
pub struct quipu_database {
    _opaque: (),
}

pub(crate) static DATABASES: HandleTable<OpenDatabase> = HandleTable::new(5, "event database");

pub(crate) struct OpenDatabase {
    pub(crate) database: Database,
    /// Every CPU, described when the first is asked for.
    cpus: OnceLock<Vec<Described>>,
}

/// Opens the event database: what is built in, the files of this system and user, and `file` on top
/// where it is not null. quipu_database_close() closes it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_database_open(
    file: *const c_char,
    out: *mut *mut quipu_database,
) -> quipu_status {
    guarded(|| {
        let file = match file.is_null() {
            true => None,
            // SAFETY: the caller's promise.
            false => Some(unsafe { boundary::path(file, "file") }?),
        };
        let open = OpenDatabase {
            database: Database::open(file)?,
            cpus: OnceLock::new(),
        };
        // SAFETY: the caller's promise.
        unsafe { boundary::export(&DATABASES, open, out) }
    })
}

/// Closes a database; the CPUs opened from it stay open. A null `database` is nothing to close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_database_close(database: *mut quipu_database) -> quipu_status {
    boundary::close(&DATABASES, database)
}

impl OpenDatabase {
    fn cpus(&self) -> &[Described] {
        self.cpus.get_or_init(|| {
            let cpus = self.database.cpus();
            let tables = cpus
                .iter()
                .filter_map(|cpu| self.database.cpu(&cpu.id).ok());
            tables.map(|table| Described::new(&table)).collect()
        })
    }
}

/// Says how many CPUs a database has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_database_cpu_count(
    database: *mut quipu_database,
    out: *mut usize,
) -> quipu_status {
    guarded(|| {
        let database = share(&DATABASES, database)?;
        // SAFETY: the caller's promise.
        unsafe { boundary::write(out, database.cpus().len(), "out") }
    })
}

/// Describes a CPU of a database, numbered from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_database_cpu(
    database: *mut quipu_database,
    index: usize,
    out: *mut quipu_cpu_info,
) -> quipu_status {
    guarded(|| {
        let database = share(&DATABASES, database)?;
        let cpu = one_of(database.cpus(), index, "CPU")?;
        // SAFETY: the caller's promise.
        unsafe { boundary::write_versioned(out, cpu.info, "out") }
    })
}
