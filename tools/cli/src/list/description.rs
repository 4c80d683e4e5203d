//! The sentence below an event, as short or long as it was asked for.

use quipu_shell::terminal::Layout;

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

/// Returns a name and what is said beside it; what has no room in a line of the terminal is below.
pub(super) fn named(name: &str, joint: &str, facts: &str, layout: Layout) -> String {
    let length = |text: &str| text.chars().count();
    let width = layout.width.unwrap_or(usize::MAX);
    let mut text = format!("  {name}{joint}");
    let mut line = String::new();
    let mut used = length(&text);
    for word in facts.split(' ') {
        let blank = usize::from(!line.is_empty());
        if used + blank + length(word) >= width && used > INDENT {
            text += &layout.dim(&line);
            text.truncate(text.trim_end().len());
            text += &format!("\n{:INDENT$}", "");
            line = word.to_owned();
            used = INDENT + length(word);
        } else {
            line += &" "[..blank];
            line += word;
            used += blank + length(word);
        }
    }
    text + &layout.dim(&line) + "\n"
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
    fn facts_without_room_are_below_the_name() {
        let narrow = Layout {
            width: Some(30),
            ..Layout::PLAIN
        };
        let facts = "event 0xc4; mask 0x01; errata SKL091";
        assert_eq!(
            named("BRANCHES", "  ", facts, narrow),
            "  BRANCHES  event 0xc4; mask\n      0x01; errata SKL091\n"
        );
        // A word that fits in no line stands alone.
        let terms = "uncore_iio/event=0x83,fc_mask=0x07/; in Bytes";
        assert_eq!(
            named("PCIE_READ", "  ", terms, narrow),
            "  PCIE_READ\n      uncore_iio/event=0x83,fc_mask=0x07/;\n      in Bytes\n"
        );
        let line = format!("  BRANCHES = {facts}\n");
        assert_eq!(named("BRANCHES", " = ", facts, Layout::PLAIN), line);
    }

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
