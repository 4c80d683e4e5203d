//! Runs checks and keeps their verdicts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::check::TIME_LIMIT;
use crate::{Check, Fixture, Missing, Verdict};

/// A check with its verdict.
#[derive(Debug, Clone)]
pub struct Finding {
    /// The check.
    pub check: &'static Check,
    /// Its verdict.
    pub verdict: Verdict,
}

/// The findings of a run, in the order the checks were run.
#[derive(Debug, Clone)]
pub struct Report {
    /// The backend's name.
    pub backend: &'static str,
    /// One for each check.
    pub findings: Vec<Finding>,
}

/// Runs checks one after the other. When one does not come to an end, what it holds would spoil the
/// others: they are skipped.
///
/// ```no_run
/// # fn fixture() -> std::sync::Arc<dyn quipu_conformance::Fixture> { unimplemented!() }
/// let report = quipu_conformance::run(&fixture(), quipu_conformance::all());
/// println!("{report}");
/// assert_eq!(report.failed().count(), 0);
/// ```
pub fn run(fixture: &Arc<dyn Fixture>, checks: impl IntoIterator<Item = &'static Check>) -> Report {
    run_within(fixture, checks, TIME_LIMIT)
}

fn run_within(
    fixture: &Arc<dyn Fixture>,
    checks: impl IntoIterator<Item = &'static Check>,
    limit: Duration,
) -> Report {
    let mut spoiled = false;
    let mut verdict = |check: &Check| {
        if spoiled {
            let reason = "an earlier check did not end, and may still hold counters";
            return Verdict::Skip(Missing::Inapplicable(reason));
        }
        check.run_within(fixture, limit).unwrap_or_else(|endless| {
            spoiled = true;
            Verdict::Fail(endless.to_string())
        })
    };
    Report {
        backend: fixture.backend().name(),
        findings: checks
            .into_iter()
            .map(|check| Finding {
                check,
                verdict: verdict(check),
            })
            .collect(),
    }
}

impl Report {
    /// Returns the checks that failed, with what was seen.
    pub fn failed(&self) -> impl Iterator<Item = (&'static Check, &str)> {
        self.findings.iter().filter_map(|f| match &f.verdict {
            Verdict::Fail(reason) => Some((f.check, reason.as_str())),
            _ => None,
        })
    }

    /// Returns the checks that were skipped, with what was missing.
    pub fn skipped(&self) -> impl Iterator<Item = (&'static Check, Missing)> {
        self.findings.iter().filter_map(|f| match f.verdict {
            Verdict::Skip(missing) => Some((f.check, missing)),
            _ => None,
        })
    }

    /// Returns the number of checks that passed.
    pub fn passed(&self) -> usize {
        let passes = |f: &&Finding| f.verdict == Verdict::Pass;
        self.findings.iter().filter(passes).count()
    }
}

/// A table: verdict, check, and the reason where there is one; at the end the sums.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.findings.iter().map(|f| f.check.id.len()).max();
        let width = width.unwrap_or_default();
        for Finding { check, verdict } in &self.findings {
            match verdict.reason() {
                None => writeln!(f, "{}  {}", verdict.word(), check.id)?,
                Some(why) => writeln!(f, "{}  {:width$}  {why}", verdict.word(), check.id)?,
            }
            if matches!(verdict, Verdict::Fail(_)) {
                writeln!(f, "      required: {} ({})", check.requires, check.source)?;
            }
        }
        write!(
            f,
            "{}: {} passed, {} failed, {} skipped",
            self.backend,
            self.passed(),
            self.failed().count(),
            self.skipped().count()
        )
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;
    use crate::context::Context;
    use crate::fixtures::SimFixture;
    use crate::verdict::Outcome;

    const fn check(id: &'static str, run: fn(&Context<'_>) -> Outcome) -> Check {
        Check {
            id,
            requires: "",
            source: "",
            run,
        }
    }

    #[test]
    fn what_comes_after_a_check_that_does_not_end_is_skipped() {
        static CHECKS: [Check; 3] = [
            check("before", |_| Ok(())),
            check("endless", |_| {
                loop {
                    thread::park();
                }
            }),
            check("after", |_| Ok(())),
        ];
        let fixture: Arc<dyn Fixture> = Arc::new(SimFixture::new());
        let report = run_within(&fixture, &CHECKS, Duration::from_secs(1));
        let words: Vec<_> = report.findings.iter().map(|f| f.verdict.word()).collect();
        assert_eq!(words, ["pass", "fail", "skip"]);
        assert_eq!(report.failed().next().unwrap().1, "no end after 1 s");
    }
}
