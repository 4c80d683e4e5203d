//! The thread that turns the ring and reads narrow counters in time, where any thread may.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::{Error, ErrorKind, Result};

/// A background thread, started when it is first needed and ended with this value.
#[derive(Debug, Default)]
pub(super) struct Rotator {
    signal: Arc<Signal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Signal {
    wish: Mutex<Wish>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Wish {
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

    /// There may be something to do earlier than was asked for.
    pub(super) fn wake(&self) {
        self.signal.set(|wish| wish.look_again = true);
    }
}

impl Drop for Rotator {
    fn drop(&mut self) {
        self.signal.set(|wish| wish.end = true);
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
    fn set(&self, change: impl FnOnce(&mut Wish)) {
        change(&mut self.wish.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.notify_one();
    }

    /// Waits for the time to pass or for a signal; false at the end.
    fn wait(&self, time: Option<Duration>) -> bool {
        let wish = self.wish.lock().unwrap_or_else(PoisonError::into_inner);
        let idle = |wish: &mut Wish| !wish.look_again && !wish.end;
        let mut wish = match time {
            Some(time) => {
                let waited = self.changed.wait_timeout_while(wish, time, idle);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
            None => {
                let waited = self.changed.wait_while(wish, idle);
                waited.unwrap_or_else(PoisonError::into_inner)
            }
        };
        wish.look_again = false;
        !wish.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    #[test]
    fn it_works_at_once_again_when_woken_and_no_more_after_its_end() {
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
}
