//! A CPU of the event database that is open, and its events by name.

use std::ffi::c_char;

use quipu::{Error, ErrorKind};
use quipu_events::{CpuTable, identify};

use crate::boundary::{self, guarded, one_of, share};
use crate::cpu_info::{Described, quipu_cpu_info};
use crate::database::{DATABASES, quipu_database};
use crate::failure::Failure;
use crate::handle::HandleTable;
use crate::names::{Listed, Lists, quipu_name_info};
use crate::quipu_status;

/// A CPU of the event database, with its events. A handle, not an address; any threads may use it.
pub struct quipu_cpu {
    _opaque: (),
}

static CPUS: HandleTable<OpenCpu> = HandleTable::new(7, "CPU");

pub(crate) struct OpenCpu {
    pub(crate) table: CpuTable,
    described: Described,
    lists: Lists,
}

impl OpenCpu {
    fn list(&self, kind: u32) -> Result<&[Listed], Failure> {
        self.lists.list(kind, &self.table)
    }
}

/// Opens a CPU of a database by its id; a null `id` is the CPU of this machine, of which a hybrid one
/// has several core types, numbered from 0 by `core`. quipu_cpu_close() closes it.
///
/// Returns QUIPU_EINVAL when there is no such CPU or core type, QUIPU_EFEATURE when the database does
/// not know this machine's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_cpu_open(
    database: *mut quipu_database,
    id: *const c_char,
    core: usize,
    out: *mut *mut quipu_cpu,
) -> quipu_status {
    guarded(|| {
        let open = share(&DATABASES, database)?;
        // SAFETY: the caller's promise.
        let table = match unsafe { boundary::optional_text(id, "id") }? {
            Some(id) if core == 0 => open.database.cpu(id)?,
            Some(_) => {
                let reason = "an entry of the database is one core type, number 0";
                return Err(Failure::invalid("open a CPU", reason));
            }
            None => {
                let cores = identify::this_machine()?;
                let core = one_of(&cores, core, "core type")?;
                open.database.identify(core)?
            }
        };
        let cpu = OpenCpu {
            described: Described::new(&table),
            lists: Lists::default(),
            table,
        };
        // SAFETY: the caller's promise.
        unsafe { boundary::export(&CPUS, cpu, out) }
    })
}

/// Closes a CPU. A null `cpu` is nothing to close.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_cpu_close(cpu: *mut quipu_cpu) -> quipu_status {
    boundary::close(&CPUS, cpu)
}

/// Describes an open CPU.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_cpu_get_info(
    cpu: *mut quipu_cpu,
    out: *mut quipu_cpu_info,
) -> quipu_status {
    with_cpu(cpu, |cpu| {
        // SAFETY: the caller's promise.
        unsafe { boundary::write_versioned(out, cpu.described.info, "out") }
    })
}

pub(crate) fn with_cpu(
    cpu: *mut quipu_cpu,
    call: impl FnOnce(&OpenCpu) -> Result<(), Failure>,
) -> quipu_status {
    guarded(|| call(&*share(&CPUS, cpu)?))
}

/// Says how many events of a quipu_event_kind a CPU has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_cpu_name_count(
    cpu: *mut quipu_cpu,
    kind: u32,
    out: *mut usize,
) -> quipu_status {
    with_cpu(cpu, |cpu| {
        // SAFETY: the caller's promise.
        unsafe { boundary::write(out, cpu.list(kind)?.len(), "out") }
    })
}

/// Describes an event of a quipu_event_kind, numbered from 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_cpu_name(
    cpu: *mut quipu_cpu,
    kind: u32,
    index: usize,
    out: *mut quipu_name_info,
) -> quipu_status {
    with_cpu(cpu, |cpu| {
        let event = one_of(cpu.list(kind)?, index, "event")?;
        // SAFETY: the caller's promise.
        unsafe { boundary::write_versioned(out, event.info, "out") }
    })
}

/// Describes the event of a quipu_event_kind that has this name, in any letter case.
///
/// Returns QUIPU_EEVENT when there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_cpu_find(
    cpu: *mut quipu_cpu,
    kind: u32,
    name: *const c_char,
    out: *mut quipu_name_info,
) -> quipu_status {
    with_cpu(cpu, |cpu| {
        // SAFETY: the caller's promise.
        let name = unsafe { boundary::text(name, "name") }?;
        let found = cpu.list(kind)?.iter().find(|event| event.is_named(name));
        let event = found.ok_or_else(|| {
            let attempted = format!("find {name} on {}", cpu.table.id());
            Error::new(ErrorKind::UnsupportedEvent, attempted)
                .with_reason("the CPU has no event of this kind and name")
        })?;
        // SAFETY: the caller's promise.
        unsafe { boundary::write_versioned(out, event.info, "out") }
    })
}
