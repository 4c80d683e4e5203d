//! A page as Markdown (CommonMark with the tables of GitHub).

use std::io::{self, Write};

use crate::page::{Kind, Page, Section};

pub(crate) fn write(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "# {}", page.title)?;
    for section in &page.sections {
        writeln!(out, "\n## {}\n", section.heading)?;
        if !section.sentence.is_empty() {
            writeln!(out, "{}\n", section.sentence)?;
        }
        table(section, out)?;
    }
    Ok(())
}

fn table(section: &Section, out: &mut dyn Write) -> io::Result<()> {
    let titles = section.columns.iter().map(|title| escaped(title));
    row(titles, out)?;
    let first = section.rows.first();
    let is_number = |at: usize| first.is_some_and(|row| row[at].kind == Kind::Number);
    let rules = (0..section.columns.len()).map(|at| match is_number(at) {
        true => "---:".to_owned(),
        false => "---".to_owned(),
    });
    row(rules, out)?;
    for cells in &section.rows {
        row(cells.iter().map(|cell| escaped(&cell.text)), out)?;
    }
    Ok(())
}

fn row(cells: impl Iterator<Item = String>, out: &mut dyn Write) -> io::Result<()> {
    let cells: Vec<_> = cells.collect();
    writeln!(out, "| {} |", cells.join(" | "))
}

/// The text of a cell without what Markdown would take for something else.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | '|' | '*' | '_' | '`' | '<' | '>' | '[' | ']' | '&' | '~' => {
                escaped.push('\\');
                escaped.push(c);
            }
            '\n' | '\r' => escaped.push(' '),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::escaped;

    #[test]
    fn a_cell_is_one_cell_and_plain_text() {
        let text = "a|b\n<i>*c*</i> `d` [e](f) g_h_i \\";
        let plain = r"a\|b \<i\>\*c\*\</i\> \`d\` \[e\](f) g\_h\_i \\";
        assert_eq!(escaped(text), plain);
    }
}
