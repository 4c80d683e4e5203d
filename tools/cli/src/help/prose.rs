//! The text below the options of a subcommand: examples, prose and tables, as its source breaks it into lines.

/// Returns the text with each paragraph of prose in one line, so that it is broken where it is shown. Examples and rows of
/// tables stay lines of their own.
pub(crate) fn reflowed(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| {
        let mut lines: Vec<String> = Vec::new();
        let is_examples = is_heading_of_examples(paragraph.lines().next().unwrap_or_default());
        for line in paragraph.lines() {
            match lines.last_mut() {
                Some(last) if !is_examples && goes_on(last, line) => {
                    last.push(' ');
                    last.push_str(line.trim_start());
                }
                _ => lines.push(line.to_owned()),
            }
        }
        lines.join("\n")
    });
    paragraphs.collect::<Vec<_>>().join("\n\n")
}

/// Returns true if a line is the heading of examples.
pub(crate) fn is_heading_of_examples(line: &str) -> bool {
    matches!(line, "Examples:" | "Try:")
}

/// Returns the columns of a row: a word or a command, and what is said of it, two blanks or more behind.
pub(crate) fn columns(line: &str) -> Option<(&str, &str)> {
    let (first, second) = line.trim_start().split_once("  ")?;
    Some((first, second.trim_start()))
}

pub(crate) fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// Returns true if a line is the same paragraph of prose as the one before it.
fn goes_on(before: &str, line: &str) -> bool {
    indent(before) == indent(line)
        && !before.ends_with(':')
        && columns(before).is_none()
        && columns(line).is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_is_one_line_and_rows_are_their_own() {
        let text = "\
Examples:
  quipu list    all
  quipu stat -- ls
  quipu info

It is said
in two lines:
  more, less      they differ
  inconclusive    a difference
                  may be there
And more
of it.

Exit status:
  that of the command;
  125 when it fails.";
        let expected = "\
Examples:
  quipu list    all
  quipu stat -- ls
  quipu info

It is said in two lines:
  more, less      they differ
  inconclusive    a difference
                  may be there
And more of it.

Exit status:
  that of the command; 125 when it fails.";
        assert_eq!(reflowed(text), expected);
    }
}
