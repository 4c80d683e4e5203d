//! Copies of the programs that were hit, in perf's cache of build IDs (perf-buildid-cache(1)).

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::hit_files::{HitFile, HitFiles};
use crate::recording::Input;

/// Copies what the samples of a file hit into the cache, unless it is there; returns the number of files that are there then.
///
/// # Errors
/// Why nothing more is copied.
pub(super) fn fill(input: Input<'_>) -> Result<usize, String> {
    let home = quipu_environment::variable("HOME").map(PathBuf::from);
    let home = home.filter(|home| home.is_absolute());
    let cache = home
        .ok_or("$HOME, of the cache, is not set")?
        .join(".debug");
    let hit = HitFiles::of(input).map_err(|e| e.to_string())?;
    for file in &hit.files {
        let copied = copy(&cache, file);
        copied.map_err(|e| format!("{}: {e}", cache.join(file.path()).display()))?;
    }
    Ok(hit.files.len())
}

fn copy(cache: &Path, file: &HitFile) -> io::Result<()> {
    let path = cache.join(file.path());
    if !path.exists() {
        create_directory_of(&path)?;
        let own = path.with_extension(format!("{}.new", std::process::id()));
        let written = write(&file.source, &own).and_then(|()| fs::rename(&own, &path));
        if written.is_err() {
            // It may not be there.
            let _ = fs::remove_file(&own);
        }
        written?;
    }
    let (link, target) = file.link();
    let link = cache.join(link);
    create_directory_of(&link)?;
    match symlink(target, &link) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

fn create_directory_of(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), fs::create_dir_all)
}

/// Writes a copy that only its owner can read: it may be of a program that others may not see, or say where the kernel is.
fn write(from: &Path, to: &Path) -> io::Result<()> {
    let mut from = fs::File::open(from)?;
    let mut options = OpenOptions::new();
    let mut to = options.write(true).create_new(true).mode(0o600).open(to)?;
    io::copy(&mut from, &mut to).map(drop)
}
