//! The forms of a report: a table for a person, and files for programs.

mod benchmarks;
mod csv;
mod histogram;
mod hyperfine;
mod markdown;
mod number;
mod svg;
mod table;

use std::path::{Path, PathBuf};

use quipu_shell::terminal::{self, Layout};
use quipu_shell::{Failure, output_file};
use serde::Serialize;

use crate::gate::Answer;
use crate::machine::Machine;
use crate::options::Forms;
use crate::report::Report;
use crate::session::Measured;
use crate::stats::Settings;

/// Writes the forms that are asked for; the table if none of them goes to standard output.
pub(crate) fn write(report: &Report, forms: &Forms) -> Result<(), Failure> {
    type Form = fn(&Report) -> String;
    let asked: [(&Option<PathBuf>, Form); 7] = [
        (&forms.markdown, markdown::text),
        (&forms.json, json),
        (&forms.csv, csv::text),
        (&forms.svg, svg::text),
        (&forms.bmf, benchmarks::bencher),
        (&forms.github_benchmark, benchmarks::github),
        (&forms.export_json, hyperfine::text),
    ];
    let mut is_shown = false;
    for (path, form) in asked {
        let Some(path) = path else {
            continue;
        };
        let text = form(report);
        match path.as_os_str() == "-" {
            true => terminal::print(&text).map_err(Failure::new)?,
            false => put(path, &text)?,
        }
        is_shown |= path.as_os_str() == "-";
    }
    if !is_shown {
        terminal::print(&table::text(report, Layout::of_stdout())).map_err(Failure::new)?;
    }
    Ok(())
}

/// Keeps what was measured as a baseline.
pub(crate) fn save(
    path: &Path,
    measured: &Measured,
    machine: &Machine,
    settings: Settings,
) -> Result<(), Failure> {
    put(
        path,
        &json(&Report::new(
            measured.clone(),
            machine.clone(),
            settings,
            false,
        )),
    )
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    output_file::write(path, text)
        .map_err(|e| Failure::new(format_args!("cannot write {}: {e}", path.display())))
}

fn json(report: &Report) -> String {
    pretty(report)
}

/// Returns an object as JSON of several lines.
fn pretty(object: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(object);
    text.unwrap_or_else(|_| unreachable!("its keys are strings")) + "\n"
}

/// Writes what a person should not overlook to standard error; in a workflow of GitHub as annotations.
pub(crate) fn annotate(report: &Report) {
    let in_workflow =
        quipu_environment::variable("GITHUB_ACTIONS").is_some_and(|set| set == "true");
    let say = |level: &str, text: &str| match in_workflow {
        // Line ends and % would end a command of a workflow or change it.
        true => {
            let text = text
                .replace('%', "%25")
                .replace('\r', "%0D")
                .replace('\n', "%0A");
            terminal::say(&format!("::{level} title=quipu compare::{text}\n"));
        }
        false => terminal::warn(text),
    };
    if !report.is_complete() {
        say(
            "error",
            &format!(
                "the comparison was ended after {} pairs: {}",
                report.pairs, report.end
            ),
        );
    }
    for gate in &report.gates {
        let (level, word) = match gate.answer {
            Answer::Passed => continue,
            Answer::Failed => ("error", "failed"),
            Answer::Inconclusive => ("warning", "inconclusive"),
        };
        say(
            level,
            &format!(
                "{word} for {}: {}: {}",
                gate.command, gate.condition, gate.why
            ),
        );
    }
}
