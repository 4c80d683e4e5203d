//! Flame graphs: stacks as a picture.

use std::fs;
use std::path::Path;

use inferno::flamegraph;

use quipu_shell::Failure;
use quipu_shell::terminal::escaped;

use super::profile::{EventProfile, Profile};

/// Draws the samples of these events into a file.
pub(super) fn write(
    path: &Path,
    profile: &Profile,
    events: &[&EventProfile],
) -> Result<(), Failure> {
    let lines = folded(profile, events);
    if lines.is_empty() {
        return Err(Failure::new("there are no samples to draw"));
    }
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    let mut options = flamegraph::Options::default();
    options.title = part(&names.join(", "));
    options.count_name = "samples".into();
    options.deterministic = true;
    let mut picture = Vec::new();
    flamegraph::from_lines(&mut options, lines.iter().map(String::as_str), &mut picture)
        .map_err(|e| Failure::new(format_args!("cannot draw the samples: {e}")))?;
    let picture = String::from_utf8_lossy(&picture).replace(" (1 samples, ", " (1 sample, ");
    fs::write(path, picture)
        .map_err(|e| Failure::new(format_args!("cannot write {}: {e}", path.display())))
}

/// Stacks in the folded form: command and functions from the outermost on, and how many samples.
fn folded(profile: &Profile, events: &[&EventProfile]) -> Vec<String> {
    let mut lines = Vec::new();
    for event in events {
        for (stack, weight) in &event.stacks {
            let mut line = part(&stack.task.command);
            for function in stack.frames.iter().rev() {
                let seen = profile.functions.get(*function);
                line.push(';');
                line.push_str(&match &seen.name {
                    Some(_) => part(&seen.title()),
                    None => part(&format!(
                        "[{}]",
                        seen.short_object().trim_matches(['[', ']'])
                    )),
                });
            }
            lines.push(format!("{line} {}", weight.samples));
        }
    }
    lines.sort_unstable();
    lines
}

/// A name without what separates names, and without the characters that XML does not have.
fn part(name: &str) -> String {
    let name = escaped(name).replace(';', ":");
    name.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
