//! Stacks in the folded form, a line each: command and functions from the outermost on, and how much of the event.

use std::ops::{ControlFlow, Range};

use quipu_shell::Failure;
use quipu_shell::terminal::{self, escaped};

use super::numbered::Numbered;
use super::profile::{EventProfile, Profile, Seen};
use super::stacks::Stack;

/// Prints the stacks of an event.
pub(super) fn print(profile: &Profile, event: &EventProfile) -> Result<(), Failure> {
    /// Bytes that are written at once.
    const PART: usize = 1 << 16;
    let mut text = String::new();
    let mut written = Ok(ControlFlow::Continue(()));
    each(profile, event, 0, |stack, weight| {
        text.push_str(&format!("{stack} {weight}\n"));
        if text.len() >= PART && matches!(written, Ok(ControlFlow::Continue(()))) {
            written = terminal::print_to_reader(&text);
            text.clear();
        }
    });
    if let ControlFlow::Continue(()) = written.map_err(Failure::new)? {
        terminal::print(&text).map_err(Failure::new)?;
    }
    Ok(())
}

impl Profile {
    /// Returns the stacks of an event in the folded form, a line each: command and functions from the outermost on with semicolons
    /// between them, and how much of the event. Flame graphs are drawn of it.
    pub fn folded(&self, event: &EventProfile) -> String {
        let mut text = String::new();
        each(self, event, 0, |stack, weight| {
            text.push_str(&format!("{stack} {weight}\n"));
        });
        text
    }
}

/// Stacks that have the same command and functions from the outermost on.
struct Common {
    stacks: Range<usize>,
    /// The number of these, with the command.
    depth: usize,
    /// The length of the text of all but the last of them.
    text: usize,
}

/// Calls `each` with the text of each stack of an event and its weight, in the order of their names; stacks of the same names are
/// one. What all stacks together that go on with a function weigh is the weight of its callers if it is less than `least`.
pub(super) fn each(
    profile: &Profile,
    event: &EventProfile,
    least: u64,
    mut each: impl FnMut(&str, u64),
) {
    let names = Names::of(profile);
    let weights = event.stacks.iter();
    let weights = weights.map(|(stack, weight)| (stack, weight.period));
    let mut stacks: Vec<_> = weights.filter(|(_, weight)| *weight > 0).collect();
    let mut waiting = vec![Common {
        stacks: 0..stacks.len(),
        depth: 0,
        text: 0,
    }];
    let mut text = String::new();
    while let Some(common) = waiting.pop() {
        text.truncate(common.text);
        let stacks = &mut stacks[common.stacks.clone()];
        if let (Some(depth), [(first, _), ..]) = (common.depth.checked_sub(1), &*stacks) {
            text.push_str(if depth > 0 { ";" } else { "" });
            text.push_str(names.text(names.at(*first, depth)));
        }
        // Those that end here come first.
        stacks.sort_by_cached_key(|(stack, _)| names.at(*stack, common.depth));
        let (mut own, others, mut start) = (0_u64, waiting.len(), common.stacks.start);
        for group in stacks
            .chunk_by(|(a, _), (b, _)| names.at(*a, common.depth) == names.at(*b, common.depth))
        {
            let weight = group
                .iter()
                .fold(0, |sum: u64, (_, weight)| sum.saturating_add(*weight));
            let ends = names.at(group[0].0, common.depth).is_none();
            match ends || weight < least {
                true => own = own.saturating_add(weight),
                false => waiting.push(Common {
                    stacks: start..start + group.len(),
                    depth: common.depth + 1,
                    text: text.len(),
                }),
            }
            start += group.len();
        }
        waiting[others..].reverse();
        if own > 0 {
            each(&text, own);
        }
    }
}

/// The names of tasks and functions, numbered in their order.
struct Names<'a> {
    profile: &'a Profile,
    texts: Vec<String>,
    of_tasks: Vec<u32>,
    of_functions: Vec<u32>,
}

