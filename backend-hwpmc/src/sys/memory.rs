//! Mappings: files of processes (`sysctl kern.proc.vmmap`), and those of the kernel (kldstat(2)).

use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::mem::offset_of;
use std::ops::Range;
use std::ptr;

use libc::kinfo_vmentry;
use nix::errno::Errno;

use super::module::{Stat, stat};

/// kldnext(2), kldstat(2) and kldsym(2) (`sys/syscall.h`).
const KLDNEXT: c_int = 307;
const KLDSTAT: c_int = 308;
const KLDSYM: c_int = 337;

/// A part of a file that a process has mapped so that it can be executed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MappedFile {
    /// The first address.
    pub start: u64,
    /// The first address behind it.
    pub end: u64,
    /// The offset of its start in the file, in bytes.
    pub offset: u64,
    /// The path of the file.
    pub path: Vec<u8>,
}

impl MappedFile {
    /// Returns the part of a file that is mapped at addresses, from an offset in it on.
    pub fn new(addresses: Range<u64>, offset: u64, path: impl Into<Vec<u8>>) -> Self {
        Self {
            start: addresses.start,
            end: addresses.end,
            offset,
            path: path.into(),
        }
    }
}

/// The kernel, or a module of it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KernelFile {
    /// The number by which the kernel knows it.
    pub id: i32,
    /// The first address.
    pub start: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The path of its file.
    pub path: Vec<u8>,
}

/// Returns the files that a process has mapped to be executed, by their addresses.
///
/// # Errors
/// `ESRCH` if there is no such process, `EPERM` if it is another user's; else the errno of the call.
pub fn mapped_files(pid: i32) -> Result<Vec<MappedFile>, Errno> {
    let name = [libc::CTL_KERN, libc::KERN_PROC, libc::KERN_PROC_VMMAP, pid];
    let mut bytes = Vec::new();
    loop {
        match read(&name, &mut bytes) {
            // It has mapped more since it was asked how much there is.
            Err(Errno::ENOMEM) => {}
            other => break other?,
        }
    }
    let mut files = Vec::new();
    let mut rest = bytes.as_slice();
    while let Some(len @ 1..) = number::<4>(rest, 0).map(u32::from_ne_bytes)
        && let Some((entry, others)) = rest.split_at_checked(len as usize)
    {
        files.extend(executable(entry));
        rest = others;
    }
    Ok(files)
}

/// Reads the whole value of a sysctl.
fn read(name: &[c_int; 4], bytes: &mut Vec<u8>) -> Result<(), Errno> {
    let mut len = 0;
    sysctl(name, ptr::null_mut(), &mut len)?;
    // Some more, as it may grow meanwhile.
    bytes.resize(len + len / 4 + size_of::<kinfo_vmentry>(), 0);
    let mut len = bytes.len();
    sysctl(name, bytes.as_mut_ptr().cast(), &mut len)?;
    bytes.truncate(len);
    Ok(())
}

fn sysctl(name: &[c_int; 4], to: *mut c_void, len: &mut usize) -> Result<(), Errno> {
    // SAFETY: sysctl(3) reads the four numbers, and writes at most as many bytes as `len` says to `to`, which is null or
    // has as many.
    let status = unsafe { libc::sysctl(name.as_ptr(), 4, to, len, ptr::null(), 0) };
    Errno::result(status).map(drop)
}

/// Returns the file of an entry (`struct kinfo_vmentry`, which is cut behind the path), if it can be executed.
fn executable(entry: &[u8]) -> Option<MappedFile> {
    let long = |at| number::<8>(entry, at).map(u64::from_ne_bytes);
    let int = |at| number::<4>(entry, at).map(i32::from_ne_bytes);
    let protection = int(offset_of!(kinfo_vmentry, kve_protection))?;
    let path = entry.get(offset_of!(kinfo_vmentry, kve_path)..)?;
    let path = path.split(|byte| *byte == 0).next()?;
    let is_file = int(offset_of!(kinfo_vmentry, kve_type))? == libc::KVME_TYPE_VNODE;
    (is_file && protection & libc::KVME_PROT_EXEC != 0 && !path.is_empty()).then_some(MappedFile {
        start: long(offset_of!(kinfo_vmentry, kve_start))?,
        end: long(offset_of!(kinfo_vmentry, kve_end))?,
        offset: long(offset_of!(kinfo_vmentry, kve_offset))?,
        path: path.to_owned(),
    })
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

/// `struct kld_file_stat` (`sys/linker.h`).
#[repr(C)]
struct FileStat {
    /// Its size.
    version: c_int,
    name: [u8; 1024],
    references: c_int,
    id: c_int,
    address: usize,
    len: usize,
    path: [u8; 1024],
}

impl Stat for FileStat {
    const CALL: c_int = KLDSTAT;
    const EMPTY: Self = Self {
        version: size_of::<Self>() as c_int,
        name: [0; 1024],
        references: 0,
        id: 0,
        address: 0,
        len: 0,
        path: [0; 1024],
    };
}

/// Returns the kernel and its modules, as they were loaded: the kernel is the first.
///
/// # Errors
/// The errno of the call.
pub fn kernel_files() -> Result<Vec<KernelFile>, Errno> {
    let mut files = Vec::new();
    let mut id = 0;
    loop {
        // SAFETY: kldnext(2) takes a number.
        let next = unsafe { libc::syscall(KLDNEXT, id) };
        id = Errno::result(next)?;
        if id == 0 {
            return Ok(files);
        }
        let file: FileStat = match stat(id) {
            // It was unloaded meanwhile.
            Err(Errno::ENOENT) => continue,
            file => file?,
        };
        let path = file.path.split(|byte| *byte == 0).next();
        files.push(KernelFile {
            id,
            start: file.address as u64,
            len: file.len as u64,
            path: path.unwrap_or_default().to_owned(),
        });
    }
}

/// `struct kld_sym_lookup` (`sys/linker.h`).
#[repr(C)]
struct SymbolLookup {
    /// Its size.
    version: c_int,
    name: *const c_char,
    address: c_ulong,
    len: usize,
}

/// Returns the address of a symbol of the kernel, or of a module, by the number of that file.
///
/// # Errors
/// `ENOENT` if it has no such symbol; else the errno of the call.
pub fn kernel_symbol(file: i32, name: &CStr) -> Result<u64, Errno> {
    /// `KLDSYM_LOOKUP`: by its name.
    const LOOKUP: c_int = 1;
    let mut lookup = SymbolLookup {
        version: size_of::<SymbolLookup>() as c_int,
        name: name.as_ptr(),
        address: 0,
        len: 0,
    };
    // SAFETY: kldsym(2) reads the struct and the name, which ends with a zero, and writes the integers of the struct.
    let status = unsafe { libc::syscall(KLDSYM, file, LOOKUP, &raw mut lookup) };
    Errno::result(status)?;
    #[allow(clippy::useless_conversion, reason = "it has 32 bits on i386")]
    Ok(lookup.address.into())
}
