//! Labels of events in reports.

use std::fmt;
use std::ops::Range;

use quipu_hal::EventSpec;

/// The name of an event in a report: its text as one would write it with the modifiers that it has.
///
/// ```
/// use quipu_hal::{EventSpec, Filter, Hardware};
/// use quipu_text::Label;
///
/// let mut label = Label::from("cpu-cycles".to_owned());
/// label.add("u", &EventSpec::new(Hardware::Cycles).with_filter(Filter::USER_ONLY));
/// assert_eq!(label.to_string(), "cpu-cycles:u");
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Label {
    text: String,
    modifiers: ModifierPlace,
}

/// The place of the modifiers in a label.
#[derive(Debug, Clone, PartialEq, Eq)]
enum ModifierPlace {
    None,
    Letters(Range<usize>),
    /// The text is the one that the event is displayed as.
    Displayed,
}

impl Label {
    /// Returns the label of text with its letters at a place.
    pub(crate) fn new(text: &str, letters: Option<&Range<usize>>) -> Self {
        Self {
            text: text.to_owned(),
            modifiers: letters.map_or(ModifierPlace::None, |at| ModifierPlace::Letters(at.clone())),
        }
    }

    /// Returns the label of an event that was not written itself.
    pub(crate) fn displayed(spec: &EventSpec) -> Self {
        Self {
            text: spec.to_string(),
            modifiers: ModifierPlace::Displayed,
        }
    }

    /// Adds modifiers, which the event `spec` has already. Where the letters cannot stand together, as after a `-`, the label
    /// becomes the event as it is displayed.
    pub fn add(&mut self, letters: &str, spec: &EventSpec) {
        if letters.is_empty() {
            return;
        }
        match &mut self.modifiers {
            ModifierPlace::None => {
                self.text.push(':');
                let start = self.text.len();
                self.text.push_str(letters);
                self.modifiers = ModifierPlace::Letters(start..self.text.len());
            }
            ModifierPlace::Letters(at) if stand_together(&self.text[at.clone()], letters) => {
                self.text.insert_str(at.end, letters);
                at.end += letters.len();
            }
            _ => *self = Self::displayed(spec),
        }
    }
}

/// Returns true if letters mean the same with more behind them.
fn stand_together(letters: &str, more: &str) -> bool {
    let is_there = |c| c != 'p' && letters.contains(c);
    !letters.contains('-') && !more.contains('-') && !more.contains(is_there)
}

/// A name that was given to the event.
impl From<String> for Label {
    fn from(name: String) -> Self {
        Self::new(&name, None)
    }
}

impl fmt::Display for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}
