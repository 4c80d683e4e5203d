//! A test of the counters themselves: which of those that the kernel schedules really count.
//!
//! A hypervisor may show a guest more counters than it gives it. The others read 0 or too little, and
//! nothing in their times shows it. The test counts the instructions of a loop with every counter at once,
//! in one group, a few times over: they have to agree. Where the kernel counts no instructions it counts
//! cycles: as they depend on the CPU's speed, what is compared is how many more a longer loop takes. On a
//! machine with several kinds of core each core PMU is tested by a thread on its CPUs.
//!
//! It takes some milliseconds, once for each boot and user: what it found is kept in `quipu/counters` below
//! `$XDG_RUNTIME_DIR`, else `/run/user/UID`, `$XDG_CACHE_HOME` or `~/.cache`, with the boot and the CPU that
//! it is true of. A file that another user owns or may write to is not read.
//!
//! [`LinuxBackend`](crate::LinuxBackend) makes it before it opens its first hardware event or returns its
//! capabilities, unless this process has counters open, which would count the test. The environment variable
//! `QUIPU_COUNTER_TEST=off` switches it off, and so does
//! [`LinuxBackend::without_counter_test`](crate::LinuxBackend::without_counter_test).

mod kept;
mod rounds;

use std::path::PathBuf;
use std::sync::OnceLock;

use nix::unistd::{geteuid, getuid};
use quipu_hal::{Error, ErrorKind, Hardware, Result};

use self::kept::{Kept, Stamp};
use crate::group::CountersOpen;
use crate::machine::privileges::Privileges;
use crate::machine::sysfs::{CorePmu, SysfsPmus};

/// The environment variable that switches the test off.
const SWITCH: &str = "QUIPU_COUNTER_TEST";

/// Result of a test of the counters of one core PMU.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CounterTest {
    /// The name of the PMU: `cpu`, `cpu_core`, `armv8_cortex_a72`.
    pub pmu: String,
    /// The event it was tested with: one that not every counter can count shows fewer of them.
    pub event: Hardware,
    /// Number of counters that the kernel takes a group of this event for.
    pub advertised: usize,
    /// Number of those that were free to be tested; others may hold the rest.
    pub tested: usize,
    /// Number of those that count, all at the same time.
    pub counting: usize,
}

impl CounterTest {
    /// Tests the counters of this machine now, and keeps what it finds: one result for each core PMU. A single
    /// one is tested on the calling thread, several by a thread each, which keeps to the CPUs of its PMU
    /// that the calling thread may run on.
    ///
    /// Counters that are open on this thread count the test, too. What could not be found out of every
    /// PMU is not kept.
    ///
    /// # Errors
    /// For each PMU: [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) where the kernel counts neither
    /// instructions nor cycles, [`NoSuchTarget`](ErrorKind::NoSuchTarget) where the thread may run on no
    /// CPU of this PMU, [`Busy`](ErrorKind::Busy) when others hold all counters.
    pub fn run() -> Vec<Result<Self>> {
        let tests = rounds::of_this_machine();
        let good = good(tests.clone());
        if good.len() == tests.len()
            && let Some(kept) = place()
            && let Some(stamp) = Stamp::of_this_machine()
        {
            // A process that cannot keep it is one that tests again.
            let _: std::io::Result<()> = kept.write(&stamp, &good);
        }
        tests
    }

    /// Returns what an earlier test found of the core PMUs that are there now, if it was kept in this boot,
    /// for this CPU, by this user; else nothing.
    pub fn kept() -> Vec<Self> {
        Self::kept_of(|| SysfsPmus::new().core_pmus())
    }

    /// Returns what an earlier test found of these core PMUs, which are asked for if anything was kept.
    fn kept_of(core_pmus: impl FnOnce() -> Vec<CorePmu>) -> Vec<Self> {
        let Some(kept) = place() else {
            return Vec::new();
        };
        let tests = kept.read(Stamp::of_this_machine);
        if tests.is_empty() {
            return tests;
        }
        let kept = tests.iter().map(|test| test.pmu.as_str());
        let present = rounds::or_stand_in(core_pmus());
        if !kept.eq(present.iter().map(|pmu| pmu.name.as_str())) {
            // Others came online, or went.
            return Vec::new();
        }
        tests
    }

