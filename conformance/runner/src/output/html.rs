//! A page as one HTML file, which is well-formed XML too.

use std::io::{self, Write};

use quick_xml::events::{BytesText, Event};
use quick_xml::writer::{ElementWriter, Writer};

use super::xml_text;
use crate::page::{Cell, Kind, Page, Section};

/// No rule has a character that XML escapes: HTML does not unescape it here.
const STYLE: &str = "
body { font: 16px/1.5 system-ui, sans-serif; margin: 2em auto; max-width: 90em; padding: 0 1em; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid #bbb; padding: 0.2em 0.6em; text-align: left; vertical-align: top; }
th { background: #eee; }
.number { text-align: right; }
.pass { background: #dff5df; }
.fail { background: #f8d0d0; font-weight: bold; }
.skip { background: #f4f0d8; }
[title] { cursor: help; }
@media (prefers-color-scheme: dark) {
  body, th, td, .pass, .fail, .skip { background: #181818; color: #ddd; border-color: #555; }
  .pass { color: #7c7; } .fail { color: #f77; } .skip { color: #cc8; }
}
";

pub(crate) fn write(page: &Page, out: &mut dyn Write) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 1);
    xml.write_event(Event::DocType(BytesText::new("html")))?;
    let html = xml.create_element("html").with_attribute(("lang", "en"));
    html.write_inner_content(|xml| {
        xml.create_element("head").write_inner_content(|xml| {
            let meta = xml.create_element("meta");
            meta.with_attribute(("charset", "utf-8")).write_empty()?;
            let meta = xml.create_element("meta");
            let meta = meta.with_attribute(("name", "viewport"));
            let meta = meta.with_attribute(("content", "width=device-width"));
            meta.write_empty()?;
            text(xml.create_element("title"), page.title)?;
            text(xml.create_element("style"), STYLE)
        })?;
        xml.create_element("body").write_inner_content(|xml| {
            text(xml.create_element("h1"), page.title)?;
            page.sections.iter().try_for_each(|part| section(xml, part))
        })?;
        Ok(())
    })?;
    writeln!(out)
}

fn section<W: Write>(xml: &mut Writer<W>, section: &Section) -> io::Result<()> {
    text(xml.create_element("h2"), section.heading)?;
    if !section.sentence.is_empty() {
        text(xml.create_element("p"), &section.sentence)?;
    }
    xml.create_element("table").write_inner_content(|xml| {
        xml.create_element("thead").write_inner_content(|xml| {
            row(xml, |xml| {
                let mut titles = section.columns.iter();
                titles.try_for_each(|title| text(xml.create_element("th"), title))
            })
        })?;
        xml.create_element("tbody").write_inner_content(|xml| {
            let mut rows = section.rows.iter();
            rows.try_for_each(|cells| row(xml, |xml| cells.iter().try_for_each(|c| cell(xml, c))))
        })?;
        Ok(())
    })?;
    Ok(())
}

fn row<W: Write>(
    xml: &mut Writer<W>,
    cells: impl FnOnce(&mut Writer<W>) -> io::Result<()>,
) -> io::Result<()> {
    xml.create_element("tr").write_inner_content(cells)?;
    Ok(())
}

fn cell<W: Write>(xml: &mut Writer<W>, cell: &Cell) -> io::Result<()> {
    let class = match cell.kind {
        Kind::Text => None,
        Kind::Number => Some("number"),
        Kind::Pass => Some("pass"),
        Kind::Fail => Some("fail"),
        Kind::Skip => Some("skip"),
    };
    let mut element = xml.create_element("td");
    if let Some(class) = class {
        element = element.with_attribute(("class", class));
    }
    if let Some(note) = &cell.note {
        element = element.with_attribute(("title", xml_text(note).as_str()));
    }
    text(element, &cell.text)
}

/// An element of text; one without any has an end tag too, as HTML wants it.
fn text<W: Write>(element: ElementWriter<'_, W>, text: &str) -> io::Result<()> {
    let text = xml_text(text);
    element.write_text_content(BytesText::new(&text)).map(drop)
}
