//! A check: what it requires, whose word that is, and the code that looks.

use std::hint::black_box;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use crate::Subject;
use crate::bench::Bench;
use crate::verdict::{Outcome, Verdict};

/// How long a check may take before it is given up as hanging. Checks take milliseconds.
const PATIENCE: Duration = Duration::from_secs(60);

/// One requirement on a backend, and the code that looks whether it is met.
#[derive(Debug, Clone, Copy)]
pub struct Check {
    /// Its stable name, `area.subject`.
    pub id: &'static str,
    /// What is required, in a sentence.
    pub requires: &'static str,
    /// The text that the requirement follows.
    pub source: &'static str,
    pub(crate) run: fn(&Bench<'_>) -> Outcome,
}

impl Check {
    /// The area it belongs to: the first part of the id.
    pub fn area(&self) -> &'static str {
        self.id.split_once('.').map_or(self.id, |(area, _)| area)
    }

    /// Runs the check on a thread of its own. A panic is a failure; so is a check that does not
    /// come to an end, whose thread is then left behind.
    ///
    /// Where something else may cause the events that are counted
    /// ([`Subject::has_other_causes`]), one occurrence too many now and then says nothing of the
    /// backend: then a check has failed only when it has failed three times in a row.
    pub fn run(&self, subject: &Arc<dyn Subject>) -> Verdict {
        let exact = subject.exact_events();
        let disturbed = exact.iter().any(|event| subject.has_other_causes(event));
        let more_tries = if disturbed { 2 } else { 0 };
        let mut verdict = self.run_once(subject);
        for _ in 0..more_tries {
            if !matches!(verdict, Verdict::Fail(_)) {
                break;
            }
            verdict = self.run_once(subject);
        }
        verdict
    }

    fn run_once(&self, subject: &Arc<dyn Subject>) -> Verdict {
        let (done, result) = mpsc::channel();
        let (run, subject) = (self.run, Arc::clone(subject));
        let spawned = thread::Builder::new().name(self.id.into()).spawn(move || {
            settle();
            let outcome = catch_unwind(AssertUnwindSafe(|| run(&Bench::new(&*subject))));
            drop(subject);
            // The receiver is gone when the check came too late.
            let _ = done.send(outcome);
        });
        if let Err(error) = spawned {
            return Verdict::Fail(format!("no thread to run on: {error}"));
        }
        match result.recv_timeout(PATIENCE) {
            Ok(Ok(outcome)) => outcome.into(),
            Ok(Err(panic)) => Verdict::Fail(format!("panicked: {}", panic_message(&*panic))),
            Err(_) => Verdict::Fail(format!("no end after {} s", PATIENCE.as_secs())),
        }
    }
}

/// Uses the stack and the heap that a new thread's check is going to use, so that the page faults
/// of their first use are not among those that it counts.
fn settle() {
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
