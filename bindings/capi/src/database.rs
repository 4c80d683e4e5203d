//! The event database and its CPUs.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use quipu_events::{CpuTable, Database, identify};
use quipu_hal::{CpuIdentity, Scheme, SlotClass};

use crate::boundary::{self, Versioned, guarded, share};
use crate::handle::Table;
use crate::last_error::{Failure, pointer, text};
use crate::names::Lists;
use crate::quipu_status;

/// An open event database. A handle, not an address; any threads may use it.
pub struct quipu_database {
    _opaque: (),
}

/// A CPU of the event database, with its events. A handle, not an address; any threads may use it.
pub struct quipu_cpu {
    _opaque: (),
}

static DATABASES: Table<OpenDatabase> = Table::new(5, "event database");
static CPUS: Table<Cpu> = Table::new(7, "CPU");

struct OpenDatabase {
    database: Database,
    /// Every CPU, described when the first is asked for.
    cpus: OnceLock<Vec<Described>>,
}

pub(crate) struct Cpu {
    pub(crate) table: CpuTable,
    described: Described,
    pub(crate) lists: Lists,
}

/// The scheme in which a CPU's events are encoded.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_scheme {
    /// None that this version of the header knows.
    QUIPU_SCHEME_OTHER = 0,
    /// Pentium: two 9-bit functions in one register.
    QUIPU_SCHEME_P5 = 1,
    /// Pentium Pro to Pentium III and their like.
    QUIPU_SCHEME_P6 = 2,
    /// Intel architectural performance monitoring.
    QUIPU_SCHEME_INTEL = 3,
    /// AMD K7 and K8: 8-bit events.
    QUIPU_SCHEME_AMD_K7 = 4,
    /// AMD family 10h and later: 12-bit events.
    QUIPU_SCHEME_AMD_10H = 5,
    /// ARMv8 PMUv3.
    QUIPU_SCHEME_ARMV8 = 6,
}

/// A CPU of the database. Set `size` first (QUIPU_INIT). Texts stay until the handle that was asked is
/// closed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_cpu_info {
    /// sizeof (quipu_cpu_info).
    pub size: usize,
    /// Its id in the database: "intel-p5".
    pub id: *const c_char,
    /// Its name for people.
    pub name: *const c_char,
    /// The vendor as CPUID says it: "GenuineIntel"; null for what is not x86.
    pub vendor: *const c_char,
    /// The core type on a hybrid CPU: "core", "atom"; else null.
    pub core_type: *const c_char,
    /// The source of the facts about its events.
    pub source: *const c_char,
    /// The main id register (MIDR_EL1); 0 for what is not ARM.
    pub midr: u64,
    /// x86: family, with the extended one added in.
    pub family: u32,
    /// x86: model, with the extended one added in.
    pub model: u32,
    /// x86: stepping.
    pub stepping: u32,
    /// The encoding of its events: a quipu_scheme.
    pub scheme: u32,
    /// The number of counters that take any event, and their width in bits; 0 if it is not known.
    pub general_counters: u32,
    /// See general_counters.
    pub general_width: u32,
    /// The number of counters that are for one event each, and their width in bits.
    pub fixed_counters: u32,
    /// See fixed_counters.
    pub fixed_width: u32,
}

// SAFETY: integers and pointers, for all of which zero is a value.
unsafe impl Versioned for quipu_cpu_info {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

/// A CPU with its texts.
struct Described {
    info: quipu_cpu_info,
    /// The texts that the pointers point to.
    _texts: [Option<CString>; 5],
}

// SAFETY: its pointers are to its own texts, which are never changed.
unsafe impl Send for Described {}
// SAFETY: as above.
unsafe impl Sync for Described {}

impl Described {
    fn new(table: &CpuTable) -> Self {
        let model = table.model();
        let mut info: quipu_cpu_info = boundary::zeroed();
        let vendor = match &model.identity {
            CpuIdentity::X86 {
                vendor,
                family,
                model,
                stepping,
            } => {
                info.family = (*family).into();
                info.model = (*model).into();
                info.stepping = (*stepping).into();
                Some(text(vendor))
            }
            CpuIdentity::Arm { midr } => {
                info.midr = *midr;
                None
            }
            _ => None,
        };
        for bank in &model.counters {
            let (number, width) = (bank.number.into(), bank.width.into());
            match bank.class {
                SlotClass::General => (info.general_counters, info.general_width) = (number, width),
                SlotClass::Fixed => (info.fixed_counters, info.fixed_width) = (number, width),
                _ => {}
            }
        }
        info.scheme = scheme(table.scheme()) as u32;
        let texts = [
            Some(text(table.id())),
            Some(text(table.name())),
            vendor,
            model.core_type.as_deref().map(text),
            Some(text(table.source())),
        ];
        [info.id, info.name, info.vendor, info.core_type, info.source] =
            texts.each_ref().map(|text| pointer(text.as_ref()));
        Self {
            info,
            _texts: texts,
        }
    }
}

fn scheme(scheme: Scheme) -> quipu_scheme {
    match scheme {
        Scheme::P5 => quipu_scheme::QUIPU_SCHEME_P5,
        Scheme::P6 => quipu_scheme::QUIPU_SCHEME_P6,
        Scheme::IntelArchitectural => quipu_scheme::QUIPU_SCHEME_INTEL,
        Scheme::AmdK7 => quipu_scheme::QUIPU_SCHEME_AMD_K7,
        Scheme::Amd10h => quipu_scheme::QUIPU_SCHEME_AMD_10H,
        Scheme::Armv8 => quipu_scheme::QUIPU_SCHEME_ARMV8,
        _ => quipu_scheme::QUIPU_SCHEME_OTHER,
    }
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

pub(crate) fn one_of<'l, T>(list: &'l [T], index: usize, what: &str) -> Result<&'l T, Failure> {
    list.get(index).ok_or_else(|| {
        Failure::invalid(
            &format!("look at {what} {index}"),
            format!("there are {}, numbered from 0", list.len()),
        )
    })
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
        let cpu = Cpu {
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
    call: impl FnOnce(&Cpu) -> Result<(), Failure>,
) -> quipu_status {
    guarded(|| call(&*share(&CPUS, cpu)?))
}
