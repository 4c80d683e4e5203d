//! Quotes around text that would be read otherwise.

use std::fmt;

use crate::words::consists_of;

/// Displays text as it is if it is `plain`, in quotes otherwise.
pub(super) struct MaybeQuoted<'a> {
    pub(super) text: &'a str,
    pub(super) plain: bool,
}

impl<'a> MaybeQuoted<'a> {
    /// Text that is plain when it is not empty and consists of `allowed` characters.
    pub(super) fn unless_all(text: &'a str, allowed: fn(char) -> bool) -> Self {
        Self {
            text,
            plain: consists_of(text, allowed),
        }
    }
}

impl fmt::Display for MaybeQuoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        use fmt::Write as _;
        if self.plain {
            return f.write_str(self.text);
        }
        f.write_char('\'')?;
        for c in self.text.chars() {
            match c {
                '\'' | '\\' => write!(f, "\\{c}")?,
                c if c.is_control() => write!(f, "{}", c.escape_unicode())?,
                c => f.write_char(c)?,
            }
        }
        f.write_char('\'')
    }
}
