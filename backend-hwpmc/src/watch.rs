//! Watches a process for what makes a count of it a lower bound.
//!
//! The driver loads counters when a thread is switched to. A new thread or process gets its first turn in another way
//! (`fork_exit` in sys/kern/kern_fork.c), in which it is not counted; a thread that is on a CPU when counters are attached
//! to it is counted from its next turn on, and what it has counted is known up to its last.

use nix::errno::Errno;

use crate::driver::{Driver, Forks, State, Task};

/// A process that is being counted.
pub(crate) struct Watch {
    pid: i32,
    is_own: bool,
    with_children: bool,
    first: Task,
    threads: Threads,
    forks: Option<Box<dyn Forks>>,
    /// True once another thread has run, or a process was made that is counted, or it cannot be known.
    others_ran: bool,
    /// Its state as it was last seen.
    last: Task,
}

/// A moment of a process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment {
    /// Nanoseconds on CPUs.
    pub(crate) cpu_time: u64,
    /// True if what is counted at this moment is all that it has done.
    pub(crate) is_whole: bool,
}

/// The threads that a process has and has had, beside the one that is counted: the calling one of this process, the only
/// one of another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Threads {
    /// The others sleep or have ended, and had given up a CPU so often; at its end each does.
    Still { switches: u64 },
    /// Others run, or it is another process and has several.
    Run,
    /// The process did not stand still.
    Unknown,
}

impl Watch {
    /// Begins to watch; with children, forks are looked for.
    ///
    /// # Errors
    /// `ESRCH` if there is no such process.
    pub(crate) fn begin(driver: &dyn Driver, pid: i32, with_children: bool) -> Result<Self, Errno> {
        let forks = match with_children {
            true => driver.watch_forks(pid).ok(),
            false => None,
        };
        let first = driver.process(pid)?;
        if first.state == State::Ended {
            return Err(Errno::ESRCH);
        }
        let is_own = pid == driver.own_pid();
        let threads = Threads::of(driver, pid, is_own);
        Ok(Self {
            pid,
            is_own,
            with_children,
            first,
            threads,
            others_ran: !matches!(threads, Threads::Still { .. })
                || with_children && forks.is_none(),
            forks,
            last: first,
        })
    }

    /// Returns true if others than the thread that is counted may have run since it began.
    pub(crate) fn others_ran(&self) -> bool {
        self.others_ran
    }

    /// Reads counters at a moment of the process; `read` is given true if it is this one.
    ///
    /// # Errors
    /// As `read`.
    pub(crate) fn moment(
        &mut self,
        driver: &dyn Driver,
        read: impl FnOnce(bool) -> Result<(), Errno>,
    ) -> Result<Moment, Errno> {
        if self.is_own {
            read(true)?;
            let cpu_time = driver.own_cpu_time()?;
            let now = driver.process(self.pid)?;
            let is_known = self.look(driver, now);
            return Ok(Moment {
                cpu_time: cpu_time + self.time_of_children(&now),
                is_whole: is_known && !self.others_ran,
            });
        }
        let before = self.task(driver);
        read(false)?;
        let now = self.task(driver);
        let is_known = now.is_some_and(|now| self.look(driver, now));
        let stands_still = before.zip(now).is_some_and(|(before, now)| {
            now.state != State::Running
                && (before.state, before.switches) == (now.state, now.switches)
        });
        Ok(Moment {
            cpu_time: self.last.cpu_time + self.time_of_children(&self.last),
            is_whole: stands_still && is_known && !self.others_ran,
        })
    }

    fn time_of_children(&self, task: &Task) -> u64 {
        match self.with_children {
            true => task.children_time,
            false => 0,
        }
    }

    /// Returns the process as it is, or as it ended if that was seen.
    fn task(&self, driver: &dyn Driver) -> Option<Task> {
        if self.last.state == State::Ended {
            return Some(self.last);
        }
        let now = driver.process(self.pid).ok()?;
        // The id may be of another process by now.
        (now.started == self.first.started).then_some(now)
    }

    /// Notes what has been made since; returns false if that cannot be known at this moment.
    fn look(&mut self, driver: &dyn Driver, now: Task) -> bool {
        let mut is_known = true;
        if !self.others_ran && self.last.state != State::Ended {
            let threads = Threads::of(driver, self.pid, self.is_own);
            is_known = threads != Threads::Unknown;
            self.others_ran = is_known && threads != self.threads
                || self.forks.as_mut().is_some_and(|forks| forks.has_forked())
                // The driver takes its counters off a process that becomes another user's.
                || !self.is_own && now.owner != self.first.owner;
        }
        self.last = now;
        is_known
    }
}

impl Threads {
    fn of(driver: &dyn Driver, pid: i32, is_own: bool) -> Self {
        const TRIES: usize = 3;
        let own = is_own.then(|| driver.own_thread());
        for _ in 0..TRIES {
            let (Ok(before), Ok(all), Ok(after)) = (
                counted_thread(driver, pid, own),
                driver.process(pid),
                counted_thread(driver, pid, own),
            ) else {
                return Self::Unknown;
            };
            let (Some(before), Some(after)) = (before, after) else {
                return Self::Run;
            };
            if (before.switches, before.state) == (after.switches, after.state) {
                // The last thread of a process that has ended is among the ended, and there once more.
                let own = match all.state {
                    State::Ended => 2 * after.switches,
                    _ => after.switches,
                };
                let others = all.switches.checked_sub(own);
                return others.map_or(Self::Unknown, |switches| Self::Still { switches });
            }
        }
        Self::Unknown
    }
}

/// Returns the thread that is counted, `None` if others run.
fn counted_thread(driver: &dyn Driver, pid: i32, own: Option<i32>) -> Result<Option<Task>, Errno> {
    let mut counted = None;
    let mut others_run = false;
    driver.threads(pid, &mut |id, task| match own {
        Some(own) if id != own => others_run |= task.state == State::Running,
        _ => others_run |= counted.replace(*task).is_some(),
    })?;
    Ok(counted.filter(|_| !others_run))
}
