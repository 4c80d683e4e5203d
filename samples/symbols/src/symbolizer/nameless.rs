//! Why functions have no names.

use crate::kernel_space::UNKNOWN;
use crate::locate::NotLocated;
use crate::mapped_file::{MappedFile, is_memory};
use crate::no_names::NoNames;
use crate::process_maps::as_path;

use super::{GUEST, GUEST_KERNEL, Symbolizer};

impl Symbolizer {
    /// Returns the reason why functions of an object of user mode have no names, as far as it was looked for: where the file is
    /// not there any more, the reason that there was when it was recorded.
    pub fn why_no_names(&self, object: &str) -> Option<NoNames> {
        if let Some(known) = self.no_names.get(object) {
            return Some(*known);
        }
        match object {
            UNKNOWN => Some(NoNames::NotMapped),
            GUEST | GUEST_KERNEL => Some(NoNames::Guest),
            "[vdso]" => Some(NoNames::Vdso),
            _ if is_memory(object.as_bytes()) || is_map(object) => Some(NoNames::Memory),
            _ => None,
        }
    }

    /// Takes note of why a file is not read.
    pub(super) fn note_missing(&mut self, object: &str, file: &MappedFile, why: &NotLocated) {
        let why = match why {
            NotLocated::Gone if file.path.ends_with(b" (deleted)") => NoNames::Deleted,
            NotLocated::Gone if as_path(&file.path).is_file() => NoNames::NoElf,
            NotLocated::Gone => NoNames::Gone,
            NotLocated::Other => NoNames::AnotherFile,
            NotLocated::Unreadable(_) => return,
        };
        self.no_names.entry(object.to_owned()).or_insert(why);
    }
}

/// Returns true for the file by which perf calls memory that a compiler made code in.
fn is_map(object: &str) -> bool {
    let pid = object.strip_prefix("/tmp/perf-");
    pid.is_some_and(|pid| pid.ends_with(".map"))
}
