//! A report for programs: a line for each function, as JSON or with commas.

use std::fmt::Write;

use serde::Serialize;

use quipu_shell::terminal::escaped;

use super::entries::{Entries, Entry};
use super::profile::{EventProfile, Instruction, Profile, Seen, Weight};
use super::sort::{Key, USUAL};

/// One line. Weights are of the function itself; `children-` those with what it called.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct FunctionRow<'a> {
    event: &'a str,
    overhead: f64,
    samples: u64,
    period: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    children_samples: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    children_period: Option<u64>,
    #[serde(flatten)]
    identity: Identity<'a>,
}

/// The keys of a line, as far as the report tells them.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Identity<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    object: Option<&'a str>,
    /// Absent where the function has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<&'a str>,
    /// Its offset in the object, or its address in memory of no file, if it has no name.
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    inlined: Option<bool>,
    #[serde(flatten)]
    branch: Option<BranchIdentity<'a>>,
}

/// The keys of branches of a line, as far as the report tells them.
#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct BranchIdentity<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    from_object: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    from_symbol: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_object: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    to_symbol: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mispredicted: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cycles: Option<u16>,
}

impl<'a> Identity<'a> {
    /// Returns the keys of a line.
    pub(crate) fn new(profile: &'a Profile, entry: &'a Entry<'_>, keys: &[Key]) -> Self {
        let tells = |key| keys.contains(&key);
        let of_symbol = tells(Key::Symbol);
        let function = profile.functions.get(entry.function);
        Self {
            command: tells(Key::Command).then_some(&*entry.task.command),
            pid: entry.task.pid,
            tid: entry.task.tid,
            cpu: entry.task.cpu,
            object: tells(Key::Object).then_some(&*function.object),
            symbol: function.name.as_deref().filter(|_| of_symbol),
            address: function.at.filter(|_| of_symbol).map(|at| match at {
                Instruction::InFile(at) | Instruction::InMemory(at) => format!("{at:#x}"),
            }),
            source: function
                .source
                .as_ref()
                .map(|(file, line)| format!("{file}:{line}")),
            kernel: of_symbol.then_some(function.in_kernel),
            inlined: of_symbol.then_some(function.inlined),
            branch: BranchIdentity::new(profile, entry, keys),
        }
    }
}

impl<'a> BranchIdentity<'a> {
    fn new(profile: &'a Profile, entry: &'a Entry<'_>, keys: &[Key]) -> Option<Self> {
        let branch = profile.stacks.branch(entry.stacks.first()?.0)?;
        let tells = |key| keys.contains(&key);
        let from = branch.from.map(|from| profile.functions.get(from));
        let to = profile.functions.get(entry.function);
        let object = |function: &'a Seen| &*function.object;
        Some(Self {
            from_object: from.map(object).filter(|_| tells(Key::ObjectFrom)),
            from_symbol: from
                .and_then(|from| from.name.as_deref())
                .filter(|_| tells(Key::SymbolFrom)),
            to_object: tells(Key::ObjectTo).then(|| object(to)),
            to_symbol: to.name.as_deref().filter(|_| tells(Key::SymbolTo)),
            mispredicted: branch.mispredicted.filter(|_| tells(Key::Mispredicted)),
            cycles: tells(Key::Cycles).then_some(branch.cycles),
        })
    }
}

/// Returns a percentage with four digits, which tell what a share of any number of samples can.
pub(crate) fn rounded(percent: f64) -> f64 {
    (percent * 1e4).round() / 1e4
}

fn row<'a>(
    profile: &'a Profile,
    event: &'a EventProfile,
    entry: &'a Entry<'_>,
    keys: &[Key],
    (children, total): (bool, Weight),
) -> FunctionRow<'a> {
    FunctionRow {
        event: &event.name,
        overhead: rounded(entry.own.percent_of(total)),
        samples: entry.own.samples,
        period: entry.own.period,
        children_samples: children.then_some(entry.with_children.samples),
        children_period: children.then_some(entry.with_children.period),
        identity: Identity::new(profile, entry, keys),
    }
}

/// Appends JSON lines.
pub(super) fn json(
    out: &mut String,
    profile: &Profile,
    event: &EventProfile,
    entries: &Entries<'_>,
    keys: &[Key],
) {
    for entry in &entries.list {
        let row = row(
            profile,
            event,
            entry,
            keys,
            (entries.children, entries.total),
        );
        // Numbers and text always have a form.
        if let Ok(line) = serde_json::to_string(&row) {
            out.push_str(&line);
            out.push('\n');
        }
    }
}

/// Appends the names of the columns.
pub(super) fn heading(out: &mut String) {
    out.push_str("overhead,samples,period,children-period,event,command,object,symbol\n");
}

/// Appends lines of values with commas between them.
pub(super) fn separated(
    out: &mut String,
    profile: &Profile,
    event: &EventProfile,
    entries: &Entries<'_>,
) {
    for entry in &entries.list {
        let row = row(profile, event, entry, &USUAL, (true, entries.total));
        let _ = writeln!(
            out,
            "{},{},{},{},{},{},{},{}",
            row.overhead,
            row.samples,
            row.period,
            row.children_period.unwrap_or_default(),
            quoted(row.event),
            quoted(row.identity.command.unwrap_or_default()),
            quoted(row.identity.object.unwrap_or_default()),
            match row.identity.symbol {
                Some(symbol) => quoted(symbol),
                None => quoted(&profile.functions.get(entry.function).title()),
            },
        );
    }
}

/// A field as RFC 4180 has it: in quotation marks where it contains what separates. Control characters are escaped.
fn quoted(text: &str) -> String {
    let text = escaped(text);
    if text.contains(['"', ',']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_with_commas_are_quoted() {
        assert_eq!(quoted("f(int, \"x\")"), "\"f(int, \"\"x\"\")\"");
        assert_eq!(quoted("plain name"), "plain name");
        assert_eq!(quoted("a\n100,1,1,1,e,b"), "\"a\\n100,1,1,1,e,b\"");
    }
}
