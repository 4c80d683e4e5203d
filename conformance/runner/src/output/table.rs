//! For people.

use std::io::{self, Write};

use quipu_conformance::Report;

use crate::machine::Platform;

pub(super) fn write(report: &Report, platform: &Platform, out: &mut dyn Write) -> io::Result<()> {
    for (name, fact) in platform.facts() {
        writeln!(out, "{name:8}{fact}")?;
    }
    writeln!(out, "\n{report}")
}
