//! The file in which the compiler of a process lists its functions, where it cannot be found once the process has ended.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::jit::{self, Trusted};
use crate::process_maps::ProcessMaps;

/// The `/tmp/perf-PID.map` of a process that runs, in another directory than /tmp here, by another number, or of another user.
#[derive(Debug)]
pub struct JitMap {
    /// The process's own /tmp, which is not found any more when it has ended.
    directory: File,
    name: String,
    user: Option<u32>,
}

impl JitMap {
    /// Returns where the map of a process is or will be; `None` where it is found as well when the process has ended, and where the
    /// process may not be looked at.
    pub fn of(pid: i32) -> Option<Self> {
        let process = ProcessMaps::read(pid)?;
        let (user, own) = process.user_and_own_pid();
        let name = jit::name_of(own.unwrap_or(pid));
        let directory = File::open(process.in_root(b"/tmp")).ok()?;
        let (found, here) = (directory.metadata().ok()?, Path::new("/tmp").metadata());
        let is_here = here.is_ok_and(|here| (here.dev(), here.ino()) == (found.dev(), found.ino()));
        let is_own = Path::new("/proc/self").metadata().map(|own| own.uid()).ok() == user;
        let is_found = is_here && is_own && own == Some(pid);
        (!is_found).then_some(Self {
            directory,
            name,
            user,
        })
    }

    /// Opens it; `None` if there is none, or it belongs to neither root, nor the user of this process or that of the other.
    pub fn open(&self) -> Option<File> {
        let directory = format!("/proc/self/fd/{}", self.directory.as_raw_fd());
        let path = Path::new(&directory).join(&self.name);
        jit::opened(&path, Trusted::Sampled(self.user)).ok()?
    }
}
