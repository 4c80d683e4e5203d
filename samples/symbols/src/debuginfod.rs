//! Files of a build from the debuginfod servers that the user names (debuginfod-client-config(7)).

#[cfg(feature = "debuginfod")]
mod client;

use std::path::PathBuf;

/// A file of a build.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Artifact {
    /// The debug information that lies apart.
    DebugInfo,
    /// The file that was mapped.
    Executable,
}

/// Returns a file of the build with an ID from the first server of `DEBUGINFOD_URLS` that has it, where it is kept in the cache
/// of debuginfod's clients. `None` without the feature `debuginfod`, and where no server is named.
#[cfg(feature = "debuginfod")]
pub(crate) fn fetch(build_id: &[u8], artifact: Artifact) -> Option<PathBuf> {
    client::fetch(build_id, artifact)
}

#[cfg(not(feature = "debuginfod"))]
pub(crate) fn fetch(_: &[u8], _: Artifact) -> Option<PathBuf> {
    None
}

impl Artifact {
    /// Returns its name in a server's paths and in the cache.
    #[cfg(feature = "debuginfod")]
    fn name(self) -> &'static str {
        match self {
            Self::DebugInfo => "debuginfo",
            Self::Executable => "executable",
        }
    }
}
