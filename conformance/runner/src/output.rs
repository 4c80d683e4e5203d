//! Reports in several formats.

mod html;
mod json;
mod junit;
mod markdown;
mod text;

use std::io::{self, Write};

pub(crate) use html::write as html;
pub(crate) use markdown::write as markdown;
use quipu_conformance::Check;

use crate::args::Format;
use crate::page::Page;
use crate::record::Record;
use crate::runs::Runs;

/// Writes a report.
pub(crate) fn write(format: Format, runs: &Runs, out: &mut dyn Write) -> io::Result<()> {
    match format {
        Format::Table => text::table(runs, out),
        Format::Tap => text::tap(runs, out),
        Format::Junit => junit::write(runs, out),
        Format::Json => json::write(runs, out),
        Format::Record => {
            let records = runs.done.iter();
            let mut records =
                records.map(|run| Record::new(&run.report, &run.backend, &run.platform));
            records.try_for_each(|kept| record(&kept, out))
        }
        Format::Markdown => markdown(&Page::of(runs), out),
        Format::Html => html(&Page::of(runs), out),
    }
}

/// Writes what is kept of a report.
pub(crate) fn record(record: &Record, out: &mut dyn Write) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, record)?;
    writeln!(out)
}

/// Writes what the checks require, and whose word that is.
pub(crate) fn list(checks: &[&Check], out: &mut dyn Write) -> io::Result<()> {
    for check in checks {
        writeln!(out, "{}", check.id)?;
        writeln!(out, "    {}", check.requires)?;
        writeln!(out, "    source: {}", check.source)?;
    }
    writeln!(out, "{} checks", checks.len())
}

/// Returns the text without what XML 1.0 cannot hold, not even escaped.
fn xml_text(text: &str) -> String {
    let held = |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{fffd}' | '\u{10000}'..);
    text.chars()
        .map(|c| {
            if held(c) {
                c
            } else {
                char::REPLACEMENT_CHARACTER
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::xml_text;

    #[test]
    fn characters_xml_cannot_hold_are_replaced() {
        assert_eq!(
            xml_text("a\0b\u{1b}c\u{ffff}\n\u{1f600}"),
            "a\u{fffd}b\u{fffd}c\u{fffd}\n\u{1f600}"
        );
    }
}