impl<'a> Names<'a> {
    fn of(profile: &'a Profile) -> Self {
        let mut names = Numbered::default();
        let tasks = profile.stacks.tasks.all().iter();
        let mut of_tasks: Vec<u32> = tasks
            .map(|task| names.number(part(&task.command)))
            .collect();
        let functions = profile.functions.iter();
        let mut of_functions: Vec<u32> =
            functions.map(|seen| names.number(function(seen))).collect();
        let mut order: Vec<_> = names.all().iter().zip(0..).collect();
        order.sort_unstable();
        let mut places = vec![0; order.len()];
        for ((_, number), place) in order.iter().zip(0..) {
            places[*number as usize] = place;
        }
        for number in of_tasks.iter_mut().chain(&mut of_functions) {
            *number = places[*number as usize];
        }
        let texts = order.into_iter().map(|(text, _)| text.clone()).collect();
        Self {
            profile,
            texts,
            of_tasks,
            of_functions,
        }
    }

    /// Returns the name in a stack at a depth, the command's at 0.
    fn at(&self, stack: Stack, depth: usize) -> Option<u32> {
        let Some(from_outermost) = depth.checked_sub(1) else {
            return Some(self.of_tasks[stack.task as usize]);
        };
        let frame = self.profile.stacks.frame(stack, from_outermost)?;
        Some(self.of_functions[frame])
    }

    fn text(&self, name: Option<u32>) -> &str {
        name.map_or("", |name| &self.texts[name as usize])
    }
}

/// Returns a stack without its weight.
pub(crate) fn path(profile: &Profile, stack: Stack) -> String {
    let mut line = part(&profile.stacks.task(stack).command);
    for frame in profile.stacks.frames(stack).rev() {
        line.push(';');
        line.push_str(&function(profile.functions.get(frame)));
    }
    line
}

fn function(seen: &Seen) -> String {
    match &seen.name {
        Some(_) => part(&seen.title()),
        None => part(&format!(
            "[{}]",
            seen.short_object().trim_matches(['[', ']'])
        )),
    }
}

/// Returns a name without what separates names, and without the characters that XML does not have.
pub(super) fn part(name: &str) -> String {
    let name = escaped(name).replace(';', ":");
    name.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::{Task, Weight};

    fn lines(stacks: &[(&[&str], u64)], least: u64) -> Vec<String> {
        let mut profile = Profile::default();
        let mut event = EventProfile::default();
        for (names, period) in stacks {
            let frames = names.iter().map(|name| {
                profile.functions.place(Seen {
                    object: "app".into(),
                    name: Some((*name).into()),
                    at: None,
                    inlined: false,
                    in_kernel: false,
                    source: None,
                })
            });
            let frames: Vec<_> = frames.collect();
            let task = Task {
                command: "app".into(),
                pid: None,
                tid: None,
                cpu: None,
            };
            let stack = profile.stacks.stack(task, &frames);
            event.stacks.add(stack, Weight::of_sample(*period));
        }
        let mut lines = Vec::new();
        each(&profile, &event, least, |stack, weight| {
            lines.push(format!("{stack} {weight}"));
        });
        lines
    }

    /// Innermost first.
    const STACKS: [(&[&str], u64); 6] = [
        (&["z", "main"], 5),
        (&["b", "a", "main"], 1),
        (&["c", "a", "main"], 2),
        (&["a", "main"], 4),
        (&["main"], 8),
        (&["d", "z", "main"], 0),
    ];

    #[test]
    fn stacks_are_in_the_order_of_their_names() {
        let expected = [
            "app;main 8",
            "app;main;a 4",
            "app;main;a;b 1",
            "app;main;a;c 2",
            "app;main;z 5",
        ];
        assert_eq!(lines(&STACKS, 0), expected);
    }

    #[test]
    fn what_weighs_little_is_its_callers() {
        let expected = [
            "app;main 8",
            "app;main;a 5",
            "app;main;a;c 2",
            "app;main;z 5",
        ];
        assert_eq!(lines(&STACKS, 2), expected);
        assert_eq!(lines(&STACKS, 6), ["app;main 13", "app;main;a 7"]);
        assert_eq!(lines(&STACKS, 100), [" 20"]);
    }
}
