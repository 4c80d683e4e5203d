//! JUnit XML, as continuous integration reads it: a suite for each area.

use std::io::{self, Write};

use quick_xml::events::{BytesDecl, Event};
use quick_xml::writer::{ElementWriter, Writer};
use quipu_conformance::{Finding, Verdict};

use super::xml_text;
use crate::machine::Platform;
use crate::runs::{NotRun, Runs};

pub(super) fn write(runs: &Runs, out: &mut dyn Write) -> io::Result<()> {
    let mut xml = Writer::new_with_indent(&mut *out, b' ', 2);
    xml.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = xml.create_element("testsuites");
    let suites = suites.with_attribute(("name", "quipu-conform"));
    let findings: Vec<_> = runs
        .done
        .iter()
        .flat_map(|run| &run.report.findings)
        .collect();
    counted(suites, &findings, runs.not_run.len()).write_inner_content(|xml| {
        for run in &runs.done {
            let findings: Vec<_> = run.report.findings.iter().collect();
            let areas = findings.chunk_by(|a, b| a.check.area() == b.check.area());
            areas
                .into_iter()
                .try_for_each(|area| suite(xml, &run.backend, &run.platform, area))?;
        }
        runs.not_run
            .iter()
            .try_for_each(|not_run| skipped_suite(xml, not_run))
    })?;
    writeln!(out)
}

/// A suite of one case for a backend that was not run.
fn skipped_suite<W: Write>(xml: &mut Writer<W>, not_run: &NotRun) -> io::Result<()> {
    let suite = xml.create_element("testsuite");
    let suite = suite.with_attribute(("name", &*not_run.backend));
    counted(suite, &[], 1).write_inner_content(|xml| {
        let case = xml.create_element("testcase");
        let case = case.with_attribute(("classname", &*not_run.backend));
        let case = case.with_attribute(("name", "run"));
        case.write_inner_content(|xml| result(xml, "skipped", &not_run.reason))?;
        Ok(())
    })?;
    Ok(())
}

fn suite<W: Write>(
    xml: &mut Writer<W>,
    backend: &str,
    platform: &Platform,
    area: &[&Finding],
) -> io::Result<()> {
    let name = format!("{backend}.{}", area[0].check.area());
    let suite = xml.create_element("testsuite");
    let suite = suite.with_attribute(("name", name.as_str()));
    counted(suite, area, 0).write_inner_content(|xml| {
        xml.create_element("properties")
            .write_inner_content(|xml| {
                platform.facts().into_iter().try_for_each(|(fact, value)| {
                    let property = xml.create_element("property");
                    let property = property.with_attribute(("name", fact));
                    property
                        .with_attribute(("value", xml_text(value).as_str()))
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
    let (word, reason) = match &finding.verdict {
        Verdict::Pass => return case.write_empty().map(drop),
        Verdict::Fail(reason) => ("failure", reason.clone()),
        Verdict::Skip(missing) => ("skipped", missing.to_string()),
    };
    case.write_inner_content(|xml| result(xml, word, &reason))?;
    Ok(())
}

fn result<W: Write>(xml: &mut Writer<W>, word: &str, reason: &str) -> io::Result<()> {
    let element = xml.create_element(word);
    element
        .with_attribute(("message", xml_text(reason).as_str()))
        .write_empty()
        .map(drop)
}

/// An element with how many cases there are, how many failed, and how many were skipped; `not_run` besides those of the
/// findings.
fn counted<'a, W>(
    element: ElementWriter<'a, W>,
    findings: &[&Finding],
    not_run: usize,
) -> ElementWriter<'a, W> {
    let of = |word| findings.iter().filter(|f| f.verdict.word() == word).count();
    element
        .with_attribute(("tests", (findings.len() + not_run).to_string().as_str()))
        .with_attribute(("failures", of("fail").to_string().as_str()))
        .with_attribute(("skipped", (of("skip") + not_run).to_string().as_str()))
}
