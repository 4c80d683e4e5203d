//! Comparison of reports with the committed table.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use crate::record::{Ending, Record};
use crate::table::{Column, Table};

/// Part of the reason for a check to be skipped that depends on the speed of the machine, which under an emulator is not
/// that of another day: `Missing::Turns` as it is printed.
const SLOW: &str = " turns, and one takes ";

/// Writes a line for each record of `now`, and one for each check that passes in the column of the
/// same name and does not any more. Returns true if there is none of these, and no check failed.
///
/// On another machine, or as another user, a check may be skipped that was not before, and so it may on a machine that is
/// slower than it was: that is said. To fail it may not. Simulated machines are run over all together: where one of them is, none may be missing.
pub(crate) fn write(
    table: &Table,
    now: &BTreeMap<String, Record>,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let mut good = true;
    for (name, record) in now {
        let kept = table.0.get(name);
        let alike = kept.is_some_and(|kept| kept.platform.is_like(&record.platform));
        writeln!(out, "{name}{}: {}", remark(kept, record), sums(record))?;
        let endings = record.endings();
        for (id, ending) in &endings {
            if let Ending::Failed(seen) = ending {
                writeln!(out, "    FAIL {id}: {seen}")?;
                good = false;
            }
        }
        for id in kept.filter(|_| alike).into_iter().flat_map(Column::passed) {
            let ending = match endings.get(id) {
                Some(Ending::Skipped(reason)) if reason.contains(SLOW) => {
                    writeln!(out, "    SKIP {id}: {reason}")?;
                    continue;
                }
                Some(Ending::Skipped(reason)) => format!("is skipped: {reason}"),
                None => "is not run".to_owned(),
                Some(Ending::Passed | Ending::Failed(_)) => continue,
            };
            writeln!(out, "    FAIL {id}: it passed, and {ending}")?;
            good = false;
        }
    }
    if now.values().any(|record| record.platform.is_simulated()) {
        for (name, column) in &table.0 {
            if column.platform.is_simulated() && !now.contains_key(name) {
                writeln!(out, "{name}: FAIL: it is on record, and was not run")?;
                good = false;
            }
        }
    }
    Ok(good)
}

/// Returns how the machine of the table differs from the one of now.
fn remark(kept: Option<&Column>, now: &Record) -> String {
    let Some(kept) = kept else {
        return " (not on record)".into();
    };
    if !kept.platform.is_like(&now.platform) {
        return " (on record is another machine or user)".into();
    }
    let passed: BTreeSet<_> = kept.passed().collect();
    let more = now.passed.iter().filter(|id| !passed.contains(id.as_str()));
    match more.count() {
        0 if kept.platform == now.platform => String::new(),
        0 => format!(" (on record is kernel {})", kept.platform.kernel),
        more => format!(" ({more} passes are not on record)"),
    }
}

/// Returns the numbers of checks, and the reasons of those that were skipped.
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
