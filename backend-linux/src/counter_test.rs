//! A test of the counters themselves: which of those that the kernel schedules really count.
//!
//! A hypervisor may show a guest more counters than it gives it. The others read 0 or too little, and
//! nothing in their times shows it. The test counts the instructions of a loop with every counter at once,
//! in one group, a few times over: they have to agree. It takes some milliseconds, once for each
//! boot and user: what it found is kept in `quipu/counters` below `$XDG_RUNTIME_DIR`, else
//! `/run/user/UID`, `$XDG_CACHE_HOME` or `~/.cache`, with the boot and the CPU that it is true of. A file
//! that another user owns or may write to is not read.
//!
//! [`LinuxBackend`](crate::LinuxBackend) makes it before it opens its first hardware event or tells its
//! capabilities, unless this process has counters open, which would count the test. The environment variable
//! `QUIPU_COUNTER_TEST=off` switches it off, and so does
//! [`LinuxBackend::without_counter_test`](crate::LinuxBackend::without_counter_test).

mod kept;
mod rounds;

use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_hal::{Error, ErrorKind, Result};

use self::kept::{Kept, Stamp};
use crate::privileges::Privileges;

/// The environment variable that switches the test off.
const SWITCH: &str = "QUIPU_COUNTER_TEST";

/// Result of a test of the counters: numbers of counters that can count instructions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterTest {
    /// Number of counters that the kernel takes a group for.
    pub advertised: usize,
    /// Number of those that were free to be tested; others may hold the rest.
    pub tested: usize,
    /// Number of those that count, all at the same time.
    pub counting: usize,
}

impl CounterTest {
    /// Tests the counters of this machine now, on the calling thread, and keeps what it finds.
    ///
    /// Counters that are open on this thread count the test, too.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) where the kernel counts no instructions,
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) on a machine with several kinds of core,
    /// [`Busy`](ErrorKind::Busy) when others hold all counters.
    pub fn run() -> Result<Self> {
        let test = rounds::of_this_machine()?;
        if let Some((kept, stamp)) = place() {
            // A process that cannot keep it is one that tests again.
            let _: std::io::Result<()> = kept.write(&stamp, test);
        }
        Ok(test)
    }

    /// Returns what an earlier test found, if it was kept in this boot, for this CPU, by this user.
    pub fn kept() -> Option<Self> {
        let (kept, stamp) = place()?;
        kept.read(&stamp)
    }

    /// Returns what is known of this machine: what was kept, or what a test finds that is made now if this
    /// process has no counters open. `None` where it is switched off or cannot be tested.
    pub fn known() -> Option<Self> {
        known()
    }

    /// Returns true if counters were found that do not count.
    pub fn has_dead_counters(&self) -> bool {
        self.counting < self.tested
    }

    /// Returns what was found as a clause: "6 counters, 5 of them count: a hypervisor holds the others".
    pub fn explanation(&self) -> String {
        let Self {
            advertised,
            tested,
            counting,
        } = self;
        if !self.has_dead_counters() {
            return match advertised - tested {
                0 => format!("{advertised} counters, all of them count"),
                held => format!("{advertised} counters, {held} of them in use by others"),
            };
        }
        let cause = match Privileges::read().virtual_machine {
            Some(true) => ": a hypervisor holds the others",
            _ => "",
        };
        format!("{advertised} counters, {counting} of them count{cause}")
    }

    /// Returns the refusal of a group that needs more counters than count.
    pub(crate) fn refusal(&self, attempted: String) -> Error {
        Error::new(ErrorKind::TooManyEvents, attempted)
            .with_reason(format!(
                "the PMU shows {}, and a group on the others would read too little",
                self.explanation()
            ))
            .with_hint(format!(
                "use groups of at most {} hardware events",
                self.counting
            ))
    }

    /// Returns the erratum of every hardware event on such a machine.
    pub(crate) fn erratum(&self) -> String {
        format!(
            "the PMU shows {}; where events take turns on them, estimates are too low",
            self.explanation()
        )
    }
}

/// Returns the result for this machine: kept, or of a test made now if no counter of this process is open.
/// `None` where it is switched off or cannot be tested.
pub(crate) fn known() -> Option<CounterTest> {
    static KEPT: OnceLock<Option<CounterTest>> = OnceLock::new();
    static MADE: OnceLock<Option<CounterTest>> = OnceLock::new();
    if std::env::var_os(SWITCH).is_some_and(|switch| switch == "off") {
        return None;
    }
    if let Some(test) = KEPT.get_or_init(CounterTest::kept) {
        return Some(*test);
    }
    if let Some(made) = MADE.get() {
        return *made;
    }
    if OPEN.load(Ordering::Relaxed) > 0 {
        return None;
    }
    *MADE.get_or_init(|| CounterTest::run().ok())
}

/// Number of groups and sampled counters that are open in this process.
static OPEN: AtomicUsize = AtomicUsize::new(0);

/// A mark that counters are open, as long as it lives.
#[derive(Debug)]
pub(crate) struct CountersOpen(());

impl CountersOpen {
    pub(crate) fn new() -> Self {
        OPEN.fetch_add(1, Ordering::Relaxed);
        Self(())
    }
}

impl Drop for CountersOpen {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the place where results are kept, and what they are true of.
fn place() -> Option<(Kept, Stamp)> {
    let user = rustix::process::geteuid();
    // A program with the rights of another user trusts no environment.
    if rustix::process::getuid() != user {
        return None;
    }
    let absolute = |name| {
        let path = PathBuf::from(std::env::var_os(name)?);
        path.is_absolute().then_some(path)
    };
    let of_user = PathBuf::from(format!("/run/user/{}", user.as_raw()));
    let dir = absolute("XDG_RUNTIME_DIR")
        .or_else(|| of_user.is_dir().then_some(of_user))
        .or_else(|| absolute("XDG_CACHE_HOME"))
        .or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some((Kept::below(&dir), Stamp::of_this_machine()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_told_in_a_clause() {
        let test = |advertised, tested, counting| CounterTest {
            advertised,
            tested,
            counting,
        };
        assert_eq!(test(6, 6, 6).explanation(), "6 counters, all of them count");
        assert_eq!(
            test(6, 5, 5).explanation(),
            "6 counters, 1 of them in use by others"
        );
        let dead = test(6, 6, 5);
        assert!(dead.has_dead_counters());
        let clause = dead.explanation();
        assert!(
            clause.starts_with("6 counters, 5 of them count"),
            "{clause}"
        );
        let refusal = dead.refusal("open a group".into());
        assert_eq!(refusal.kind(), ErrorKind::TooManyEvents);
        let text = format!("{refusal:#}");
        assert!(text.contains("at most 5 hardware events"), "{text}");
    }
}
