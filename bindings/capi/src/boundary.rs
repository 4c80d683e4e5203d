//! The boundary between C and Rust: panics end here, and pointers become references here.

use std::any::Any;
use std::ffi::{CStr, c_char};
use std::mem::{self, MaybeUninit};
use std::panic::{self, AssertUnwindSafe};
use std::path::Path;
use std::slice;

use crate::failure::Failure;
use crate::handle::{Borrowed, HandleTable, Shared};
use crate::quipu_status::{self, QUIPU_OK};

/// Runs what a function does: a failure becomes the thread's last error, and so does a panic.
pub(crate) fn guarded(call: impl FnOnce() -> Result<(), Failure>) -> quipu_status {
    // What a panic leaves behind is dropped or given back; nothing of it is looked at again but objects
    // in their tables, which keep no state that a panic could break their soundness by.
    panic::catch_unwind(AssertUnwindSafe(|| settled(call()))).unwrap_or_else(panicked)
}

/// Returns the status of an outcome: a failure becomes the thread's last error.
fn settled(outcome: Result<(), Failure>) -> quipu_status {
    match outcome {
        Ok(()) => QUIPU_OK,
        Err(failure) => remember(failure),
    }
}

fn remember(failure: Failure) -> quipu_status {
    let status = failure.status();
    match panic::catch_unwind(AssertUnwindSafe(|| failure.remember())) {
        Ok(()) => status,
        Err(payload) => {
            mem::forget(payload);
            quipu_status::QUIPU_EBUG
        }
    }
}

fn panicked(payload: Box<dyn Any + Send>) -> quipu_status {
    let says = payload
        .downcast_ref::<&str>()
        .map(|says| (*says).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    // A payload of any other type might panic when it is dropped.
    if says.is_none() {
        mem::forget(payload);
    }
    remember(Failure::bug(&says.unwrap_or_default()))
}

/// A struct of the interface that begins with its size, so that it can grow: of a shorter one the rest is
/// zero, of a longer one what is not known here must be zero.
///
/// # Safety
/// All bytes zero is a value, and `usize` its first field, which `size` gives.
pub(crate) unsafe trait Versioned: Copy {
    /// The size of its first version.
    const FIRST_SIZE: usize;

    /// Its first field.
    fn size(&mut self) -> &mut usize;
}

/// A struct of zeros.
pub(crate) fn zeroed<T: Versioned>() -> T {
    // SAFETY: zeros are a value, by the trait.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// The size a caller's struct says it has.
///
/// # Safety
/// `object` is null or points to a struct whose first field, the size, is initialized.
unsafe fn size_of_callers<T: Versioned>(object: *const T, name: &str) -> Result<usize, Failure> {
    check_pointer(object, name)?;
    // SAFETY: the size is the first field, by the trait, and is there by the caller's promise.
    let size = unsafe { object.cast::<usize>().read() };
    if size < T::FIRST_SIZE {
        return Err(Failure::invalid(
            &format!("use the struct at {name}"),
            format!(
                "its size says {size} and has to be {} at least; QUIPU_INIT sets it",
                T::FIRST_SIZE
            ),
        ));
    }
    Ok(size)
}

/// The caller's struct as this version of the library knows it.
///
/// # Safety
/// `object` is null or points to as many initialized bytes as its first field, the size, says.
pub(crate) unsafe fn read_versioned<T: Versioned>(
    object: *const T,
    name: &str,
) -> Result<T, Failure> {
    // SAFETY: the caller's promise.
    let size = unsafe { size_of_callers(object, name) }?;
    let known = size.min(size_of::<T>());
    let mut read = zeroed::<T>();
    // SAFETY: both are `known` bytes long, and any bytes a caller's struct has are a value by the trait.
    unsafe { object.cast::<u8>().copy_to((&raw mut read).cast(), known) };
    // SAFETY: the caller's promise; what is known was left out.
    let unknown = unsafe { slice::from_raw_parts(object.cast::<u8>().add(known), size - known) };
    if unknown.iter().any(|byte| *byte != 0) {
        return Err(Failure::invalid(
            &format!("use the struct at {name}"),
            "it asks for something that this version of the library does not know",
        ));
    }
    *read.size() = known;
    Ok(read)
}

/// Fills the caller's struct as far as it reaches; its size stays.
///
/// # Safety
/// `out` is null or points to a struct that may be written, as long as its first field says.
pub(crate) unsafe fn write_versioned<T: Versioned>(
    out: *mut T,
    mut value: T,
    name: &str,
) -> Result<(), Failure> {
    // SAFETY: the caller's promise.
    let size = unsafe { size_of_callers(out, name) }?;
    let known = size.min(size_of::<T>());
    *value.size() = size;
    // SAFETY: both are `known` bytes long; what is beyond, up to `size`, is the caller's too.
    unsafe {
        (&raw const value).cast::<u8>().copy_to(out.cast(), known);
        out.cast::<u8>().add(known).write_bytes(0, size - known);
    }
    Ok(())
}

/// Writes a result.
///
/// # Safety
/// `out` is null or may be written.
pub(crate) unsafe fn write<T>(out: *mut T, value: T, name: &str) -> Result<(), Failure> {
    check_pointer(out, name)?;
    // SAFETY: not null, aligned, and the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

/// The caller's text.
///
/// # Safety
/// `text` is null or points to a text that ends with a NUL and stays unchanged for `'a`.
pub(crate) unsafe fn text<'a>(text: *const c_char, name: &str) -> Result<&'a str, Failure> {
    check_pointer(text, name)?;
    // SAFETY: not null, and the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str()
        .map_err(|_| Failure::invalid(&format!("read the text at {name}"), "it is not UTF-8"))
}

/// The caller's path: on Unix any bytes.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn path<'a>(path: *const c_char, name: &str) -> Result<&'a Path, Failure> {
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;

        check_pointer(path, name)?;
        // SAFETY: not null, and the caller's promise.
        let path = unsafe { CStr::from_ptr(path) };
        Ok(Path::new(std::ffi::OsStr::from_bytes(path.to_bytes())))
    }
    #[cfg(not(unix))]
    {
        // SAFETY: the caller's promise.
        unsafe { text(path, name) }.map(Path::new)
    }
}

/// Returns the text of the caller, or `None` if it is null.
///
/// # Safety
/// As [`text`].
pub(crate) unsafe fn optional_text<'a>(
    pointer: *const c_char,
    name: &str,
) -> Result<Option<&'a str>, Failure> {
    if pointer.is_null() {
        return Ok(None);
    }
    // SAFETY: the caller's promise.
    unsafe { text(pointer, name) }.map(Some)
}

