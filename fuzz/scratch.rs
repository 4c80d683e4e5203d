//! A directory of the process for targets that read files, in memory where there is /dev/shm.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static SCRATCH: OnceLock<tempfile::TempDir> = OnceLock::new();

/// Returns a path in the directory of this process, which is for this user alone.
///
/// # Panics
/// When the directory cannot be made.
pub fn scratch(name: &str) -> PathBuf {
    let directory = SCRATCH.get_or_init(|| {
        let memory = Path::new("/dev/shm");
        let made = match memory.is_dir() {
            true => tempfile::tempdir_in(memory),
            false => tempfile::tempdir(),
        };
        made.expect("a directory")
    });
    directory.path().join(name)
}

/// Writes an input to a file of the directory, and returns its path.
///
/// # Panics
/// When it cannot be written.
pub fn written(name: &str, content: &[u8]) -> PathBuf {
    let path = scratch(name);
    let parent = path.parent().expect("it is in the directory");
    std::fs::create_dir_all(parent).expect("made");
    std::fs::write(&path, content).expect("written");
    path
}
