//! `quipu report`: what was recorded, function by function.

mod callers;
mod columns;
mod cut_chains;
mod entries;
mod flamegraph;
mod folded;
mod header;
mod load;
mod nameless;
mod numbered;
mod options;
mod profile;
mod rows;
mod sort;
mod stacks;
mod text;
mod threads;
mod unit;
mod viewers;
mod wall_time;

use std::io::Write;
use std::process::ExitCode;

#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) use columns::HOT;
pub use cut_chains::CutChains;
pub(crate) use entries::{Entries, Entry};
pub use flamegraph::draw;
pub(crate) use folded::path;
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) use load::Loading;
pub(crate) use load::load;
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) use load::whole_samples;
pub use options::Options;
pub(crate) use options::ShownOptions;
pub use profile::{
    EventProfile, Functions, Instruction, Profile, Seen, TakenBranch, Task, ThreadCount, Weight,
};
pub(crate) use rows::{Identity, rounded};
pub use sort::sort_keys;
pub(crate) use sort::{Key, keys};
pub use stacks::{Stack, Stacks, Weights};
pub(crate) use unit::seconds;
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) use viewers::ViewerOptions;

/// The least share that is shown on a terminal unless another one is named, in percent.
const USUAL_LIMIT: f64 = 0.1;

use quipu_perf_data::Throttling;

use quipu_shell::Failure;
use quipu_shell::pager::Pager;
use quipu_shell::terminal::{self, Layout};

use columns::Columns;
use options::Format;

/// Returns the sentence on an event that was throttled.
pub(crate) fn throttled(throttling: &Throttling) -> Option<String> {
    let share = throttling.share() * 100.0;
    let share = match share {
        0.0..1.0 => "less than 1".to_owned(),
        _ => format!("about {share:.0}"),
    };
    match throttling.times() {
        0 => None,
        1 => Some(format!("throttled once, {share} % of the time not sampled")),
        times => Some(format!(
            "throttled {times} times, {share} % of the time not sampled"
        )),
    }
}

/// Returns the sentence on samples of which the period is impossible.
pub(crate) fn jumped(samples: u64) -> Option<String> {
    let periods = match samples {
        0 => return None,
        1 => "the period of 1 sample is".to_owned(),
        _ => format!("the periods of {samples} samples are"),
    };
    Some(format!(
        "{periods} beyond what the counter can have counted: it jumped"
    ))
}

/// Returns the callers of an entry as lines, each under what it called.
#[cfg(any(target_os = "linux", target_os = "freebsd"))]
pub(crate) fn callers(profile: &Profile, total: Weight, entry: &Entry<'_>) -> Vec<String> {
    let lines = callers::lines(profile, total, entry, callers::TreeForm::default()).into_iter();
    lines.map(|line| line.text(profile, 7)).collect()
}

