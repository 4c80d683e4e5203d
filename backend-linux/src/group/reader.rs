//! Reading a group on many threads at once.

use std::sync::Arc;

use quipu_hal::{GroupReader, Part, ReadBuf, Result};

use super::kernel_group::{KernelGroup, KernelGroupReader};
use super::{CountersOpen, LinuxGroup, read_error};
#[cfg(feature = "names")]
use crate::events::TracedProbe;

/// A reader of a [`LinuxGroup`]. It has nothing that a read changes.
#[derive(Debug)]
pub(super) struct LinuxReader {
    members: usize,
    parts: Arc<[Part]>,
    kernel_groups: Box<[KernelGroupReader]>,
    /// The probes that the kernel groups count, which are removed after those.
    #[cfg(feature = "names")]
    _probes: Vec<Arc<TracedProbe>>,
    _open: CountersOpen,
}

impl LinuxReader {
    pub(super) fn of(group: &LinuxGroup) -> Self {
        let kernel_groups = group.kernel_groups.iter();
        Self {
            members: group.members.len(),
            parts: Arc::clone(&group.parts),
            kernel_groups: kernel_groups.map(KernelGroup::reader).collect(),
            #[cfg(feature = "names")]
            _probes: group.probes.clone(),
            _open: CountersOpen::new(),
        }
    }
}

impl GroupReader for LinuxReader {
    fn read(&self, out: &mut ReadBuf) -> Result<()> {
        out.check_shape(self.members, &self.parts)?;
        for (part, group) in self.kernel_groups.iter().enumerate() {
            if let Err(failure) = group.read(&mut out[part]) {
                return Err(read_error(&self.parts[part], failure));
            }
        }
        Ok(())
    }
}
