//! What has changed since a report was kept.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::record::{Ending, Record};

/// Writes a line for each record of `now`, and one for each check that passed in the record of the
/// same name `before` and does not any more. Whether there is nothing to be sorry for.
///
/// On another machine, or as another user, a check may be skipped that was not before; to fail it
/// may not. Simulated machines are run over all together: where one of them is, none may be missing.
pub(crate) fn write(
    before: &BTreeMap<String, Record>,
    now: &BTreeMap<String, Record>,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let mut good = true;
    for (name, record) in now {
        let kept = before.get(name);
        let alike = kept.is_some_and(|kept| kept.platform.is_like(&record.platform));
        writeln!(out, "{name}{}: {}", remark(kept, record), sums(record))?;
        let endings = record.endings();
        for (id, ending) in &endings {
            if let Ending::Failed(seen) = ending {
                writeln!(out, "    FAIL {id}: {seen}")?;
                good = false;
            }
        }
        for id in kept.filter(|_| alike).iter().flat_map(|kept| &kept.passed) {
            let ending = match endings.get(id.as_str()) {
                Some(Ending::Skipped(reason)) => format!("is skipped: {reason}"),
                None => "is not run".to_owned(),
                Some(Ending::Passed | Ending::Failed(_)) => continue,
            };
            writeln!(out, "    FAIL {id}: it passed, and {ending}")?;
            good = false;
        }
    }
    if now.values().any(|record| record.platform.is_simulated()) {
        for (name, record) in before {
            if record.platform.is_simulated() && !now.contains_key(name) {
                writeln!(out, "{name}: FAIL: it is on record, and was not run")?;
                good = false;
            }
        }
    }
    Ok(good)
}

/// What the record on file has to do with the one of now.
fn remark(kept: Option<&Record>, now: &Record) -> String {
    let Some(kept) = kept else {
        return " (not on record)".into();
    };
    if !kept.platform.is_like(&now.platform) {
        return " (on record is another machine or user)".into();
    }
    let more: Vec<_> = now
        .passed
        .iter()
        .filter(|id| !kept.passed.contains(id))
        .collect();
    match more.as_slice() {
        [] if kept.platform == now.platform => String::new(),
        [] => format!(" (on record is kernel {})", kept.platform.kernel),
        more => format!(" ({} passes are not on record)", more.len()),
    }
}

/// How many checks there were, and why some were skipped.
fn sums(record: &Record) -> String {
    let (passed, failed) = (record.passed.len(), record.failed.len());
    let skipped = record.number_skipped();
    let mut reasons: Vec<_> = record.skipped.iter().collect();
    reasons.sort_by_key(|(_, ids)| std::cmp::Reverse(ids.len()));
    let reasons: Vec<_> = reasons
        .iter()
        .map(|(reason, ids)| format!("{} x {reason}", ids.len()))
        .collect();
    let colon = if reasons.is_empty() { "" } else { ": " };
    format!(
        "{} checks, {passed} passed, {failed} failed, {skipped} skipped{colon}{}",
        passed + failed + skipped,
        reasons.join("; ")
    )
}
