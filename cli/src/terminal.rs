//! What an output stream is: a terminal or not, how wide, with colours or not.

use std::borrow::Cow;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::os::fd::AsFd;

/// How text is to be laid out for an output stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Columns to fit into; `None` where nobody looks at lines (a pipe or file).
    pub(crate) width: Option<usize>,
    /// Whether colours are welcome.
    pub(crate) colour: bool,
}

impl Layout {
    /// For a pipe or a file: as wide as it comes, no colours.
    pub(crate) const PLAIN: Self = Self {
        width: None,
        colour: false,
    };

    /// For standard output as it is.
    pub(crate) fn of_stdout() -> Self {
        Self::of(&io::stdout())
    }

    /// For standard error as it is.
    pub(crate) fn of_stderr() -> Self {
        Self::of(&io::stderr())
    }

    fn of(stream: &(impl IsTerminal + AsFd)) -> Self {
        if !stream.is_terminal() {
            return Self::PLAIN;
        }
        let width = terminal_size::terminal_size_of(stream).map_or(80, |(width, _)| width.0.into());
        let set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        Self {
            width: Some(width),
            colour: !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|t| t != "dumb"),
        }
    }

    /// A heading.
    pub(crate) fn bold<'a>(self, text: &'a str) -> Cow<'a, str> {
        self.sgr("1", text)
    }

    /// Something of less interest.
    pub(crate) fn dim<'a>(self, text: &'a str) -> Cow<'a, str> {
        self.sgr("2", text)
    }

    /// Something to be careful with.
    pub(crate) fn yellow<'a>(self, text: &'a str) -> Cow<'a, str> {
        self.sgr("33", text)
    }

    fn sgr<'a>(self, code: &str, text: &'a str) -> Cow<'a, str> {
        if self.colour && !text.is_empty() {
            Cow::Owned(format!("\x1b[{code}m{text}\x1b[0m"))
        } else {
            Cow::Borrowed(text)
        }
    }

    /// Breaks text into lines that fit when they start at column `indent`; a word longer than a line
    /// stays whole. Without a width there is one line.
    pub(crate) fn wrap(self, text: &str, indent: usize) -> Vec<String> {
        /// Narrower columns of text are not worth having.
        const NARROWEST: usize = 24;
        let room = self.width.map_or(usize::MAX, |width| {
            width.saturating_sub(indent).max(NARROWEST)
        });
        let (mut lines, mut line) = (Vec::new(), String::new());
        for word in text.split(' ') {
            if line.is_empty() {
                line.push_str(word);
            } else if line.chars().count() + 1 + word.chars().count() <= room {
                line.push(' ');
                line.push_str(word);
            } else {
                lines.push(std::mem::replace(&mut line, word.to_owned()));
            }
        }
        lines.push(line);
        lines
    }
}

/// Writes a whole text to standard output. A reader that went away (`| head`) is no error.
pub(crate) fn print(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_fit_and_long_words_stay_whole() {
        let narrow = Layout {
            width: Some(40),
            colour: false,
        };
        let text = "a fairly long sentence that has averyverylongwordthatfitsnowhere in it";
        let lines = narrow.wrap(text, 10);
        assert_eq!(
            lines,
            [
                "a fairly long sentence that",
                "has",
                "averyverylongwordthatfitsnowhere",
                "in it"
            ]
        );
        assert_eq!(Layout::PLAIN.wrap(text, 10), [text]);
        assert_eq!(narrow.wrap("", 10), [""]);
    }

    #[test]
    fn colours_only_where_welcome() {
        let colour = Layout {
            width: None,
            colour: true,
        };
        assert_eq!(colour.bold("x"), "\x1b[1mx\x1b[0m");
        assert_eq!(colour.dim(""), "");
        assert_eq!(Layout::PLAIN.bold("x"), "x");
    }
}
