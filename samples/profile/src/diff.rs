//! `quipu diff`: what differs between recordings, function by function.

mod compute;
mod flamegraph;
mod json;
mod matched;
mod options;
mod text;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

pub use options::Options;

use crate::report::{self, Entries, EventProfile, Key, Profile};
use quipu_shell::Failure;
use quipu_shell::pager::Pager;
use quipu_shell::terminal::{self, Layout};

use compute::Compute;
use matched::Matched;

/// A recording and the file it was read from.
struct ReadRecording {
    path: PathBuf,
    /// The options by which a report of it alone would be made.
    options: report::Options,
    profile: Profile,
}

/// The form of a comparison: its keys, its order, and what is shown.
struct DiffForm<'a> {
    keys: &'a [Key],
    compute: Compute,
    /// The position of the recording by which rows are sorted; 0 is the baseline.
    order: usize,
    options: &'a Options,
}

/// Reads the files and shows what differs.
///
/// # Errors
/// If a recording cannot be read, or they have nothing in common to compare.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let keys = report::keys(&options.shown.sort)?;
    let paths = options.paths();
    let order = options.order.unwrap_or(1);
    if order >= paths.len() {
        return Err(Failure::usage(format_args!(
            "-o {order}: give the number of a file, from 0 (the baseline) to {}",
            paths.len() - 1
        )));
    }
    let recordings = paths.into_iter().map(|path| load(path, options, &keys));
    let recordings: Vec<ReadRecording> = recordings.collect::<Result<_, _>>()?;
    let form = DiffForm {
        keys: &keys,
        compute: options.compute,
        order,
        options,
    };
    let mut notes = Vec::new();
    if let Some(picture) = &options.flamegraph {
        drawn(picture, &recordings, options, &mut notes)?;
        notes.iter().for_each(terminal::warn);
        return Ok(ExitCode::SUCCESS);
    }
    let out = compared(&recordings, &form, &mut notes)?;
    let mut pager = Pager::begin(options.no_pager || options.json);
    let written = pager.write_all(out.as_bytes());
    pager
        .finish(written)
        .map_err(|e| Failure::new(format_args!("cannot write the differences: {e}")))?;
    for note in &notes {
        terminal::warn(note);
    }
    Ok(ExitCode::SUCCESS)
}

fn load(path: PathBuf, options: &Options, keys: &[Key]) -> Result<ReadRecording, Failure> {
    let mut of_report = report::Options {
        input: path.clone(),
        shown: options.shown.clone(),
        // A picture has the callers too.
        flamegraph: options.flamegraph.clone(),
        ..report::Options::default()
    };
    of_report.find_functions_of_several()?;
    let mut profile = report::load(&of_report, keys)?;
    if of_report.chooses()? && profile.events.iter().all(|event| event.stacks.is_empty()) {
        let note = "there are no samples of what was chosen";
        profile.notes.push(note.to_owned());
    }
    Ok(ReadRecording {
        path,
        options: of_report,
        profile,
    })
}

/// Draws one event of two recordings, and appends what is to be said of the files.
fn drawn(
    picture: &Path,
    recordings: &[ReadRecording],
    options: &Options,
    notes: &mut Vec<String>,
) -> Result<(), Failure> {
    let [old, new] = recordings else {
        return Err(Failure::usage("--flamegraph wants two files"));
    };
    let wanted = options.shown.event.as_deref();
    let is_wanted = |event: &&EventProfile| match wanted {
        Some(name) => name == event.name,
        None => !event.stacks.is_empty(),
    };
    let of_new = new.profile.events.iter().find(is_wanted);
    let of_old = of_new.and_then(|new| old.profile.events.iter().find(|old| old.name == new.name));
    for recording in recordings {
        let path = recording.path.display();
        let of_file = recording.profile.notes.iter();
        notes.extend(of_file.map(|note| format!("{path}: {note}")));
    }
    let (Some(of_old), Some(of_new)) = (of_old, of_new) else {
        return Err(Failure::usage(format_args!(
            "there is no event with samples that both files have: {} has {}, {} has {}",
            old.path.display(),
            names(&old.profile),
            new.path.display(),
            names(&new.profile),
        )));
    };
    notes.extend(losses(&old.path, of_old));
    notes.extend(losses(&new.path, of_new));
    let title = format!(
        "{}: {}, compared with {}",
        of_new.name,
        new.path.display(),
        old.path.display()
    );
    flamegraph::write(
        picture,
        (&old.profile, of_old),
        (&new.profile, of_new),
        &title,
    )
}

/// Returns the text on all events of the baseline, and appends what is to be said of the files.
fn compared(
    recordings: &[ReadRecording],
    form: &DiffForm<'_>,
    notes: &mut Vec<String>,
) -> Result<String, Failure> {
    let [baseline, others @ ..] = recordings else {
        return Ok(String::new());
    };
    let wanted = form.options.shown.event.as_deref();
    let all = baseline.profile.events.iter();
    let events: Vec<_> = all
        .filter(|event| wanted.is_none_or(|name| name == event.name))
        .collect();
    if events.is_empty() {
        let name = wanted.unwrap_or_default();
        return Err(Failure::usage(format_args!(
            "{} has no event {name}; it has {}",
            baseline.path.display(),
            names(&baseline.profile),
        )));
    }
    for recording in recordings {
        let path = recording.path.display();
        let of_file = recording.profile.notes.iter();
        notes.extend(of_file.map(|note| format!("{path}: {note}")));
    }
    let mut out = String::new();
    for event in events {
        notes.extend(losses(&baseline.path, event));
        let mut of_files = vec![Some((baseline, event))];
        for other in others {
            let found = other.profile.events.iter().find(|e| e.name == event.name);
            match found {
                Some(found) => notes.extend(losses(&other.path, found)),
                None => notes.push(format!(
                    "{} has no event {}, it has {}: nothing of it is compared",
                    other.path.display(),
                    event.name,
                    names(&other.profile)
                )),
            }
            of_files.push(found.map(|found| (other, found)));
        }
        let lines = of_files.iter().map(|of_file| {
            of_file.map(|(file, event)| {
                Entries::new(&file.profile, event, form.keys, &file.options, 0.0)
            })
        });
        let lines: Vec<Option<Entries<'_>>> = lines.collect();
        let totals = of_files.iter().map(|of_file| {
            let total = of_file.map(|(_, event)| event.total);
            total.unwrap_or_default()
        });
        let matched = Matched::new(&lines, totals.collect(), form);
        match form.options.json {
            true => json::write(&mut out, recordings, &event.name, &matched, form),
            false => {
                let layout = Layout::of_stdout();
                text::write(&mut out, recordings, &event.name, &matched, form, layout);
            }
        }
    }
    Ok(out)
}

fn names(profile: &Profile) -> String {
    let names: Vec<_> = profile.events.iter().map(|e| e.name.as_str()).collect();
    names.join(", ")
}

/// Returns what makes the shares of an event less than exact.
fn losses(path: &Path, event: &EventProfile) -> Vec<String> {
    let lost = match event.lost {
        0 => None,
        lost => Some(format!("{lost} samples were lost")),
    };
    let all = [lost, event.throttled.clone(), report::jumped(event.jumped)];
    let path = path.display();
    let all = all.into_iter().flatten();
    all.map(|what| format!("{path}: {}: {what}", event.name))
        .collect()
}
