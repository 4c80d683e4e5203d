//! The thread of one CPU, where any thread may drive the PMU: it turns the CPU's ring, reads narrow counters in
//! time, and makes the calls of other threads where calls from elsewhere would wait for the CPU.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use quipu_hal::{Error, ErrorKind, Result};

use super::scheduled_group::ScheduledGroup;

/// A background thread, started when it is first needed and ended with this value.
#[derive(Debug, Default)]
pub(super) struct CpuThread {
    signal: Arc<Signal>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

/// A call that another thread wants made.
pub(super) enum Call {
    /// To accumulate what a group has counted.
    Accumulate(Arc<ScheduledGroup>),
    Other(Box<dyn FnOnce() + Send>),
}

#[derive(Default)]
struct Signal {
    request: Mutex<Request>,
    /// For the thread: the request has changed.
    changed: Condvar,
    /// For other threads: it has pinned itself or not, made a call, or ended.
    answered: Condvar,
    /// True while it is on its CPU and makes the calls of others.
    pinned: AtomicBool,
}

#[derive(Default)]
struct Request {
    look_again: bool,
    end: bool,
    /// True once it has pinned itself or not.
    started: bool,
    ended: bool,
    calls: VecDeque<Call>,
    asked: u64,
    made: u64,
}

/// Wakes waiting threads when it has ended, also by a panic.
struct Ending<'a>(&'a Signal);

impl CpuThread {
    /// Starts the thread: `pin` returns true if it is on its CPU from then on. `work` makes a call, or else does
    /// what is due and returns the time until more is; it is called in the background now, whenever that time
    /// has passed, on every [`wake`](Self::wake), and for calls. Does nothing when it runs already.
    ///
    /// # Errors
    /// [`Os`](ErrorKind::Os) when the system has no thread for it.
    pub(super) fn start(
        &self,
        pin: impl FnOnce() -> bool + Send + 'static,
        mut work: impl FnMut(Option<Call>) -> Option<Duration> + Send + 'static,
    ) -> Result<()> {
        let mut thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        if thread.is_some() {
            return Ok(());
        }
        let signal = Arc::clone(&self.signal);
        let spawned = std::thread::Builder::new()
            .name("quipu-rotator".into())
            .spawn(move || {
                let _ending = Ending(&signal);
                let pinned = pin();
                signal.answer(pinned, |request| request.started = true);
                let mut time = work(None);
                while let Some(call) = signal.wait(time) {
                    time = match call {
                        None => work(None),
                        Some(call) => {
                            work(Some(call));
                            signal.answer(true, |request| request.made += 1);
                            Some(Duration::ZERO)
                        }
                    };
                }
            });
        *thread = Some(spawned.map_err(|e| {
            let error = Error::new(ErrorKind::Os, "start the thread that multiplexes counters");
            match e.raw_os_error() {
                Some(errno) => error.with_errno(errno),
                None => error.with_reason(e.to_string()),
            }
        })?);
        self.signal
            .wait_for(|request| request.started || request.ended);
        Ok(())
    }

    /// Makes the thread look for due work now.
    pub(super) fn wake(&self) {
        self.signal.set(|request| request.look_again = true);
    }

    /// Returns true if calls are to be made by this thread.
    pub(super) fn is_pinned(&self) -> bool {
        self.signal.pinned.load(Ordering::Acquire)
    }

    /// Has a call made and waits until it was, or until the thread has ended.
    pub(super) fn make(&self, call: Call) {
        let mut number = 0;
        self.signal.set(|request| {
            if !request.ended {
                request.calls.push_back(call);
            }
            request.asked += 1;
            number = request.asked;
        });
        self.signal
            .wait_for(|request| request.made >= number || request.ended);
    }
}

impl Drop for CpuThread {
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

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.answer(false, |request| {
            request.ended = true;
            request.calls.clear();
        });
    }
}

impl Signal {
    fn lock(&self) -> MutexGuard<'_, Request> {
        self.request.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, change: impl FnOnce(&mut Request)) {
        change(&mut self.lock());
        self.changed.notify_one();
    }

    fn answer(&self, pinned: bool, change: impl FnOnce(&mut Request)) {
        self.pinned.store(pinned, Ordering::Release);
        change(&mut self.lock());
        self.answered.notify_all();
    }

    fn wait_for(&self, answered: impl Fn(&Request) -> bool) {
        let unanswered = |request: &mut Request| !answered(request);
        let waited = self.answered.wait_while(self.lock(), unanswered);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    /// Waits for the time to pass or for a signal, and returns the next call if there is one; `None` at the end.
    fn wait(&self, time: Option<Duration>) -> Option<Option<Call>> {
        let request = self.lock();
        let idle =
            |request: &mut Request| !request.look_again && !request.end && request.calls.is_empty();
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
        if request.end {
            return None;
        }
        let call = request.calls.pop_front();
        request.look_again &= call.is_some();
        Some(call)
    }
}

impl std::fmt::Debug for Signal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signal")
            .field("pinned", &self.pinned)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;
    use std::sync::mpsc;
    use std::thread::ThreadId;

    /// Makes calls, and never has anything due.
    fn make(call: Option<Call>) -> Option<Duration> {
        if let Some(Call::Other(call)) = call {
            call();
        }
        None
    }

    fn other(call: impl FnOnce() + Send + 'static) -> Call {
        Call::Other(Box::new(call))
    }

    #[test]
    fn it_works_again_when_woken_and_no_more_after_its_end() {
        let (sender, calls) = mpsc::channel();
        let thread = CpuThread::default();
        let work = move |_| {
            // The receiver outlives the thread.
            let _ = sender.send(());
            None
        };
        thread.start(|| false, work).unwrap();
        calls.recv().unwrap();
        thread.wake();
        calls.recv().unwrap();
        drop(thread);
        assert_eq!(calls.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }

    #[test]
    fn calls_are_made_on_the_thread_and_waited_for() {
        let thread = CpuThread::default();
        assert!(!thread.is_pinned());
        thread.start(|| true, make).unwrap();
        assert!(thread.is_pinned());
        let made_by: Arc<Mutex<Vec<ThreadId>>> = Arc::default();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        let made_by = Arc::clone(&made_by);
                        let note =
                            move || made_by.lock().unwrap().push(std::thread::current().id());
                        thread.make(other(note));
                    }
                });
            }
        });
        let made_by = made_by.lock().unwrap();
        assert_eq!(made_by.len(), 400);
        assert!(made_by.iter().all(|&by| by == made_by[0]));
        assert_ne!(made_by[0], std::thread::current().id());
    }

    #[test]
    fn who_waits_for_a_call_is_told_of_a_panic_and_no_more_is_asked_of_it() {
        let thread = CpuThread::default();
        thread.start(|| true, make).unwrap();
        let before = Arc::new(AtomicU32::new(0));
        let count = Arc::clone(&before);
        thread.make(other(move || {
            count.store(1, Ordering::SeqCst);
            panic!("a panic of a driver, on purpose");
        }));
        assert_eq!(before.load(Ordering::SeqCst), 1);
        assert!(!thread.is_pinned());
        thread.make(other(|| unreachable!("it has ended")));
    }
}
