//! Stacks in the folded form, a line each: command and functions from the outermost on, and how much of the event.

use quipu_shell::terminal::escaped;

use super::profile::{EventProfile, Profile, Stack};

/// Returns the lines of an event, in the order of their texts.
pub(super) fn lines(profile: &Profile, event: &EventProfile) -> Vec<String> {
    let stacks = event.stacks.iter();
    let stacks = stacks.filter(|(_, weight)| weight.period > 0);
    let mut lines: Vec<_> = stacks
        .map(|(stack, weight)| format!("{} {}", path(profile, stack), weight.period))
        .collect();
    lines.sort_unstable();
    lines
}

/// Returns a stack without its weight.
pub(crate) fn path(profile: &Profile, stack: &Stack) -> String {
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
    line
}

/// Returns a name without what separates names, and without the characters that XML does not have.
pub(super) fn part(name: &str) -> String {
    let name = escaped(name).replace(';', ":");
    name.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}