/// Reads a file and reports.
///
/// # Errors
/// If the recording cannot be read, or has not what was asked for.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let columns = Columns::new(options)?;
    let keys = &columns.keys;
    let mut options = options.clone();
    options.find_functions()?;
    let options = &options;
    let callers = options
        .call_graph
        .as_deref()
        .map(callers::form)
        .transpose()?;
    if let Some("" | ".") = options.field_separator.as_deref() {
        return Err(Failure::usage(
            "-t wants a separator other than the point, which stands for it in texts",
        ));
    }
    if !options.viewers.is_empty() {
        let profile = viewers::write(options)?;
        let events = chosen_events(&profile, options)?;
        let of_events = notes_on_events(&events);
        profile
            .notes
            .iter()
            .chain(&of_events)
            .for_each(terminal::warn);
        return Ok(ExitCode::SUCCESS);
    }
    let profile = load(options, keys)?;
    if options.header_only {
        let mut pager = Pager::begin(options.no_pager);
        let written = pager.write_all(profile.header.as_bytes());
        return match pager.finish(written) {
            Ok(()) => Ok(ExitCode::SUCCESS),
            Err(e) => Err(unwritten(&e)),
        };
    }
    let mut events = chosen_events(&profile, options)?;
    let is_drawn = options.folded || options.flamegraph.is_some();
    let is_text = !is_drawn && options.format() == Format::Text;
    if !is_drawn && !is_text && options.shown.event.is_none() {
        // Rows of it would be counted twice.
        events.retain(|event| event.name != wall_time::NAME);
    }
    let mut of_events = Vec::new();
    if is_drawn {
        of_events.extend(keep_first(&mut events));
    }
    if !is_text {
        of_events.extend(notes_on_events(&events));
    }
    let layout = Layout::of_stdout();
    let usual = if is_text && layout.width.is_some() {
        USUAL_LIMIT
    } else {
        0.0
    };
    let limit = options.percent_limit.unwrap_or(usual);
    let of_event = |event| Entries::new(&profile, event, keys, options, limit);
    let entries: Vec<Entries<'_>> = match is_drawn {
        true => Vec::new(),
        false => events.iter().copied().map(of_event).collect(),
    };
    let is_empty = match is_drawn {
        true => events.iter().all(|event| event.stacks.is_empty()),
        false => entries.iter().all(Entries::is_empty),
    };
    if options.chooses()? && is_empty {
        profile.notes.iter().for_each(terminal::warn);
        return Err(Failure::new(format_args!(
            "{} has no samples of what was chosen",
            options.input.display()
        )));
    }
    if let Some(note) = note_on_threads(&events, options.threads) {
        of_events.push(note);
    }
    if let (Some(path), [event, ..]) = (&options.flamegraph, events.as_slice()) {
        flamegraph::write(path, &profile, event)?;
    } else if let (true, [event, ..]) = (options.folded, events.as_slice()) {
        folded::print(&profile, event)?;
    } else {
        let mut out = profile.header.clone();
        if options.format() == Format::Separated {
            rows::heading(&mut out);
        }
        for (event, mut entries) in events.iter().copied().zip(entries) {
            match options.format() {
                Format::Text => {
                    columns.arrange(&mut entries.list);
                    text::write(
                        &mut out,
                        &profile,
                        event,
                        &entries,
                        (&columns, callers.flatten(), limit),
                        (options.field_separator.as_deref(), layout),
                    );
                }
                Format::Json => {
                    rows::json(&mut out, &profile, event, &entries, keys);
                    if options.threads {
                        threads::json(&mut out, event);
                    }
                }
                Format::Separated => rows::separated(&mut out, &profile, event, &entries),
            }
        }
        if options.threads && is_text {
            threads::table(&mut out, &events, options.field_separator.as_deref());
        }
        let mut pager = Pager::begin(options.no_pager || !is_text);
        let written = pager.write_all(out.as_bytes());
        pager.finish(written).map_err(|e| unwritten(&e))?;
    }
    for note in profile.notes.iter().chain(&of_events) {
        terminal::warn(note);
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the events that are reported.
///
/// # Errors
/// If the one that the options name is not there.
fn chosen_events<'a>(
    profile: &'a Profile,
    options: &Options,
) -> Result<Vec<&'a EventProfile>, Failure> {
    let wanted = options.shown.event.as_deref();
    let events = profile.events.iter();
    let events: Vec<_> = events
        .filter(|event| wanted.is_none_or(|name| name == event.name))
        .collect();
    if events.is_empty() {
        let names: Vec<_> = profile.events.iter().map(|e| e.name.as_str()).collect();
        return Err(Failure::usage(format_args!(
            "{} has no event {}; it has {}",
            options.input.display(),
            wanted.unwrap_or_default(),
            names.join(", ")
        )));
    }
    Ok(events)
}

/// Leaves the first event with samples, and returns a note on the others that have some: those of several events cannot be added.
fn keep_first(events: &mut Vec<&EventProfile>) -> Option<String> {
    let first = events.iter().position(|event| !event.stacks.is_empty());
    events.drain(..first.unwrap_or(0));
    let others = events.drain(1..).filter(|event| !event.stacks.is_empty());
    let others: Vec<_> = others.map(|event| event.name.as_str()).collect();
    let drawn = &events.first()?.name;
    let others = (!others.is_empty()).then(|| others.join(", "))?;
    Some(format!(
        "these are the stacks of {drawn}; -e EVENT shows those of another event: {others}"
    ))
}

/// Returns what makes the weights of events less than exact.
pub(crate) fn notes_on_events(events: &[&EventProfile]) -> Vec<String> {
    let mut notes = Vec::new();
    for event in events {
        let throttled = event.throttled.as_ref();
        notes.extend(throttled.map(|throttled| format!("{} {throttled}", event.name)));
        let jumped = jumped(event.jumped);
        notes.extend(jumped.map(|jumped| format!("{}: {jumped}", event.name)));
        let cut = event.cut.as_ref();
        notes.extend(cut.map(|cut| format!("{}: {cut}; {}", event.name, cut.remedy())));
    }
    notes
}

/// Returns the note on counts of threads that are not shown, or that there are none to be shown.
fn note_on_threads(events: &[&EventProfile], shown: bool) -> Option<String> {
    let threads = events.iter().map(|event| event.threads.len()).max();
    match (threads.unwrap_or(0), shown) {
        (0, true) => Some(
            "there are no counts of threads: record -s records those that a command makes"
                .to_owned(),
        ),
        (threads @ 1.., false) => Some(format!(
            "the file has the counts of {threads} threads too; -T shows them"
        )),
        _ => None,
    }
}

fn unwritten(error: &std::io::Error) -> Failure {
    Failure::new(format_args!("cannot write the report: {error}"))
}
