//! What has changed since a report was kept.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::record::{Ending, Record};

/// Writes a line for each record of `now`, and one for each check that passed in the record of the
/// same name `before` and does not any more. Whether there is nothing to be sorry for.
///
/// On another machine, or as another user, a check may be skipped that was not before; to fail it
/// may not.
pub(crate) fn write(
    before: &BTreeMap<String, Record>,
    now: &BTreeMap<String, Record>,
    out: &mut dyn Write,
) -> io::Result<bool> {
    let mut good = true;
    for (name, record) in now {
        let kept = before.get(name);
        let alike = kept.is_some_and(|kept| kept.platform.is_like(&record.platform));
        writeln!(out, "{name}: {}{}", sums(record), remark(kept, alike))?;
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
    Ok(good)
}

fn remark(kept: Option<&Record>, alike: bool) -> &'static str {
    match kept {
        None => " (not on record)",
        Some(_) if alike => "",
        Some(_) => " (on record is another machine or user)",
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
