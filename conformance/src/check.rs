//! A check: its requirement, the source of it, and the code that verifies it.

use std::fmt;
use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::Fixture;
use crate::context::Context;
use crate::verdict::{Missing, Outcome, Stop, Verdict};

/// The time after which a check is given up as hanging. Checks take milliseconds, and some take
/// seconds of a CPU that they may have to share with many others.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(300);

/// A requirement on a backend, and the code that verifies it.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its stable name, `area.subject`.
    pub id: &'static str,
    /// The requirement in a sentence.
    pub requires: &'static str,
    /// The text that the requirement follows.
    pub source: &'static str,
    pub(crate) run: fn(&Context<'_>) -> Outcome,
}

impl Check {
    /// Returns its area: the first part of the id.
    pub fn area(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(area, _)| area)
    }

    /// Runs the check on a thread of its own. A panic is a failure; so is a check that does not
    /// come to an end, whose thread is then left behind with the groups that it opened.
    ///
    /// If something else may cause the events that are counted ([`Fixture::has_other_causes`]), an
    /// occurrence too many now and then says nothing of the backend: a check has failed only when it
    /// has failed three times in a row. Likewise a check is skipped for a counter that jumped when
    /// one jumped three times in a row.
    pub fn run(&self, fixture: &Arc<dyn Fixture>) -> Verdict {
        let run = self.run_within(fixture, TIME_LIMIT);
        run.unwrap_or_else(|endless| Verdict::Fail(endless.to_string()))
    }

    /// Runs the check as [`run`](Self::run) does, giving it so much time.
    pub(crate) fn run_within(
        &self,
        fixture: &Arc<dyn Fixture>,
        limit: Duration,
    ) -> Result<Verdict, Endless> {
        let exact = fixture.exact_events();
        let disturbed = exact.iter().any(|event| fixture.has_other_causes(event));
        let mut verdict = self.run_once(fixture, limit)?;
        for _ in 0..2 {
            match verdict {
                Verdict::Fail(_) if disturbed => {}
                Verdict::Skip(Missing::PossibleValue { .. }) => {}
                _ => break,
            }
            verdict = self.run_once(fixture, limit)?;
        }
        Ok(verdict)
    }

    fn run_once(&self, fixture: &Arc<dyn Fixture>, limit: Duration) -> Result<Verdict, Endless> {
        let (done, result) = mpsc::channel();
        let (run, fixture) = (self.run, Arc::clone(fixture));
        let spawned = thread::Builder::new().name(self.id.into()).spawn(move || {
            warm_up();
            let outcome = catch_unwind(AssertUnwindSafe(|| judge(run, &Context::new(&*fixture))));
            drop(fixture);
            // The receiver is gone when the check came too late.
            let _ = done.send(outcome);
        });
        if let Err(error) = spawned {
            return Ok(Verdict::Fail(format!("no thread to run on: {error}")));
        }
        match result.recv_timeout(limit) {
            Ok(Ok(outcome)) => Ok(outcome.into()),
            Ok(Err(panic)) => Ok(Verdict::Fail(format!(
                "panicked: {}",
                panic_message(&*panic)
            ))),
            Err(_) => Err(Endless { limit }),
        }
    }
}

/// A check that did not come to an end in its time, and may still hold counters.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Endless {
    limit: Duration,
}

impl fmt::Display for Endless {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no end after {} s", self.limit.as_secs())
    }
}

/// Runs a check, and skips it where its outcome rests on counters of the machine that do not count,
/// or on a value that no counter can have reached.
fn judge(run: fn(&Context<'_>) -> Outcome, context: &Context<'_>) -> Outcome {
    let outcome = run(context);
    if let (Ok(()) | Err(Stop::Fail(_)), Some(jump)) = (&outcome, context.jump()) {
        let (value, time_running) = (jump.value, jump.time_running);
        return Err(Stop::Skip(Missing::PossibleValue {
            value,
            time_running,
        }));
    }
    if matches!(outcome, Err(Stop::Fail(_)))
        && context.relies_on_all_counters()
        && let Some(dead) = context.dead_counters()
    {
        return Err(Stop::Skip(dead));
    }
    outcome
}

/// Uses the stack and the heap that a new thread's check is going to use, so that the page faults
/// of their first use are not among those that it counts.
fn warm_up() {
    black_box([0u8; 64 << 10]);
    let blocks: Vec<_> = (0..64).map(|_| black_box(vec![0u8; 1 << 10])).collect();
    drop(blocks);
}

fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
