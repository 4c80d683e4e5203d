//! JUnit XML, as continuous integration reads it: a suite for each area.

use std::io::{self, Write};

use quick_xml::events::{BytesDecl, Event};
use quick_xml::writer::{ElementWriter, Writer};
use quipu_conformance::{Finding, Report, Verdict};

use crate::machine::Platform;

pub(super) fn write(report: &Report, platform: &Platform, out: &mut dyn Write) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = xml.create_element("testsuites");
    counted(
        suites.with_attribute(("name", report.backend)),
        &report.findings,
    )
    .write_inner_content(|xml| {
        let areas = report
            .findings
            .chunk_by(|a, b| a.check.area() == b.check.area());
        areas
            .into_iter()
            .try_for_each(|area| suite(xml, report.backend, platform, area))
    })?;
    writeln!(out)
}

fn suite<W: Write>(
    xml: &mut Writer<W>,
    backend: &str,
    platform: &Platform,
    area: &[Finding],
) -> io::Result<()> {
    let name = format!("{backend}.{}", area[0].check.area());
    let suite = xml.create_element("testsuite");
    counted(suite.with_attribute(("name", name.as_str())), area).write_inner_content(|xml| {
        xml.create_element("properties")
            .write_inner_content(|xml| {
                platform.facts().into_iter().try_for_each(|(fact, value)| {
                    let property = xml.create_element("property");
                    let property = property.with_attribute(("name", fact));
                    property
                        .with_attribute(("value", allowed(value).as_str()))
                        .write_empty()
                        .map(drop)
                })
            })?;
        area.iter()
            .try_for_each(|finding| case(xml, &name, finding))
    })?;
    Ok(())
}

fn case<W: Write>(xml: &mut Writer<W>, suite: &str, finding: &Finding) -> io::Result<()> {
    let case = xml
        .create_element("testcase")
        .with_attribute(("classname", suite))
        .with_attribute(("name", finding.check.id));
    let (result, reason) = match &finding.verdict {
        Verdict::Pass => return case.write_empty().map(drop),
        Verdict::Fail(reason) => ("failure", reason.clone()),
        Verdict::Skip(missing) => ("skipped", missing.to_string()),
    };
    case.write_inner_content(|xml| {
        let result = xml.create_element(result);
        result
            .with_attribute(("message", allowed(&reason).as_str()))
            .write_empty()
            .map(drop)
    })?;
    Ok(())
}

/// An element with how many cases there are, how many failed, and how many were skipped.
fn counted<'a, W>(element: ElementWriter<'a, W>, findings: &[Finding]) -> ElementWriter<'a, W> {
    let of = |word| findings.iter().filter(|f| f.verdict.word() == word).count();
    element
        .with_attribute(("tests", findings.len().to_string().as_str()))
        .with_attribute(("failures", of("fail").to_string().as_str()))
        .with_attribute(("skipped", of("skip").to_string().as_str()))
}

/// The text without what XML 1.0 cannot hold, not even escaped.
fn allowed(text: &str) -> String {
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
    use super::allowed;

    #[test]
    fn characters_xml_cannot_hold_are_replaced() {
        assert_eq!(
            allowed("a\0b\u{1b}c\u{ffff}\n\u{1f600}"),
            "a\u{fffd}b\u{fffd}c\u{fffd}\n\u{1f600}"
        );
    }
}
