//! Call chains that are cut, of which reports say that shares of callers are lower bounds.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::recording::ChainSource;

use super::profile::{EventProfile, Functions, Seen, Weight};
use super::stacks::Stacks;

/// Name and file of the frame that stands for the missing callers of a chain.
const CUT: &str = "[cut]";

/// The call chains of an event that are known to lack callers. `{}` says what that means for
/// shares.
#[derive(Debug, Clone, PartialEq)]
pub struct CutChains {
    /// Their share of the event, in percent.
    pub percent: f64,
    /// The file of the functions whose callers most of them lack.
    pub object: Arc<str>,
    /// The language of these functions, if they have names.
    language: Option<Language>,
    pub(super) source: ChainSource,
}

/// A language, as the names of functions show it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Language {
    /// That of C and of assembler, which others call as well.
    C,
    Cpp,
    Go,
    Rust,
}

impl Language {
    /// Returns that of a function.
    fn of(name: &str) -> Self {
        let name = quipu_symbols::demangle(name);
        // C++ has the parameters of a function in its name, and perhaps which copy of it this is.
        let whole = name.split(" [clone").next().unwrap_or_default();
        if whole.ends_with(')') || whole.ends_with(") const") {
            Self::Cpp
        } else if name.contains("::") {
            Self::Rust
        } else if name.starts_with("main.") || name.starts_with("runtime.") {
            Self::Go
        } else {
            Self::C
        }
    }
}

impl Seen {
    /// Returns the frame that stands for the missing callers of a chain.
    pub(super) fn cut() -> Self {
        Self::stand_in(CUT)
    }

    /// Returns true for the frame that stands for the missing callers of a chain.
    pub(super) fn is_cut(&self) -> bool {
        &*self.object == CUT
    }
}

type ByLanguage = HashMap<Option<Language>, Weight>;

impl CutChains {
    /// Returns those of an event, if there are any.
    pub(super) fn of(
        event: &EventProfile,
        (functions, stacks): (&Functions, &Stacks),
        source: ChainSource,
    ) -> Option<Self> {
        let mut by_object: HashMap<&Arc<str>, (Weight, ByLanguage)> = HashMap::new();
        let mut all = Weight::default();
        for (stack, weight) in event.stacks.iter() {
            let frames = || stacks.frames(stack).map(|frame| functions.get(frame));
            // Inner frames are the program's own; [cut] is never the first.
            let Some(cut) = frames().position(Seen::is_cut) else {
                continue;
            };
            let Some(end) = frames().take(cut).last() else {
                continue;
            };
            let object = &end.object;
            let of_object = frames().take(cut);
            let of_object = of_object.filter(|function| function.object == *object);
            let names = of_object.filter_map(|function| function.name.as_deref());
            // A program of any language has functions of C.
            let language = names.map(Language::of).max();
            let (of_object, of_languages) = by_object.entry(object).or_default();
            of_object.add(weight);
            of_languages.entry(language).or_default().add(weight);
            all.add(weight);
        }
        let by_object = by_object.into_iter();
        let (object, (_, of_languages)) =
            by_object.max_by_key(|(object, (weight, _))| (weight.period, *object))?;
        let of_languages = of_languages.into_iter().filter(|(of, _)| of.is_some());
        let language = of_languages.max_by_key(|(language, weight)| (weight.period, *language));
        Some(Self {
            percent: all.percent_of(event.total),
            object: object.clone(),
            language: language.and_then(|(language, _)| language),
            source,
        })
    }

    /// Returns the words on what would find the missing callers.
    pub(crate) fn remedy(&self) -> &'static str {
        let name = self.object.rsplit('/').next().unwrap_or_default();
        let is_library = name.ends_with(".so") || name.contains(".so.");
        match self.source {
            ChainSource::FramePointers | ChainSource::Unwound => match self.language {
                // Those of a system are built by others, and Go leaves frame pointers out of assembler alone.
                _ if is_library => "record --call-graph dwarf finds the callers (8 KB a sample)",
                Some(Language::Go) => "record --call-graph dwarf finds the callers (8 KB a sample)",
                Some(Language::Rust) => {
                    "record --call-graph dwarf finds the callers (8 KB a sample), or build with -C force-frame-pointers=yes (rustc)"
                }
                Some(Language::C | Language::Cpp) => {
                    "record --call-graph dwarf finds the callers (8 KB a sample), or build with -fno-omit-frame-pointer (C, C++)"
                }
                None => {
                    "record --call-graph dwarf finds the callers (8 KB a sample), or build with -C force-frame-pointers=yes (rustc), \
                     -fno-omit-frame-pointer (C, C++)"
                }
            },
            ChainSource::StackCopies => {
                "larger copies of the stack have more callers: record --call-graph dwarf,65528"
            }
            ChainSource::CallStack => {
                "the CPU keeps the last calls alone: record --call-graph dwarf finds the callers (8 KB a sample)"
            }
        }
    }
}

impl fmt::Display for CutChains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let object = self.object.rsplit('/').next().unwrap_or_default();
        write!(
            f,
            "{:.2} % of all is in call chains that lack callers ([cut]), most in {}: shares of callers are lower bounds",
            self.percent,
            quipu_shell::terminal::escaped(object)
        )
    }
}
