//! Why functions have no names.

use std::path::Path;

use crate::kernel_space::UNKNOWN;
use crate::left_out::LeftOut;
use crate::locate::{Doubt, NotLocated};
use crate::mapped_file::{MappedFile, is_memory};
use crate::no_names::NoNames;

use super::{GUEST, GUEST_KERNEL, Symbolizer};

impl Symbolizer {
    /// Returns the files that are others than those that were recorded.
    pub fn changed(&self) -> impl Iterator<Item = &str> {
        self.changed.iter().map(String::as_str)
    }

    /// Returns the files that may be others than those that were recorded, and why.
    pub fn doubtful(&self) -> impl Iterator<Item = (&str, Doubt)> {
        let files = self.doubtful.iter();
        files.map(|(path, doubt)| (path.as_str(), *doubt))
    }

    /// Returns the files that are there and were not read, and why: functions in them have no names.
    pub fn left_out(&self) -> impl Iterator<Item = (&str, &LeftOut)> {
        let files = self.left_out.iter().chain(&self.jit.left_out);
        files.map(|(path, reason)| (path.as_str(), reason))
    }

    /// Returns the reason why functions of an object of user mode have no names, as far as it was looked for: where the file is
    /// not there any more, the reason that there was when it was recorded.
    pub fn why_no_names(&self, object: &str) -> Option<NoNames> {
        let (now, then) = (self.no_names.get(object), self.kept_no_names.get(object));
        let is_there = |why: &&NoNames| matches!(why, NoNames::Stripped | NoNames::NotInTable);
        if let Some(known) = now.filter(is_there).or(then).or(now) {
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

    /// Returns the build ID of an object, if the recording lists it.
    pub fn build_id_of_object(&self, object: &str) -> Option<&[u8]> {
        self.build_ids.get(object.as_bytes()).map(Vec::as_slice)
    }

    /// Takes note of why a function of an object has no name. Of several files of one path the worst reason is told.
    pub(super) fn note_nameless(&mut self, object: &str, why: Option<NoNames>) {
        let Some(why) = why else {
            return;
        };
        match self.no_names.get_mut(object) {
            Some(known) => *known = why.min(*known),
            None => drop(self.no_names.insert(object.to_owned(), why)),
        }
    }
}

/// Returns why functions of a file that is not read at its path have no names; `None` where the error says it.
pub(super) fn why_missing(file: &MappedFile, path: &Path, why: &NotLocated) -> Option<NoNames> {
    Some(match why {
        NotLocated::Gone if file.path.ends_with(b" (deleted)") => NoNames::Deleted,
        NotLocated::Gone if path.is_file() => NoNames::NoElf,
        NotLocated::Gone => NoNames::Gone,
        NotLocated::Other => NoNames::AnotherFile,
        NotLocated::Unreadable(_) => return None,
    })
}

/// Returns true for the file by which perf calls memory that a compiler made code in.
fn is_map(object: &str) -> bool {
    let pid = object.strip_prefix("/tmp/perf-");
    pid.is_some_and(|pid| pid.ends_with(".map"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_several_files_of_one_path_the_worst_reason_is_told() {
        let reasons = [NoNames::Stripped, NoNames::AnotherFile, NoNames::NotInTable];
        for first in 0..3 {
            let mut symbolizer = Symbolizer::new();
            for of in 0..3 {
                symbolizer.note_nameless("/app", Some(reasons[(first + of) % 3]));
                symbolizer.note_nameless("/app", None);
            }
            assert_eq!(symbolizer.why_no_names("/app"), Some(NoNames::AnotherFile));
        }
    }
}
