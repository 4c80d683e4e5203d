//! Functions as people name them: by the last part of a path, or by a part that no other function has.

use std::collections::BTreeSet;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use quipu_perf_data::{BranchStack, Sample};
use quipu_shell::Failure;
use quipu_shell::terminal::{self, escaped};
use quipu_symbols::AddressOwner;
use quipu_text::nearest_of;

use super::chain::ChainFrame;
use super::input::{Input, name as name_of_input};
use super::owner::{owner, owner_of_address};
use super::places::Places;
use super::replay::Replay;
use super::visit::Visit;

/// As many names are in a message.
const MOST_NAMES: usize = 3;
/// Beginnings of what compilers append to the names of parts and copies of a function, and linkers to versions.
const APPENDED: [&str; 7] = [
    ".part.",
    ".constprop.",
    ".isra.",
    ".cold",
    ".llvm.",
    ".lto_priv.",
    "@",
];

impl Input<'_> {
    /// Replaces names of functions that no sample of the file is in by those that are meant. A name is exact, or the last part of
    /// the paths of some functions, or a part of the name of one. One that is none of that stays as it is, with a warning that
    /// names the nearest. Names for standard input are exact, as it can be read once.
    ///
    /// # Errors
    /// If no name is any of that, or the file cannot be read.
    pub(crate) fn find_functions(self, wanted: &mut Vec<String>) -> Result<(), Failure> {
        let asked = wanted.len();
        let mut missing = self.replace_names(wanted, true)?;
        if missing.len() == asked && asked > 0 {
            return Err(missing.remove(0));
        }
        missing.iter().for_each(terminal::warn);
        Ok(())
    }

    /// Does so for one of several files, which are compared: a name that it has not stays as it is, and a part of a name means none, as
    /// it could mean another function in each.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn find_functions_of_several(self, wanted: &mut Vec<String>) -> Result<(), Failure> {
        self.replace_names(wanted, false).map(|_| ())
    }

    /// Returns why names stay as they are.
    fn replace_names(
        self,
        wanted: &mut Vec<String>,
        by_parts: bool,
    ) -> Result<Vec<Failure>, Failure> {
        if wanted.is_empty() || self.path == Path::new("-") {
            return Ok(Vec::new());
        }
        let begin = |_: &[_], _: &_, _: &[String]| {
            Ok(SeenNames {
                missing: wanted.clone(),
                names: BTreeSet::new(),
                places: Places::default(),
                hits: Vec::new(),
            })
        };
        let (_, seen) = self.replay(begin)?;
        let mut missing = Vec::new();
        if seen.missing.is_empty() {
            return Ok(missing);
        }
        let mut found = Vec::new();
        for name in wanted.iter() {
            match meant(name, &seen.names, by_parts) {
                Ok(meant) => found.extend(meant),
                Err(why) => {
                    let file = name_of_input(self.path);
                    missing.push(Failure::new(format_args!("{file} {why}")));
                    found.push(name.clone());
                }
            }
        }
        *wanted = found;
        Ok(missing)
    }
}

/// The names of functions that samples are in, until all that are wanted were seen.
struct SeenNames {
    missing: Vec<String>,
    names: BTreeSet<Arc<str>>,
    places: Places,
    hits: Vec<ChainFrame>,
}