    /// Returns what is known of the core PMUs of this machine: what was kept, or what a test finds that is
    /// made now if this process has no counters open. Nothing where it is switched off; a PMU that
    /// cannot be tested is left out.
    pub fn known() -> &'static [Self] {
        known(|| SysfsPmus::new().core_pmus())
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
            ..
        } = self;
        let counters = match self.event {
            Hardware::Instructions => "counters".to_owned(),
            other => format!("counters of {other}"),
        };
        if !self.has_dead_counters() {
            return match advertised - tested {
                0 => format!("{advertised} {counters}, all of them count"),
                held => format!("{advertised} {counters}, {held} of them in use by others"),
            };
        }
        let cause = match Privileges::read().virtual_machine {
            Some(true) => ": a hypervisor holds the others",
            _ => "",
        };
        format!("{advertised} {counters}, {counting} of them count{cause}")
    }

    /// Returns the refusal of a group that needs so many counters of this PMU.
    pub(crate) fn refusal(&self, needed: usize) -> Error {
        let (pmu, counting) = (&self.pmu, self.counting);
        let attempted = format!("open a group of {needed} hardware events");
        Error::new(ErrorKind::TooManyEvents, attempted)
            .with_reason(format!(
                "{pmu} shows {}, and a group on the others would read too little",
                self.explanation()
            ))
            .with_hint(format!(
                "use groups of at most {counting} hardware events of {pmu}"
            ))
    }

    /// Returns the erratum of every hardware event on such a PMU.
    pub(crate) fn erratum(&self) -> String {
        format!(
            "{} shows {}; where events take turns on them, estimates are too low",
            self.pmu,
            self.explanation()
        )
    }
}

/// Returns the results for this machine with these core PMUs: kept, or of a test made now if no counter of this
/// process is open. None where it is switched off or nothing can be tested.
pub(crate) fn known(core_pmus: impl FnOnce() -> Vec<CorePmu>) -> &'static [CounterTest] {
    static KEPT: OnceLock<Vec<CounterTest>> = OnceLock::new();
    static MADE: OnceLock<Vec<CounterTest>> = OnceLock::new();
    static OFF: OnceLock<bool> = OnceLock::new();
    let is_off = || quipu_environment::variable(SWITCH).is_some_and(|switch| switch == "off");
    if *OFF.get_or_init(is_off) {
        return &[];
    }
    let kept = KEPT.get_or_init(|| CounterTest::kept_of(core_pmus));
    if !kept.is_empty() {
        return kept;
    }
    if let Some(made) = MADE.get() {
        return made;
    }
    if CountersOpen::any() {
        return &[];
    }
    MADE.get_or_init(|| good(CounterTest::run()))
}

/// Returns the results of the tests that could be made.
fn good(tests: Vec<Result<CounterTest>>) -> Vec<CounterTest> {
    let mut good = Vec::with_capacity(tests.len());
    for test in tests {
        good.extend(test);
    }
    good
}

/// Returns the place where results are kept.
fn place() -> Option<Kept> {
    let user = geteuid();
    // One with the rights of another user keeps nothing among the files of that user.
    if getuid() != user {
        return None;
    }
    let absolute = |name| {
        let path = PathBuf::from(quipu_environment::variable(name)?);
        path.is_absolute().then_some(path)
    };
    let of_user = PathBuf::from(format!("/run/user/{user}"));
    let dir = absolute("XDG_RUNTIME_DIR")
        .or_else(|| of_user.is_dir().then_some(of_user))
        .or_else(|| absolute("XDG_CACHE_HOME"))
        .or_else(|| Some(absolute("HOME")?.join(".cache")))?;
    Some(Kept::below(&dir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_found_is_said_in_a_clause() {
        let test = |event, advertised, tested, counting| CounterTest {
            pmu: "cpu_atom".into(),
            event,
            advertised,
            tested,
            counting,
        };
        let clause = |event, held, counting| test(event, 6, held, counting).explanation();
        let instructions = Hardware::Instructions;
        assert_eq!(clause(instructions, 6, 6), "6 counters, all of them count");
        let cycles = clause(Hardware::Cycles, 6, 6);
        assert_eq!(cycles, "6 counters of cycles, all of them count");
        let held = clause(instructions, 5, 5);
        assert_eq!(held, "6 counters, 1 of them in use by others");
        let dead = test(instructions, 6, 6, 5);
        assert!(dead.has_dead_counters());
        let clause = dead.explanation();
        assert!(
            clause.starts_with("6 counters, 5 of them count"),
            "{clause}"
        );
        let refusal = dead.refusal(6);
        assert_eq!(refusal.kind(), ErrorKind::TooManyEvents);
        let text = format!("{refusal:#}");
        assert!(
            text.contains("at most 5 hardware events of cpu_atom"),
            "{text}"
        );
    }
}
