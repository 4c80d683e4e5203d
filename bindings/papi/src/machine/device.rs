//! Devices: the CPU as a type of device, with its attributes. There are no others here.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::abi::CacheInfo;
use crate::boundary::call::done;
use crate::boundary::pointer::{c_text, write};
use crate::code::{EINVAL, ENOSUPP, Outcome};
use crate::library::LIBRARY;
use crate::machine::hardware::{cpus_of_node, info, memory_of_node, nodes};

/// The bit of CPUs among types of devices.
const CPU: c_int = 1;
const FIRST: c_int = 0;

/// The place that the handle of the CPU points to.
static HANDLE: u8 = 0;

fn handle() -> *mut c_void {
    (&raw const HANDLE).cast_mut().cast()
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_enum_dev_type(modifier: c_int, out: *mut *mut c_void) -> c_int {
    /// True after the CPU was returned, until the end of the list was.
    static RETURNED: AtomicBool = AtomicBool::new(false);

    done(|| {
        if !LIBRARY.is_initialized() || out.is_null() {
            return Err(EINVAL);
        }
        let was_returned = RETURNED.load(Ordering::Relaxed);
        if modifier == FIRST {
            RETURNED.store(false, Ordering::Relaxed);
            // SAFETY: not null, and the caller's to be written.
            return unsafe { write(out, handle()) };
        }
        if was_returned || modifier & CPU == 0 {
            RETURNED.store(false, Ordering::Relaxed);
            // SAFETY: not null, and the caller's to be written.
            unsafe { write(out, std::ptr::null_mut()) }?;
            return Err(EINVAL);
        }
        RETURNED.store(true, Ordering::Relaxed);
        // SAFETY: not null, and the caller's to be written.
        unsafe { write(out, handle()) }
    })
}

/// Texts of the CPU: vendor, name, and status, which is empty.
fn texts() -> &'static [CString; 3] {
    static TEXTS: OnceLock<[CString; 3]> = OnceLock::new();
    TEXTS.get_or_init(|| {
        [
            to_text(&info().vendor_string),
            to_text(&info().model_string),
            CString::default(),
        ]
    })
}

fn to_text(field: &[c_char]) -> CString {
    let bytes: Vec<u8> = field
        .iter()
        .map(|c| c.to_ne_bytes()[0])
        .take_while(|c| *c != 0)
        .collect();
    c_text(&String::from_utf8_lossy(&bytes))
}

fn require(given: *mut c_void, value: *mut c_void) -> Outcome {
    match given == handle() && !value.is_null() {
        true => LIBRARY.require(),
        false => Err(EINVAL),
    }
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_dev_type_attr(
    given: *mut c_void,
    attribute: c_int,
    value: *mut c_void,
) -> c_int {
    done(|| {
        if !(0..=4).contains(&attribute) {
            return Err(ENOSUPP);
        }
        require(given, value)?;
        let number: *mut c_int = value.cast();
        let text: *mut *const c_char = value.cast();
        // SAFETY: not null, and of the attribute's type by the caller's promise.
        unsafe {
            match attribute {
                0 => write(number, 0),
                1 => write(number, info().vendor),
                2 => write(text, texts()[0].as_ptr()),
                3 => write(number, 1),
                _ => write(text, texts()[2].as_ptr()),
            }
        }
    })
}

/// Returns the first cache of a level and a kind.
fn cache(level: usize, kind: c_int) -> CacheInfo {
    let caches = &info().mem_hierarchy.level[level - 1].cache;
    let found = caches.iter().find(|cache| cache.kind & 3 == kind);
    found.copied().unwrap_or_else(CacheInfo::zeroed)
}

/// Returns an attribute of the CPU that is a number.
fn number(attribute: c_int, id: usize) -> Outcome<c_uint> {
    const INSTRUCTIONS: c_int = 1;
    const DATA: c_int = 2;
    const BOTH: c_int = 3;
    let caches = [
        cache(1, INSTRUCTIONS),
        cache(1, DATA),
        cache(2, BOTH),
        cache(3, BOTH),
    ];
    let of = |at: c_int| &caches[(at - 1) as usize % 4];
    let value = match attribute {
        1..=4 => of(attribute).size,
        5..=8 => of(attribute).line_size,
        9..=12 => of(attribute).num_lines,
        13..=16 => of(attribute).associativity,
        17 => info().sockets,
        18 => info().nnodes,
        19 => info().cores,
        20 => info().threads,
        21 => info().cpuid_family,
        22 => info().cpuid_model,
        23 => info().cpuid_stepping,
        24 => return Ok(memory_of_node(id)),
        25 => {
            let node = nodes()
                .into_iter()
                .find(|node| cpus_of_node(*node).contains(&id));
            return node.and_then(|node| node.try_into().ok()).ok_or(EINVAL);
        }
        26 => return Ok(cpus_of_node(id).len() as c_uint),
        _ => return Err(ENOSUPP),
    };
    Ok(value.cast_unsigned())
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_get_dev_attr(
    given: *mut c_void,
    id: c_int,
    attribute: c_int,
    value: *mut c_void,
) -> c_int {
    done(|| {
        require(given, value)?;
        if attribute == 0 {
            // SAFETY: not null, and of the attribute's type by the caller's promise.
            return unsafe { write(value.cast(), texts()[1].as_ptr()) };
        }
        let id = usize::try_from(id).map_err(|_| EINVAL)?;
        // SAFETY: as above.
        unsafe { write(value.cast(), number(attribute, id)?) }
    })
}
