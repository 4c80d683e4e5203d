//! Files that were mapped, and what identifies them beside their paths.

use std::sync::Arc;

/// A file that was mapped. Two files of one path, such as a program and the one that took its place, differ in their identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct MappedFile {
    /// Its path in the mount namespace of the process, or a name in brackets.
    pub path: Arc<[u8]>,
    /// Identity of the file.
    pub identity: FileIdentity,
}

/// Identity of a file, as far as a recording has it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum FileIdentity {
    /// It is not recorded.
    #[default]
    Unknown,
    /// Its place in a file system.
    Inode {
        /// The major and the minor number of the device.
        device: (u32, u32),
        /// The number of the inode.
        inode: u64,
        /// The generation of the inode.
        generation: u64,
    },
    /// Its build ID.
    BuildId(Arc<[u8]>),
}

impl MappedFile {
    /// Returns true if the mapping is memory and of no file (`is_anon_memory`, `tools/perf/util/map.c`).
    pub fn is_anonymous(&self) -> bool {
        is_memory(&self.path)
    }

    /// Returns true for memory that has a descriptor (memfd_create(2)), and so may have been executed as a program.
    pub fn is_memfd(&self) -> bool {
        self.path.starts_with(b"/memfd:")
    }

    /// Returns true for the code that the kernel maps into every process (vdso(7)).
    pub(crate) fn is_vdso(&self) -> bool {
        *self.path == *b"[vdso]"
    }

    /// Returns true for a file in which a just-in-time compiler lists its functions and their code
    /// (`tools/perf/Documentation/jitdump-specification.txt`): it maps one page of it, by which the file is found.
    pub fn is_jitdump(&self) -> bool {
        let name = self.path.rsplit(|byte| *byte == b'/').next();
        let pid = name.and_then(|name| name.strip_prefix(b"jit-")?.strip_suffix(b".dump"));
        pid.is_some_and(|pid| !pid.is_empty() && pid.iter().all(u8::is_ascii_digit))
    }
}

/// Returns true for the path of memory that is of no file.
pub(crate) fn is_memory(path: &[u8]) -> bool {
    const BEGINS: [&[u8]; 6] = [
        b"//anon",
        b"/dev/zero",
        b"/anon_hugepage",
        b"/memfd:",
        b"/SYSV",
        b"[",
    ];
    path != b"[vdso]" && BEGINS.iter().any(|begin| path.starts_with(begin))
}
