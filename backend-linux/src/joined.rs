//! Lists in a sentence.

use std::fmt::{Display, Write as _};

/// Returns the texts of some items with another between them, in less code than `join` is.
#[cold]
#[inline(never)]
pub(crate) fn joined<T: Display>(items: &[T], between: &str) -> String {
    let mut text = String::new();
    for item in items {
        if !text.is_empty() {
            text += between;
        }
        // Writing to a string succeeds.
        let _ = write!(text, "{item}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_text_between_items_only() {
        assert_eq!(joined(&[] as &[u32], ", "), "");
        assert_eq!(joined(&[1], ", "), "1");
        assert_eq!(joined(&[1, 2, 3], ", "), "1, 2, 3");
    }
}
