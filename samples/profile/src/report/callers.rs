//! Callers of a function: a tree, the heaviest first.

use std::collections::HashMap;

use quipu_shell::Failure;
use quipu_shell::terminal::escaped;

use super::entries::Entry;
use super::profile::{Profile, Weight};

/// Callers below this share of all samples are left out unless another one is named, in percent.
const SMALLEST: f64 = 0.5;
/// Deeper trees are cut: nobody follows them, and a recursion has no end.
const DEEPEST: usize = 64;

/// The form of trees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TreeForm {
    /// True if they begin with the outermost caller.
    from_outermost: bool,
    /// The least share of all samples that is shown, in percent.
    smallest: f64,
}

/// Returns the form that a text asks for, as `perf report -g` has it; `None` where no trees are wanted.
pub(super) fn form(text: &str) -> Result<Option<TreeForm>, Failure> {
    let mut form = TreeForm::default();
    for word in text.split(',') {
        match (word, word.parse()) {
            ("none", _) => return Ok(None),
            ("graph" | "function" | "percent", _) => {}
            ("callee", _) => form.from_outermost = false,
            ("caller", _) => form.from_outermost = true,
            (_, Ok(share @ 0.0..=100.0)) => form.smallest = share,
            ("folded", _) => {
                return Err(Failure::usage(
                    "-g folded is not supported; --folded prints whole stacks, a line each",
                ));
            }
            _ => {
                return Err(Failure::usage(format_args!(
                    "-g {text}: {word} is not supported; give caller or callee, a least share in percent, or none: graph,0.5,caller"
                )));
            }
        }
    }
    Ok(Some(form))
}

/// A function that called the one above it, and those that called it.
#[derive(Debug, Default)]
struct Callers {
    weight: Weight,
    by_function: HashMap<usize, Self>,
}

/// One line of the tree.
#[derive(Debug, PartialEq)]
pub(super) struct CallerLine {
    /// The columns that it stands further in than the first caller.
    pub(super) indent: usize,
    pub(super) percent: f64,
    pub(super) function: usize,
}

impl Default for TreeForm {
    fn default() -> Self {
        Self {
            from_outermost: false,
            smallest: SMALLEST,
        }
    }
}

impl CallerLine {
    /// Returns it as text, with the share in so many columns.
    pub(super) fn text(&self, profile: &Profile, width: usize) -> String {
        let title = profile.functions.get(self.function).title();
        let indent = self.indent;
        format!(
            "{:>width$.2}%{:indent$}  {}",
            self.percent,
            "",
            escaped(&title)
        )
    }
}

/// The callers of an entry, in the order to print them: each stands further in than what it called, by less where it is
/// the only one, as chains of those are long.
pub(super) fn lines(
    profile: &Profile,
    total: Weight,
    entry: &Entry<'_>,
    form: TreeForm,
) -> Vec<CallerLine> {
    let mut root = Callers::default();
    for (stack, weight) in &entry.stacks {
        root.weight.add(*weight);
        let mut callers: Vec<usize> = profile.stacks.frames(*stack).skip(1).collect();
        if form.from_outermost {
            callers.reverse();
        }
        let mut node = &mut root;
        for function in callers.into_iter().take(DEEPEST) {
            node = node.by_function.entry(function).or_default();
            node.weight.add(*weight);
        }
    }
    let mut lines = Vec::new();
    root.collect(profile, (total, form.smallest), 0, &mut lines);
    lines
}

impl Callers {
    fn collect(
        &self,
        profile: &Profile,
        (total, smallest): (Weight, f64),
        indent: usize,
        lines: &mut Vec<CallerLine>,
    ) {
        let mut callers: Vec<_> = self
            .by_function
            .iter()
            .filter(|(_, callers)| callers.weight.percent_of(total) >= smallest)
            .collect();
        callers.sort_by(|(a, of_a), (b, of_b)| {
            let [a, b] = [*a, *b].map(|function| profile.functions.get(*function));
            let heavier = of_b.weight.period.cmp(&of_a.weight.period);
            // Several files may have a function of the same name.
            heavier
                .then_with(|| a.name.cmp(&b.name))
                .then_with(|| a.cmp(b))
        });
        let alone = callers.len() == 1 && callers[0].1.weight == self.weight;
        for (function, callers) in callers {
            lines.push(CallerLine {
                indent,
                percent: callers.weight.percent_of(total),
                function: *function,
            });
            callers.collect(
                profile,
                (total, smallest),
                indent + if alone { 1 } else { 2 },
                lines,
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::profile::{Seen, Task};
    use crate::report::stacks::Stack;

    #[test]
    fn callers_of_one_weight_and_name_have_an_order() {
        let mut profile = Profile::default();
        let mut place = |object: &str, name: Option<&str>| {
            profile.functions.place(Seen {
                object: object.into(),
                name: name.map(Into::into),
                at: None,
                inlined: false,
                in_kernel: false,
                source: None,
            })
        };
        let called = place("a.so", Some("called"));
        let mut callers = vec![place("a.so", Some("helper"))];
        callers.extend((1..20).rev().map(|n| place(&format!("{n:02}.so"), None)));
        callers.extend(
            (1..20)
                .rev()
                .map(|n| place(&format!("{n:02}.so"), Some("main"))),
        );
        let task = Task {
            command: "x".into(),
            pid: None,
            tid: None,
            cpu: None,
        };
        let stack = |caller: &usize| profile.stacks.stack(task.clone(), &[called, *caller]);
        let stacks: Vec<Stack> = callers.iter().map(stack).collect();
        let weight = Weight::of_sample(1);
        let entry = Entry {
            cells: Vec::new(),
            task: &task,
            function: called,
            own: weight,
            with_children: weight,
            stacks: stacks.iter().map(|stack| (*stack, weight)).collect(),
        };
        let total = Weight::of_sample(39);
        let lines = lines(&profile, total, &entry, TreeForm::default());
        let of_line = |line: &CallerLine| {
            let Seen { object, name, .. } = profile.functions.get(line.function);
            format!("{} {object}", name.as_deref().unwrap_or("-"))
        };
        let shown: Vec<String> = lines.iter().map(of_line).collect();
        let of =
            |name: &str| -> Vec<String> { (1..20).map(|n| format!("{name} {n:02}.so")).collect() };
        assert_eq!(
            shown,
            [of("-"), vec!["helper a.so".into()], of("main")].concat()
        );
    }

    #[test]
    fn forms_are_those_of_perf() {
        let with = |from_outermost, smallest| TreeForm {
            from_outermost,
            smallest,
        };
        for (text, expected) in [
            ("graph", Some(with(false, 0.5))),
            ("caller", Some(with(true, 0.5))),
            ("graph,2,callee,function,percent", Some(with(false, 2.0))),
            ("graph,0,caller", Some(with(true, 0.0))),
            ("none", None),
        ] {
            assert_eq!(form(text).expect(text), expected, "{text}");
        }
        let folded = form("folded,caller").expect_err("refused").to_string();
        assert!(folded.contains("--folded prints"), "{folded}");
        for wrong in ["folded", "graph,-1", "101", ""] {
            assert!(form(wrong).is_err(), "{wrong}");
        }
    }
}
