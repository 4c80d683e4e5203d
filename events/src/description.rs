//! The sentences that describe events.

use quipu_events_format::packed::Descriptions;

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
