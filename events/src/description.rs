//! The sentences that describe events.

use quipu_events_format::packed::Descriptions;
use quipu_hal::Event;

use crate::cpu_table::{EventDetails, Generalized, PresetEvent};
use crate::standard_presets;

/// The sentences of `db/descriptions/*.toml`, which `quipu-import pack` compresses.
pub(crate) static EMBEDDED: &[u8] = include_bytes!("../tables/descriptions.bin");

static SENTENCES: Descriptions = Descriptions::embedded(EMBEDDED);

/// The description of an event: in its file, or among the sentences of the embedded tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Description {
    None,
    Text(String),
    Shared(u32),
}

impl Description {
    /// Makes one of the text and the number in a table, either of which may be missing.
    pub(crate) fn new(text: &str, shared: Option<u32>) -> Self {
        match (text, shared) {
            ("", None) => Self::None,
            ("", Some(number)) => Self::Shared(number),
            (text, _) => Self::Text(text.to_owned()),
        }
    }

    /// Returns the sentence. The first that is one of the embedded tables inflates them.
    pub(crate) fn text(&self) -> Option<&str> {
        Some(self.parts()?.0)
    }

    /// Returns the sentence and those that follow it, if any do.
    pub(crate) fn long_text(&self) -> Option<String> {
        let (sentence, others) = self.parts()?;
        Some(format!("{sentence}. {}", others?))
    }

    fn parts(&self) -> Option<(&str, Option<&str>)> {
        match self {
            Self::None => None,
            Self::Text(text) => Some((text, None)),
            Self::Shared(number) => {
                SENTENCES
                    .get(*number)
                    .map(|text| match text.split_once('\t') {
                        Some((sentence, others)) => (sentence, Some(others)),
                        None => (text, None),
                    })
            }
        }
    }
}

impl EventDetails {
    /// Returns the sentence that says what it counts, where the source or the file has one. The first call for an
    /// event of the embedded tables inflates their sentences, which takes some milliseconds.
    ///
    /// ```
    /// use quipu_events::Database;
    ///
    /// let table = Database::embedded().cpu("intel-skl")?;
    /// let misses = table.event("L2_RQSTS.MISS").expect("Skylake has it");
    /// assert_eq!(misses.description(), Some("All requests that miss L2 cache"));
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    pub fn description(&self) -> Option<&str> {
        self.description.text()
    }

    /// Returns all that the source says of it, where that is more than the one sentence.
    ///
    /// ```
    /// use quipu_events::Database;
    ///
    /// let table = Database::embedded().cpu("intel-skl")?;
    /// let replaced = table.event("L1D.REPLACEMENT").expect("Skylake has it");
    /// let (short, long) = (replaced.description(), replaced.long_description());
    /// assert!(long.is_some_and(|long| long.len() > 2 * short.unwrap_or_default().len()));
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    pub fn long_description(&self) -> Option<String> {
        self.description.long_text()
    }
}

impl Generalized {
    /// Returns the words that say what it counts, those of [`quipu_text::describe`].
    pub fn description(&self) -> Option<String> {
        quipu_text::describe(&Event::generalized(&self.name)?)
    }
}

impl PresetEvent {
    /// Returns the words that say what it counts, for those that PAPI names on every CPU.
    ///
    /// ```
    /// use quipu_events::Database;
    ///
    /// let table = Database::embedded().cpu("amd-zen4")?;
    /// let misses = table.preset("PAPI_L1_DCM").expect("every table has it");
    /// assert_eq!(misses.description(), Some("misses of the level 1 data cache"));
    /// # Ok::<(), quipu_hal::Error>(())
    /// ```
    pub fn description(&self) -> Option<&'static str> {
        standard_presets::counted_by(&self.name)
    }
}
