//! The kernel of a recording: whether it is the one that runs here, and what it had where.

use std::ops::Range;
use std::path::Path;

use quipu_perf_data::record::{FileIdentity, Ksymbol, Mapping};
use quipu_perf_data::{BuildIdOwner, Features};
use quipu_symbols::{KernelSymbols, Symbolizer, build_id_of_this_kernel, is_same_build_id};

/// Name of the kernel's own mapping, before the name of a symbol.
const KERNEL: &[u8] = b"[kernel.kallsyms]";

/// The kernel that was recorded.
#[derive(Debug)]
pub(super) struct Kernel {
    /// True if its release and the host's name are those of here.
    has_same_names: bool,
    /// Its build ID.
    id: Option<Vec<u8>>,
    /// The build ID of the one that runs here.
    own_id: Option<Vec<u8>>,
    /// The symbols that the user has named.
    named: Option<KernelSymbols>,
    /// The number of mappings and symbols that came and went.
    changes: u32,
}

/// Returns the build ID of the kernel that was recorded.
pub(super) fn id_of_kernel(features: &Features) -> Option<Vec<u8>> {
    let ids = features.build_ids.iter();
    let mut of_kernel = ids.filter(|id| {
        let file = id.path.rsplit(|byte| *byte == b'/').next();
        let is_name = id.path.starts_with(b"[kernel.");
        let is_file = file.is_some_and(|file| file.starts_with(b"vmlinux"));
        id.owner == BuildIdOwner::Kernel && (is_name || is_file)
    });
    of_kernel.next().map(|id| id.id.clone())
}

impl Kernel {
    /// Returns the kernel of a recording, for which the user may have named symbols.
    pub(super) fn of(features: &Features, named: Option<KernelSymbols>) -> Self {
        let recorded = (
            features.os_release.as_deref(),
            features.host_name.as_deref(),
        );
        let own = own_names();
        let own = own
            .as_ref()
            .map(|(release, host)| (Some(&**release), Some(&**host)));
        Self {
            has_same_names: own == Some(recorded),
            id: id_of_kernel(features),
            own_id: build_id_of_this_kernel(),
            named,
            changes: 0,
        }
    }

    /// Returns the kernel that runs here.
    #[cfg(any(target_os = "linux", target_os = "freebsd"))]
    pub(super) fn of_this_machine() -> Self {
        Self {
            has_same_names: true,
            id: None,
            own_id: None,
            named: None,
            changes: 0,
        }
    }

    /// Returns true if it is the one that runs here: by their build IDs where both have one, else by their names.
    pub(super) fn is_this_one(&self) -> bool {
        match (&self.id, &self.own_id) {
            (Some(id), Some(own)) => is_same_build_id(id, own),
            _ => self.has_same_names,
        }
    }

    /// Returns true if the recording is of this machine.
    pub(super) fn is_of_this_machine(&self) -> bool {
        self.is_this_one() && self.has_same_names
    }

    /// Returns how often what is where has changed.
    pub(super) fn changes(&self) -> u64 {
        self.changes.into()
    }

    /// Has addresses of the kernel named by the symbols that the user has named, or by the one that runs here if it is that.
    pub(super) fn name(&self, symbolizer: &mut Symbolizer) {
        let is_this_one = self.is_this_one();
        symbolizer.set_this_kernel(is_this_one);
        match (&self.named, is_this_one) {
            (None, true) => symbolizer.set_kernel_of_this_machine(),
            (named, _) => symbolizer.set_kernel(named.clone()),
        }
    }

    /// Takes a mapping of the kernel or a module.
    pub(super) fn map(
        &mut self,
        mapping: &Mapping<'_>,
        addresses: Range<u64>,
        symbolizer: &mut Symbolizer,
    ) {
        self.changes += 1;
        if let Some(symbol) = mapping.path.strip_prefix(KERNEL) {
            if let (None, Some(FileIdentity::BuildId(id))) = (&self.id, mapping.file) {
                self.id = Some(id.to_owned());
                self.name(symbolizer);
            }
            symbolizer.set_kernel_reference(symbol, mapping.file_offset);
        }
        let is_read = self.named.is_none() && self.is_this_one();
        if is_read && is_kernel_file(mapping.path) {
            let path = String::from_utf8_lossy(mapping.path);
            symbolizer.set_kernel(KernelSymbols::of_file_in_place(Path::new(&*path)));
        }
        match is_read && is_module_code(mapping.path, mapping.file_offset) {
            true => symbolizer.map_kernel_code(addresses, mapping.path, mapping.file_offset),
            false => symbolizer.map_kernel(addresses, mapping.path),
        }
    }

    /// Takes a symbol that came or went.
    pub(super) fn take_symbol(&mut self, symbol: &Ksymbol<'_>, symbolizer: &mut Symbolizer) {
        self.changes += 1;
        match symbol.is_removed {
            true => symbolizer.remove_kernel_symbol(symbol.address),
            false => symbolizer.add_kernel_symbol(symbol.address, symbol.len, symbol.name),
        }
    }
}

/// Returns true for the path of a kernel's file, and not of a module: FreeBSD's is recorded by that.
fn is_kernel_file(path: &[u8]) -> bool {
    path.starts_with(b"/") && !is_module(path)
}

/// Returns true for a section of a module's file: FreeBSD's are recorded by that. Linux maps modules as a whole.
fn is_module_code(path: &[u8], offset: u64) -> bool {
    path.starts_with(b"/") && is_module(path) && offset > 0
}

/// Returns true for the path of a module, whose name ends with `.ko`, or has it before the name of a compression.
fn is_module(path: &[u8]) -> bool {
    let name = path.rsplit(|byte| *byte == b'/').next();
    name.is_some_and(|name| name.windows(3).any(|part| part == b".ko"))
}

/// Returns the release of the kernel that runs here, and the name of the host (uname(3)).
#[cfg(unix)]
fn own_names() -> Option<(String, String)> {
    let names = nix::sys::utsname::uname().ok()?;
    let text = |name: &std::ffi::OsStr| name.to_str().map(str::to_owned);
    Some((text(names.release())?, text(names.nodename())?))
}

#[cfg(not(unix))]
fn own_names() -> Option<(String, String)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_of_a_kernel_is_no_module() {
        assert!(is_kernel_file(b"/boot/kernel/kernel"));
        for other in [
            &b"/boot/kernel/if_em.ko"[..],
            b"/lib/modules/6.1/kernel/fs/ext4/ext4.ko.xz",
            b"[kernel.kallsyms]_text",
            b"[bridge]",
        ] {
            assert!(!is_kernel_file(other));
        }
    }

    #[test]
    fn code_of_a_module_is_a_part_of_its_file() {
        assert!(is_module_code(b"/boot/kernel/if_em.ko", 0x40));
        assert!(!is_module_code(b"/boot/kernel/if_em.ko", 0));
        assert!(!is_module_code(b"[if_em]", 0x40) && !is_module_code(b"/boot/kernel/kernel", 0x40));
    }
}
