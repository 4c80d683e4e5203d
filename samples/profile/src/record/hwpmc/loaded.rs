//! The code of processes that have ended before the system was asked where it is: as their files and the driver's log tell it.

use std::os::unix::ffi::OsStrExt;
use std::sync::LazyLock;

use nix::sys::resource::{Resource, getrlimit};
use quipu_hwpmc::{MappedFile, Program, mapped_files};
use quipu_symbols::LoadedFile;

use super::records::path_of;

/// Returns where the code of a program and of the interpreter that has started it were, as far as their files tell.
pub(super) fn loaded_files(program: &Program<'_>) -> Vec<MappedFile> {
    let path = program.path;
    let Some(file) = LoadedFile::read(&path_of(path)) else {
        return Vec::new();
    };
    let interpreter = file.interpreter.as_ref();
    let interpreter = interpreter.and_then(|path| Some((path, LoadedFile::read(path)?)));
    let mut files = Vec::new();
    let moved = match (&interpreter, program.moved) {
        _ if file.is_fixed => Some(0),
        (_, Some(moved)) => Some(moved),
        // It was entered itself.
        (None, None) => Some(program.address.wrapping_sub(file.entry)),
        (Some((_, interpreter)), None) => {
            moved_before(&file, program.address.wrapping_sub(interpreter.entry))
        }
    };
    files.extend(moved.map(|moved| mapped(&file, moved, path)));
    if let Some((path, file)) = interpreter {
        let moved = match program.moved {
            Some(_) => program.address,
            None => program.address.wrapping_sub(file.entry),
        };
        files.push(mapped(&file, moved, path.as_os_str().as_bytes()));
    }
    files
}

/// Returns the code of a file that was mapped at an address.
pub(super) fn loaded_at(start: u64, path: &[u8]) -> Option<MappedFile> {
    let file = LoadedFile::read(&path_of(path))?;
    Some(mapped(&file, start.wrapping_sub(file.code.address), path))
}

fn mapped(file: &LoadedFile, moved: u64, path: &[u8]) -> MappedFile {
    let start = file.code.address.wrapping_add(moved);
    MappedFile::new(
        start..start.saturating_add(file.code.len),
        file.code.offset,
        path,
    )
}

/// Returns the number by which the addresses of a program were moved that may be anywhere and whose interpreter began at an address;
/// `None` unless the kernel moves this program by the same number, as it does with all where it does not choose at random.
fn moved_before(file: &LoadedFile, interpreter: u64) -> Option<u64> {
    let (_, most_data) = getrlimit(Resource::RLIMIT_DATA).ok()?;
    let moved = file.moved_before(interpreter, u64::try_from(most_data).ok()?)?;
    (*OWN_MOVE == Some(moved)).then_some(moved)
}

/// The number by which the addresses of this program are moved.
static OWN_MOVE: LazyLock<Option<u64>> = LazyLock::new(own_move);

fn own_move() -> Option<u64> {
    let path = std::env::current_exe().ok()?;
    let code = LoadedFile::read(&path)?.code;
    let files = mapped_files(std::process::id().cast_signed()).ok()?;
    let is_code =
        |file: &&MappedFile| file.path == path.as_os_str().as_bytes() && file.offset == code.offset;
    let mapped = files.iter().find(is_code)?;
    Some(mapped.start.wrapping_sub(code.address))
}
