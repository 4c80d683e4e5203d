//! The sentence below an event, as short or long as it was asked for.

use crate::terminal::Layout;

/// The blanks before a description.
const INDENT: usize = 6;

/// Which descriptions are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Descriptions {
    None,
    /// A line each, cut where the terminal's line ends.
    Short,
    /// All that is known.
    Long,
}

impl Descriptions {
    /// Returns the lines of the description of an event: those of the long one, where it has one and they are asked for.
    pub(super) fn of(
        self,
        short: Option<&str>,
        long: impl FnOnce() -> Option<String>,
        layout: Layout,
    ) -> String {
        let long = (self == Self::Long).then(long).flatten();
        self.lines(long.as_deref().or(short), layout)
    }

    /// Returns the lines of a description: none where there is none to show.
    pub(super) fn lines(self, description: Option<&str>, layout: Layout) -> String {
        let Some(description) = description.filter(|_| self != Self::None) else {
            return String::new();
        };
        let wrapped = layout.wrap(description, INDENT + 1);
        let cut = self == Self::Short && wrapped.len() > 1;
        let line = |line: &str| format!("{:INDENT$}{}\n", "", layout.dim(line));
        match wrapped.first() {
            Some(first) if cut => line(&format!("{first}…")),
            _ => wrapped.iter().map(|text| line(text)).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_description_is_one_line_of_the_terminal() {
        let narrow = Layout {
            width: Some(30),
            ..Layout::PLAIN
        };
        let text = Some("Requests that missed the level 2 cache");
        let short = Descriptions::Short.lines(text, narrow);
        assert_eq!(short, "      Requests that missed the…\n");
        let long = Descriptions::Long.lines(text, narrow);
        assert_eq!(
            long,
            "      Requests that missed the\n      level 2 cache\n"
        );
        let whole = "      Requests that missed the level 2 cache\n";
        assert_eq!(Descriptions::Short.lines(text, Layout::PLAIN), whole);
        assert_eq!(Descriptions::None.lines(text, narrow), "");
        assert_eq!(Descriptions::Long.lines(None, narrow), "");
    }
}
