//! Call chains that are cut, of which reports say that shares of callers are lower bounds.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use crate::recording::ChainSource;

use super::profile::{EventProfile, Functions, Seen, Weight};

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
    source: ChainSource,
}

impl Seen {
    /// Returns the frame that stands for the missing callers of a chain.
    pub(super) fn cut() -> Self {
        Self {
            object: CUT.into(),
            name: Some(CUT.into()),
            at: None,
            inlined: false,
            in_kernel: false,
            source: None,
        }
    }

    /// Returns true for the frame that stands for the missing callers of a chain.
    pub(super) fn is_cut(&self) -> bool {
        &*self.object == CUT
    }
}

impl CutChains {
    /// Returns those of an event, if there are any.
    pub(super) fn of(
        event: &EventProfile,
        functions: &Functions,
        source: ChainSource,
    ) -> Option<Self> {
        let mut by_object: HashMap<&Arc<str>, Weight> = HashMap::new();
        let mut all = Weight::default();
        for (stack, weight) in &event.stacks {
            let frames = &stack.frames;
            let cut = frames.iter().position(|f| functions.get(*f).is_cut());
            // Inner frames are the program's own; [cut] is never the first.
            if let Some(end) = cut.and_then(|at| frames.get(at.checked_sub(1)?)) {
                let object = &functions.get(*end).object;
                by_object.entry(object).or_default().add(*weight);
                all.add(*weight);
            }
        }
        let by_object = by_object.into_iter();
        let (object, _) = by_object.max_by_key(|(object, weight)| (weight.period, *object))?;
        Some(Self {
            percent: all.percent_of(event.total),
            object: object.clone(),
            source,
        })
    }

    /// Returns the words on what would find the missing callers.
    pub(crate) fn remedy(&self) -> &'static str {
        let name = self.object.rsplit('/').next().unwrap_or_default();
        let is_library = name.ends_with(".so") || name.contains(".so.");
        match self.source {
            ChainSource::FramePointers | ChainSource::Unwound if is_library => {
                "record --call-graph dwarf finds the callers"
            }
            ChainSource::FramePointers | ChainSource::Unwound => {
                "record --call-graph dwarf finds the callers, or frame pointers do: -C force-frame-pointers=yes of rustc, \
                 -fno-omit-frame-pointer of C and C++"
            }
            ChainSource::StackCopies => {
                "larger copies of the stack have more callers: record --call-graph dwarf,65528"
            }
            ChainSource::CallStack => {
                "the CPU keeps the last calls alone: record --call-graph dwarf finds the callers"
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