impl Visit for SeenNames {
    fn sample(
        &mut self,
        replay: &mut Replay,
        event: usize,
        sample: &Sample<'_>,
    ) -> ControlFlow<()> {
        let pid = sample.thread().map_or(-1, |thread| thread.pid);
        match sample.ip() {
            Some(ip) => self.see(replay, owner(sample.misc().cpu_mode(), pid), ip),
            // Its call chain begins with the instruction.
            None => {
                let mut hits = std::mem::take(&mut self.hits);
                replay.hits(event, sample, &mut hits);
                if let Some(first) = hits.first() {
                    self.see(replay, first.owner, first.address);
                }
                self.hits = hits;
            }
        }
        for branch in sample.branches().iter().flat_map(BranchStack::iter) {
            self.see(replay, owner_of_address(branch.to, pid), branch.to);
        }
        match self.missing.is_empty() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}

impl SeenNames {
    /// Takes note of the functions at an address.
    fn see(&mut self, replay: &mut Replay, owner: AddressOwner, address: u64) {
        let place = self.places.at(replay, owner, address);
        let inlined = place.code.inlined.iter().map(|inlined| &inlined.symbol);
        for name in inlined.chain([&place.code.symbol]).flatten() {
            if self.names.insert(name.clone()) {
                self.missing.retain(|missing| **missing != **name);
            }
        }
    }
}

/// Returns the functions that a text means, or why it means none; with `by_parts` a part of the name of one does too.
fn meant(wanted: &str, names: &BTreeSet<Arc<str>>, by_parts: bool) -> Result<Vec<String>, String> {
    let those = |is_meant: &dyn Fn(&str) -> bool| -> Vec<String> {
        let names = names.iter().filter(|name| is_meant(name));
        names.map(ToString::to_string).collect()
    };
    let is_exact = |name: &str| name == wanted;
    let is_last = |name: &str| last_part(name) == wanted;
    for is_meant in [&is_exact as &dyn Fn(&str) -> bool, &is_last] {
        let found = those(is_meant);
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let found = those(&|name| by_parts && name.contains(wanted));
    match found.as_slice() {
        [_] => return Ok(found),
        [_, ..] => {
            return Err(format!(
                "has samples in {} functions with {wanted} in their names: {}; name one of them",
                found.len(),
                listed(found.iter().map(String::as_str)),
            ));
        }
        [] => {}
    }
    let texts = || names.iter().map(|name| &**name);
    let near = nearest_of(wanted, texts()).into_iter();
    let near = near.chain(nearest_of(wanted, texts().map(last_part)));
    let mut known = BTreeSet::new();
    let near =
        near.flat_map(|near| texts().filter(move |name| *name == near || last_part(name) == near));
    let near: Vec<&str> = near.filter(|name| known.insert(*name)).collect();
    let advice = match near.len() {
        0 => "quipu report lists the functions".to_owned(),
        1 => format!("the nearest is {}", listed(near.into_iter())),
        _ => format!(
            "the nearest are {}",
            listed(near.into_iter().take(MOST_NAMES))
        ),
    };
    Err(format!("has no samples in a function {wanted}; {advice}"))
}

/// Returns the first names in a sentence.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<_> = names.map(escaped).collect();
    let shown = names.iter().take(MOST_NAMES);
    let mut text = shown.map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    if names.len() > MOST_NAMES {
        text += ", ...";
    }
    text
}

/// Returns the last part of the path of a function, without its parameters and what compilers append: `histogram` of
/// `wordcount::histogram` and of `words::histogram<int>(char const*)`, `mallocgc` of `runtime.mallocgc`.
pub(super) fn last_part(name: &str) -> &str {
    let ends = APPENDED.iter().filter_map(|appended| name.find(appended));
    let name = &name[..ends.filter(|end| *end > 0).min().unwrap_or(name.len())];
    let (mut depth, mut start, mut end) = (0_usize, 0, name.len());
    let mut before = ' ';
    for (at, c) in name.char_indices() {
        match c {
            '<' if depth == 0 && at > start => {
                end = at;
                depth = 1;
            }
            '<' => depth += 1,
            // That of an arrow is no bracket.
            '>' if before != '-' => depth = depth.saturating_sub(1),
            // Parameters; a receiver of Go is behind a point.
            '(' if depth == 0 && at > start && before != '.' => {
                end = end.min(at);
                break;
            }
            ':' if depth == 0 && before == ':' => (start, end) = (at + 1, name.len()),
            '.' | '/' if depth == 0 && !name.contains("::") => (start, end) = (at + 1, name.len()),
            _ => {}
        }
        before = c;
    }
    match name.get(start..end) {
        Some(part) if !part.is_empty() => part,
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_part_is_what_people_call_a_function() {
        for (name, part) in [
            ("main", "main"),
            ("wordcount::histogram", "histogram"),
            (
                "hashbrown::rustc_entry::<impl hashbrown::map::HashMap<K,V,S,A>>::rustc_entry",
                "rustc_entry",
            ),
            ("<alloc::vec::Vec<T> as core::clone::Clone>::clone", "clone"),
            ("words::histogram<int>(char const*)", "histogram"),
            (
                "std::function<void (int)>::operator()(int) const",
                "operator",
            ),
            ("void words::each<f(int)>(g::h)", "each"),
            ("runtime.mallocgc", "mallocgc"),
            ("net/http.(*conn).serve", "serve"),
            ("msort_with_tmp.part.0", "msort_with_tmp"),
            ("hot.cold", "hot"),
            ("memcpy@@GLIBC_2.14", "memcpy"),
            ("@plt", "@plt"),
            ("a::b->c", "b->c"),
            ("::", "::"),
            ("", ""),
        ] {
            assert_eq!(last_part(name), part, "{name}");
        }
    }

    #[test]
    fn a_name_is_exact_or_a_last_part_or_a_part_of_one() {
        let names = [
            "histogram",
            "wordcount::histogram",
            "wordcount::tokenizer::run",
            "server::run",
            "server::read_line",
            "server::read_block",
            "hashbrown::rustc_entry",
        ];
        let names: BTreeSet<Arc<str>> = names.into_iter().map(Arc::from).collect();
        let without_parts = |wanted| meant(wanted, &names, false);
        assert!(without_parts("_line").is_err() && without_parts("histogram").is_ok());
        let meant = |wanted| meant(wanted, &names, true);
        assert_eq!(meant("histogram"), Ok(vec!["histogram".to_owned()]));
        assert_eq!(
            meant("run"),
            Ok(vec![
                "server::run".to_owned(),
                "wordcount::tokenizer::run".to_owned()
            ])
        );
        assert_eq!(meant("_line"), Ok(vec!["server::read_line".to_owned()]));
        assert_eq!(
            meant("read"),
            Err(
                "has samples in 2 functions with read in their names: server::read_block, server::read_line; name one of them"
                    .to_owned()
            )
        );
        assert_eq!(
            meant("hsitogram"),
            Err(
                "has no samples in a function hsitogram; the nearest are histogram, wordcount::histogram"
                    .to_owned()
            )
        );
        assert_eq!(
            meant("xyzzy"),
            Err("has no samples in a function xyzzy; quipu report lists the functions".to_owned())
        );
    }
}