/// The caller's array; null is an empty one.
///
/// # Safety
/// `array` is null or points to `length` elements that stay unchanged for `'a`.
pub(crate) unsafe fn array<'a, T>(
    array: *const T,
    length: usize,
    name: &str,
) -> Result<&'a [T], Failure> {
    if length == 0 {
        return Ok(&[]);
    }
    check_array(array, length, name)?;
    // SAFETY: not null, aligned, not too long, and the caller's promise.
    Ok(unsafe { slice::from_raw_parts(array, length) })
}

/// Checks that a pointer can be of an array of `length` elements; of an empty one it may be null.
pub(crate) fn check_array<T>(array: *const T, length: usize, name: &str) -> Result<(), Failure> {
    if length == 0 {
        return Ok(());
    }
    check_pointer(array, name)?;
    if length > isize::MAX as usize / size_of::<T>().max(1) {
        return Err(wrong_length(name, length));
    }
    Ok(())
}

fn wrong_length(name: &str, length: usize) -> Failure {
    Failure::invalid(
        &format!("use the array at {name}"),
        format!("it cannot have {length} elements"),
    )
}

/// Checks that a pointer is not null and is aligned for a `T`.
pub(crate) fn check_pointer<T>(pointer: *const T, name: &str) -> Result<(), Failure> {
    match is_usable(pointer) {
        true => Ok(()),
        false => Err(unusable(pointer.addr(), name)),
    }
}

/// Returns true if a pointer is not null and is aligned for a `T`.
fn is_usable<T>(pointer: *const T) -> bool {
    !pointer.is_null() && pointer.is_aligned()
}

fn unusable(address: usize, name: &str) -> Failure {
    let reason = match address {
        0 => "it is null",
        _ => "it is not aligned as such an object has to be",
    };
    Failure::invalid(&format!("use the argument {name}"), reason)
}

/// Returns an element of a list by the caller's number.
pub(crate) fn one_of<'l, T>(list: &'l [T], index: usize, what: &str) -> Result<&'l T, Failure> {
    list.get(index).ok_or_else(|| {
        Failure::invalid(
            &format!("look at {what} {index}"),
            format!("there are {}, numbered from 0", list.len()),
        )
    })
}

/// Borrows the object of a handle, for this call alone.
pub(crate) fn borrow<'t, T, H>(
    table: &'t HandleTable<T>,
    handle: *const H,
) -> Result<Borrowed<'t, T>, Failure> {
    table
        .borrow(handle.addr())
        .map_err(|error| Failure::lookup(table.kind(), error))
}

/// Shares the object of a handle, which other threads may share too.
pub(crate) fn share<'t, T: Sync, H>(
    table: &'t HandleTable<T>,
    handle: *const H,
) -> Result<Shared<'t, T>, Failure> {
    table
        .share(handle.addr())
        .map_err(|error| Failure::lookup(table.kind(), error))
}

/// Keeps an object and writes its handle. If the handle cannot be written, the object is dropped.
///
/// # Safety
/// `out` is null or may be written.
pub(crate) unsafe fn export<T, H>(
    table: &HandleTable<T>,
    object: T,
    out: *mut *mut H,
) -> Result<(), Failure> {
    check_pointer(out, "out")?;
    let handle = table.insert(object).ok_or_else(|| {
        Failure::invalid(
            &format!("open another {}", table.kind()),
            "there are as many as there can be",
        )
    })?;
    // SAFETY: not null, aligned, and the caller's promise. The handle is never followed.
    unsafe { out.write(std::ptr::without_provenance_mut(handle)) };
    Ok(())
}

/// Closes a handle and drops its object; null is nothing to close.
pub(crate) fn close<T, H>(table: &HandleTable<T>, handle: *mut H) -> quipu_status {
    guarded(|| {
        if handle.is_null() {
            return Ok(());
        }
        let object = table.remove(handle.addr());
        object
            .map(drop)
            .map_err(|error| Failure::lookup(table.kind(), error))
    })
}

#[cfg(test)]
mod tests;
