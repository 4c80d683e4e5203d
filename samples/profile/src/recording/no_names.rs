//! Sentences on functions without names, and on callers that are missing.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use foldhash::HashMap;
use quipu_symbols::{AddressOwner, LeftOut, NoNames};

use crate::hit_files::hexadecimal;

use super::debug_package;
use super::places::Place;
use super::replay::Replay;

/// A share of less than this is not worth a line, in percent.
const LEAST_PERCENT: f64 = 1.0;

/// Share of the samples whose functions in an object have no names.
#[derive(Debug, Clone)]
pub(crate) struct Nameless {
    pub(crate) object: Arc<str>,
    pub(crate) in_kernel: bool,
    /// Of the event that has the most.
    pub(crate) percent: f64,
}

/// Counts the samples whose functions have no names.
#[derive(Debug, Default)]
pub(crate) struct NamelessCounts {
    samples: u64,
    /// By object, and whether it was in the kernel.
    nameless: HashMap<(Arc<str>, bool), u64>,
}

impl NamelessCounts {
    /// Takes note of the place of a sample.
    pub(crate) fn note(&mut self, place: &Place, owner: AddressOwner) {
        self.samples += 1;
        if place.code.symbol.is_none() {
            let object = (place.code.object.clone(), owner == AddressOwner::Kernel);
            *self.nameless.entry(object).or_default() += 1;
        }
    }

    /// Returns the shares, the largest first.
    pub(crate) fn shares(&self) -> Vec<Nameless> {
        let shares = self.nameless.iter();
        let shares = shares.map(|((object, in_kernel), samples)| Nameless {
            object: object.clone(),
            in_kernel: *in_kernel,
            percent: *samples as f64 * 100.0 / self.samples as f64,
        });
        let mut shares: Vec<_> = shares.collect();
        shares.sort_by(|a, b| {
            let by_name = || a.object.cmp(&b.object);
            b.percent.total_cmp(&a.percent).then_with(by_name)
        });
        shares
    }
}

impl Replay {
    /// Returns what is to be said of functions without names, each object with the reason that it has, and of callers that are
    /// missing.
    pub(crate) fn notes_on_names(&self, nameless: &[Nameless]) -> Vec<String> {
        let mut notes: Vec<_> = self.not_unwound.notes().collect();
        let mut told = BTreeSet::new();
        for one in nameless.iter().filter(|one| one.percent >= LEAST_PERCENT) {
            let object = &*one.object;
            let share = format!("{:.2} % of the samples", one.percent);
            notes.push(match (self.left_out_of(object), self.why_no_names(one)) {
                (Some(why), _) => format!("{} ({share})", note_on_left_out(object, why)),
                (None, Some(why)) => {
                    let remedy = why
                        .remedy()
                        .map(|remedy| format!("; {remedy}{}", self.debug_file(object, why)));
                    format!(
                        "{object}: {why}, so its functions have no names ({share}){}",
                        remedy.unwrap_or_default()
                    )
                }
                (None, None) => continue,
            });
            told.insert(object);
        }
        let changed = self.symbolizer.changed();
        let changed: Vec<_> = changed.filter(|file| !told.contains(file)).collect();
        if !changed.is_empty() {
            let files = changed.join(", ");
            notes.push(format!(
                "{files}: {}, so its functions have no names",
                NoNames::AnotherFile
            ));
        }
        for (file, doubt) in self.symbolizer.doubtful() {
            notes.push(format!(
                "{file}: it may not be the file that was recorded, and its functions others: {doubt}"
            ));
        }
        let left_out = self.symbolizer.left_out();
        for (file, why) in left_out.filter(|(file, _)| !told.contains(file)) {
            notes.push(note_on_left_out(file, why));
        }
        notes
    }

    /// Returns the package with the symbols of a stripped object, if this system says so, and the name of the file, by which
    /// other package managers find theirs and debuginfod-find the file; in parentheses.
    fn debug_file(&self, object: &str, why: NoNames) -> String {
        let id = self.symbolizer.build_id_of_object(object).map(hexadecimal);
        match id.as_deref().and_then(|id| id.split_at_checked(2)) {
            Some((first, rest)) if why == NoNames::Stripped => {
                let package = debug_package::of(object, Path::new(debug_package::LISTS));
                let package = package.map(|name| format!("package {name}; "));
                let package = package.unwrap_or_default();
                format!(
                    " ({package}/usr/lib/debug/.build-id/{first}/{rest}.debug; debuginfod-find debuginfo {first}{rest})"
                )
            }
            _ => String::new(),
        }
    }

    fn left_out_of(&self, object: &str) -> Option<&LeftOut> {
        let mut left_out = self.symbolizer.left_out();
        left_out
            .find(|(file, _)| *file == object)
            .map(|(_, why)| why)
    }

    /// Returns the reason why functions of an object have no names.
    fn why_no_names(&self, one: &Nameless) -> Option<NoNames> {
        if !one.in_kernel {
            return self.symbolizer.why_no_names(&one.object);
        }
        let is_this_one = self.kernel.is_this_one();
        let has_none = || !self.symbolizer.has_kernel_functions(&one.object);
        Some(match self.symbolizer.has_kernel() {
            _ if &*one.object == "[unknown]" => NoNames::NotMapped,
            _ if cfg!(target_os = "freebsd") && is_this_one && has_none() => NoNames::NotLoaded,
            true => NoNames::NotInTable,
            false if is_this_one => NoNames::HiddenKernel,
            false => NoNames::AnotherKernel,
        })
    }
}

/// Returns the sentence on a file of which something was left out.
pub(crate) fn note_on_left_out(file: &str, why: &LeftOut) -> String {
    match why {
        LeftOut::Section { .. } | LeftOut::TooDeep { .. } => format!("{file}: {why}"),
        LeftOut::OfAnotherUser { .. } => {
            format!("{file}: {why}, so its functions have no names; -f reads it all the same")
        }
        _ => format!("{file}: {why}, so its functions have no names"),
    }
}
