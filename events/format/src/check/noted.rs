//! Findings of the checks across entries, before they are reported in the order of the files.

use crate::diagnostics::{Findings, Source};
use crate::model::Location;

/// Findings by their locations, up to the number that is reported.
#[derive(Default)]
pub(super) struct Noted {
    found: Vec<(Location, String)>,
    left_out: usize,
}

impl Noted {
    /// The most that are kept: more than are reported, so that those are the first ones of a file of ordinary size.
    const KEPT: usize = 20_000;

    pub(super) fn push(&mut self, finding: (Location, String)) {
        if self.found.len() < Self::KEPT {
            self.found.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    pub(super) fn len(&self) -> usize {
        self.found.len()
    }

    /// Turns locations into findings, file by file.
    pub(super) fn report(mut self, files: &[(&str, &str)], findings: &mut Findings) {
        self.found
            .sort_by_key(|(location, _)| (location.file, location.start));
        let mut open: Option<(u32, Source<'_>)> = None;
        for (location, message) in self.found {
            if open.as_ref().is_none_or(|(file, _)| *file != location.file) {
                let (file, text) = files
                    .get(location.file as usize)
                    .copied()
                    .unwrap_or_default();
                open = Some((location.file, Source::new(file, text)));
            }
            if let Some((_, source)) = &open {
                let start = location.start as usize;
                findings.add(source, &(start..start), message);
            }
        }
        findings.leave_out(self.left_out);
    }
}
