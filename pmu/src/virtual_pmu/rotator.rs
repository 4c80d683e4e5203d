//! Rotation: its interval, and the thread that turns the rings and reads narrow counters in time, where any
//! thread may drive the PMU.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use quipu_hal::{Error, ErrorKind, Result};

use crate::clock::nanoseconds;

/// A background thread, started when it is first needed and ended with this value.
#[derive(Debug, Default)]
pub(super) struct Rotator {
    signal: Arc<Signal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Signal {
    request: Mutex<Request>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Request {
    look_again: bool,
    end: bool,
}

impl Rotator {
    /// Runs `work` in the background: now, whenever the time it asks for has passed, and on every
    /// [`wake`](Self::wake). Does nothing when it runs already.
    pub(super) fn start(
        &self,
        mut work: impl FnMut() -> Option<Duration> + Send + 'static,
    ) -> Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_none() {
            let signal = Arc::clone(&self.signal);
            let spawned = std::thread::Builder::new()
                .name("quipu-rotator".into())
                .spawn(move || while signal.wait(work()) {});
            *thread = Some(spawned.map_err(|e| {
                let error = Error::new(ErrorKind::Os, "start the thread that multiplexes counters");
                match e.raw_os_error() {
                    Some(errno) => error.with_errno(errno),
                    None => error.with_reason(e.to_string()),
                }
            })?);
        }
        Ok(())
    }

    /// Makes the thread look for due work now.
    pub(super) fn wake(&self) {
        self.signal.set(|request| request.look_again = true);
    }
}

impl Drop for Rotator {
    fn drop(&mut self) {
        self.signal.set(|request| request.end = true);
        let thread = self
            .thread
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(thread) = thread.take() {
            // A panic of the driver in that thread has been reported there.
            let _ = thread.join();
        }
    }
}

impl Signal {
    fn set(&self, change: impl FnOnce(&mut Request)) {
        change(&mut self.request.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Waits for the time to pass or for a signal; false at the end.
    fn wait(&self, time: Option<Duration>) -> bool {
        let request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |request: &mut Request| !request.look_again && !request.end;
        let mut request = match time {
            Some(time) => {
                let waited = self.changed.wait_timeout_while(request, time, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.changed.wait_while(request, idle);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
        request.look_again = false;
        !request.end
    }
}

/// Turning takes at most one part in this many of a CPU.
const SHARE: u64 = 100;

/// The interval of rotation: as asked for, unless turning that often would take too much of a CPU.
#[derive(Debug)]
pub(super) struct RotationInterval {
    wanted: u64,
    /// Time it takes to turn all rings once, in nanoseconds, smoothed.
    cost: AtomicU64,
}

impl RotationInterval {
    pub(super) fn new(wanted: Duration) -> Self {
        Self {
            wanted: nanoseconds(wanted).max(1),
            cost: AtomicU64::new(0),
        }
    }

    /// Returns the interval in force, in nanoseconds.
    pub(super) fn interval(&self) -> u64 {
        let cost = self.cost.load(Ordering::Relaxed);
        self.wanted.max(cost.saturating_mul(SHARE))
    }

    /// Records how many nanoseconds turning all rings took. Only the thread that turns them calls it.
    pub(super) fn record_cost(&self, took: u64) {
        let before = self.cost.load(Ordering::Relaxed);
        // A turn that was interrupted counts for an eighth; one that is always slow, in full.
        let smoothed = if before == 0 {
            took
        } else {
            before - before / 8 + took / 8
        };
        self.cost.store(smoothed, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn it_works_again_when_woken_and_no_more_after_its_end() {
        let (sender, calls) = mpsc::channel();
        let rotator = Rotator::default();
        rotator
            .start(move || {
                // The receiver outlives the thread.
                let _ = sender.send(());
                None
            })
            .unwrap();
        calls.recv().unwrap();
        rotator.wake();
        calls.recv().unwrap();
        drop(rotator);
        assert_eq!(calls.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn the_interval_is_as_wanted_until_turning_takes_a_hundredth_of_it() {
        let rotation = RotationInterval::new(Duration::from_millis(4));
        assert_eq!(rotation.interval(), 4_000_000);
        rotation.record_cost(40_000);
        assert_eq!(rotation.interval(), 4_000_000);
        let slow = RotationInterval::new(Duration::from_millis(4));
        slow.record_cost(1_000_000);
        assert_eq!(slow.interval(), 100_000_000);
    }

    #[test]
    fn a_lasting_change_of_the_cost_is_followed_and_a_single_one_fades() {
        let rotation = RotationInterval::new(Duration::from_nanos(1));
        for took in [800, 800, 8_000] {
            rotation.record_cost(took);
        }
        assert_eq!(rotation.interval(), 170_000);
        for _ in 0..100 {
            rotation.record_cost(800);
        }
        assert!(rotation.interval() < 82_000, "{}", rotation.interval());
        for _ in 0..100 {
            rotation.record_cost(80_000);
        }
        assert!(rotation.interval() > 7_900_000, "{}", rotation.interval());
    }
}
