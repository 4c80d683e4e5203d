//! Regions that the programs of a command enter (`--regions`): each process leaves a report when it ends.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{fs, process};

use clap::{Args, ValueEnum};
use quipu::Count;
use quipu_profile::report::draw;
use quipu_regions::{Apart, Counted, EVENTS_VARIABLE, REPORT_VARIABLE, Report};
use quipu_shell::Failure;
use tempfile::TempDir;

use super::report::Output;
use super::rows::Row;

/// The options of regions.
#[derive(Debug, Clone, Default, Args)]
pub struct RegionOptions {
    /// Report the regions of programs too, which these name by quipu-regions, libquipu or LIKWID's markers: the sum of all, or
    /// those of each rank of a parallel program, or of each thread
    #[arg(long, value_name = "APART", value_enum, num_args = 0..=1, require_equals = true,
          default_missing_value = "sum", help_heading = "What")]
    pub regions: Option<RegionsOf>,
    /// Draw the regions into FILE, a flame graph by the first event that was counted in them
    #[arg(
        long,
        value_name = "FILE",
        requires = "regions",
        help_heading = "Report"
    )]
    pub regions_flamegraph: Option<PathBuf>,
}

/// The owners that have regions of their own in a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum RegionsOf {
    /// Nothing: all threads of all processes together
    Sum,
    /// Each rank of a parallel program
    Rank,
    /// Each thread
    Thread,
}

/// The reports that the processes of a command leave.
#[derive(Debug)]
pub(super) struct Regions {
    directory: TempDir,
    of: RegionsOf,
    flamegraph: Option<PathBuf>,
    events: OsString,
}

impl Regions {
    /// Makes a place for reports, if they are asked for; the events of regions are those that were named.
    pub(super) fn new(options: &RegionOptions, events: &[String]) -> Result<Option<Self>, Failure> {
        let Some(of) = options.regions else {
            return Ok(None);
        };
        let directory = tempfile::Builder::new().prefix("quipu-regions-").tempdir();
        let directory = directory.map_err(|e| {
            Failure::new(format_args!(
                "cannot make a directory for the reports of regions: {e}"
            ))
        })?;
        Ok(Some(Self {
            directory,
            of,
            flamegraph: options.regions_flamegraph.clone(),
            events: events.join(",").into(),
        }))
    }

    /// Returns a command whose processes leave reports.
    pub(super) fn command(&self, words: &[OsString]) -> process::Command {
        let (program, arguments) = words.split_first().unzip();
        let mut command = process::Command::new(program.map_or_else(OsString::new, Clone::clone));
        command.args(arguments.unwrap_or_default());
        command.env(REPORT_VARIABLE, self.directory.path());
        if !self.events.is_empty() {
            command.env(EVENTS_VARIABLE, &self.events);
        }
        command
    }

    /// Writes what the processes left, beside what was counted of all.
    pub(super) fn report(&self, rows: &[Row], output: &mut Output) -> Result<(), Failure> {
        let mut reports = read(self.directory.path())?;
        let apart = match self.of {
            RegionsOf::Sum => None,
            RegionsOf::Rank => Some(Apart::Ranks),
            RegionsOf::Thread => Some(Apart::Threads),
        };
        let outside = outside(&reports, rows);
        if let Some(apart) = apart {
            reports.iter_mut().for_each(|one| one.keep_apart(apart));
        }
        output.regions(&reports, &outside);
        match &self.flamegraph {
            Some(path) => draw_regions(path, &reports),
            None => Ok(()),
        }
    }
}

/// Returns the reports in a directory, in the order in which processes ended.
fn read(directory: &Path) -> Result<Vec<Report>, Failure> {
    let read = || {
        let mut reports = Vec::new();
        for file in fs::read_dir(directory)? {
            let file = file?;
            let report: Report = serde_json::from_slice(&fs::read(file.path())?)?;
            reports.push((file.metadata()?.modified()?, report));
        }
        Ok(reports)
    };
    let mut reports = read().map_err(|e: std::io::Error| {
        Failure::new(format_args!(
            "cannot read the regions that a process left: {e}"
        ))
    })?;
    reports.sort_by_key(|(left, report)| (*left, report.process));
    Ok(reports.into_iter().map(|(_, report)| report).collect())
}

/// Returns what was counted in no region: the rest of each event that both count in the same modes.
fn outside(reports: &[Report], rows: &[Row]) -> Vec<Counted> {
    let totals = quipu_regions::totals(reports);
    let outermost = totals.iter().filter(|region| region.path.len() == 1);
    let rest = |row: &Row| {
        let mut rest = row.count.exact()?;
        let mut of_event = None;
        for region in outermost.clone() {
            let mut events = region.events.iter().map(|event| &event.counted);
            let counted = events.find(|counted| counted.name() == *row.name)?;
            rest = rest.checked_sub(counted.count?.exact()?)?;
            of_event = Some(counted);
        }
        Some(of_event?.with_count(Count::Exact(rest)))
    };
    rows.iter().filter_map(rest).collect()
}

fn draw_regions(path: &Path, reports: &[Report]) -> Result<(), Failure> {
    let totals = quipu_regions::totals(reports);
    let mut own = totals
        .iter()
        .flat_map(|region| region.events.iter().map(|event| &event.own));
    let is_counted = |own: &&Counted| own.count.and_then(Count::value) > Some(0);
    let Some(own) = own.find(is_counted) else {
        return Err(Failure::new(
            "nothing was counted in regions: there is nothing to draw",
        ));
    };
    let lines = quipu_regions::folded(reports, &own.event);
    draw(
        path,
        (&format!("{} in regions", own.event), None),
        &own.event,
        &lines,
    )
}
