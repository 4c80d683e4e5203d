//! The selection of `quipu list`: kinds of event, and parts of names.

/// A kind of event, in the order of the listing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EventKind {
    Hardware,
    Software,
    /// Figures of a run of `quipu stat` that no counter counts.
    Tool,
    Cache,
    Raw,
    Breakpoint,
    Pmu,
    Tracepoint,
}

impl EventKind {
    pub const ALL: [Self; 8] = [
        Self::Hardware,
        Self::Software,
        Self::Tool,
        Self::Cache,
        Self::Raw,
        Self::Breakpoint,
        Self::Pmu,
        Self::Tracepoint,
    ];

    /// Returns its name in JSON and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Hardware => "hardware",
            Self::Software => "software",
            Self::Tool => "tool",
            Self::Cache => "cache",
            Self::Raw => "raw",
            Self::Breakpoint => "breakpoint",
            Self::Pmu => "pmu",
            Self::Tracepoint => "tracepoint",
        }
    }

    /// Returns its heading.
    pub const fn heading(self) -> &'static str {
        match self {
            Self::Hardware => "Hardware events",
            Self::Software => "Software events",
            Self::Tool => "Events of quipu stat",
            Self::Cache => "Cache events",
            Self::Raw => "Raw events",
            Self::Breakpoint => "Breakpoints",
            Self::Pmu => "PMU events",
            Self::Tracepoint => "Tracepoints",
        }
    }

    /// Returns the kind meant by a word on the command line, `perf list`'s words included.
    pub fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "hw" | "hardware" => Self::Hardware,
            "sw" | "software" => Self::Software,
            "tool" => Self::Tool,
            "cache" | "hwcache" => Self::Cache,
            "raw" => Self::Raw,
            "breakpoint" | "mem" => Self::Breakpoint,
            "pmu" => Self::Pmu,
            "tracepoint" | "tp" => Self::Tracepoint,
            _ => return None,
        })
    }
}

/// Which events are listed: those of one of the kinds that have one of the texts in their name. A text of several words
/// is sought word by word, in descriptions too.
#[derive(Debug)]
pub struct ListFilter {
    kinds: Vec<EventKind>,
    texts: Vec<String>,
}

impl ListFilter {
    pub fn new(filters: &[String]) -> Self {
        let mut selection = Self {
            kinds: Vec::new(),
            texts: Vec::new(),
        };
        for filter in filters {
            match EventKind::from_word(filter) {
                Some(kind) => selection.kinds.push(kind),
                None => selection.texts.push(filter.to_lowercase()),
            }
        }
        selection
    }

    /// Returns a selection by names only, even those that are words for kinds.
    pub fn of_texts(texts: &[String]) -> Self {
        Self {
            kinds: Vec::new(),
            texts: texts.iter().map(|text| text.to_lowercase()).collect(),
        }
    }

    /// Returns true if no kind was named.
    pub fn is_of_any_kind(&self) -> bool {
        self.kinds.is_empty()
    }

    /// Returns true if everything is selected.
    pub fn is_everything(&self) -> bool {
        self.kinds.is_empty() && self.texts.is_empty()
    }

    /// Returns the parts of names asked for, in lower case.
    pub fn texts(&self) -> &[String] {
        &self.texts
    }

    pub fn has_kind(&self, kind: EventKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    /// Returns true if an event with one of these names is selected; letter case does not count.
    pub fn has_name<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        self.texts.is_empty()
            || names.into_iter().any(|name| {
                let name = name.to_lowercase();
                self.texts.iter().any(|text| contains(&name, text))
            })
    }

    /// Returns true if an event is selected by one of its names, or by its names and description together. The
    /// description is asked for only if one of the texts has several words.
    pub fn has_event<'a>(
        &self,
        names: impl IntoIterator<Item = &'a str> + Clone,
        description: impl FnOnce() -> Option<&'a str>,
    ) -> bool {
        if self.has_name(names.clone()) {
            return true;
        }
        let mut sought = self
            .texts
            .iter()
            .filter(|text| text.contains(' '))
            .peekable();
        if sought.peek().is_none() {
            return false;
        }
        let mut about = words(description().unwrap_or_default());
        for name in names {
            about.push(' ');
            about.push_str(&words(name));
        }
        sought.any(|text| words(text).split(' ').all(|word| contains(&about, word)))
    }
}

/// Returns a name or description as words in lower case.
pub fn words(text: &str) -> String {
    text.to_lowercase().replace(['_', '.', '-', ':'], " ")
}

/// Returns true if the pieces of `pattern` between its `*` occur in `name`, one after the other.
pub fn contains(name: &str, pattern: &str) -> bool {
    let mut rest = name;
    pattern.split('*').all(|piece| match rest.find(piece) {
        Some(at) => {
            rest = &rest[at + piece.len()..];
            true
        }
        None => false,
    })
}
