//! Copies of files that were there when it was recorded, and may be gone.

use std::path::PathBuf;

use crate::mapped_file::FileIdentity;

/// Copies of files that were there when it was recorded, and may be gone.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Copies {
    /// Files that were mapped.
    pub files: Vec<(FileIdentity, PathBuf)>,
    /// `/tmp/perf-PID.map` of processes.
    pub maps: Vec<(i32, PathBuf)>,
}
