//! The recording that is to be read: a file or standard input.

use std::path::Path;
use std::time::SystemTime;

use quipu_perf_data::Error;
use quipu_symbols::Copies;

use quipu_shell::Failure;

use super::symbol_options::SymbolOptions;

/// A recording that is to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The file; `-` is standard input.
    pub(crate) path: &'a Path,
    /// True if files of other users are read.
    pub(crate) force: bool,
    /// True if inlined functions and source lines are looked up.
    pub(crate) lines: bool,
    /// True if C++ functions have their parameters.
    pub(crate) parameters: bool,
    /// Sources of names besides.
    pub(crate) symbols: Option<&'a SymbolOptions>,
    /// True if all that is found is noted, to be kept with the recording.
    pub(crate) keeping: bool,
    /// Copies of files that may be gone.
    pub(crate) copies: Option<&'a Copies>,
}

impl Input<'_> {
    /// Returns the time at which it was written, if it is a file.
    pub(super) fn written(self) -> Option<SystemTime> {
        self.path.metadata().ok()?.modified().ok()
    }

    /// Returns the failure of reading it.
    pub(super) fn unreadable(self, error: &Error) -> Failure {
        Failure::new(format_args!("cannot read {}: {error}", name(self.path)))
    }
}

/// Returns the name of an input in messages.
pub fn name(path: &Path) -> String {
    match path == Path::new("-") {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}
