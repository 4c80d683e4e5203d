//! The counters of a thread, opened when it enters its first region.

use std::cell::RefCell;
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};

use quipu::{Counts, Error, ErrorKind, EventSet, Result};

use crate::exit;
use crate::region::{self, Names, Region};
use crate::tree::Tree;

/// A thread that has entered regions, for reports.
pub(crate) struct Thread {
    /// Its number, as the system has it where that is known.
    pub(crate) id: u64,
    pub(crate) name: String,
    /// The counts, or the reason why there are none.
    pub(crate) tree: Result<Mutex<Tree>>,
}

/// The threads of a process, in the order of their first regions.
struct Threads {
    /// The number of forks between the process that was started and this one.
    forks: u32,
    all: Vec<Arc<Thread>>,
}

static THREADS: Mutex<Threads> = Mutex::new(Threads {
    forks: 0,
    all: Vec::new(),
});

thread_local! {
    /// The state of this thread. It is borrowed as long as the thread has a lock of this crate, or waits for one: a signal
    /// handler that comes meanwhile keeps out, as it would wait for its own thread.
    static COUNTING: RefCell<Option<Counting>> = const { RefCell::new(None) };
    /// The locks that a thread has which forks: no other thread has them then, and they are free in the child.
    static FORKING: RefCell<Option<(MutexGuard<'static, Names>, MutexGuard<'static, Threads>)>> =
        const { RefCell::new(None) };
}

/// The error that a signal handler gets, made before, so that nothing is allocated there.
static INTERRUPTED: OnceLock<Error> = OnceLock::new();

/// The state of the calling thread.
struct Counting {
    thread: Arc<Thread>,
    /// The set, and a buffer for its counts.
    set: Option<(EventSet, Counts)>,
    forks: u32,
    /// The number of regions that were entered in this process and not left.
    depth: usize,
    /// Regions that the parent process had entered and not left when this one was forked.
    of_parent: usize,
}

/// Takes a lock; a panic elsewhere leaves what it guards as it was.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the threads that have entered regions.
pub(crate) fn all() -> Vec<Arc<Thread>> {
    let mut threads = lock(&THREADS);
    threads.of_this_process();
    threads.all.clone()
}

/// Returns the calling thread, if it has entered regions in this process.
pub(crate) fn own() -> Option<Arc<Thread>> {
    let own = COUNTING.try_with(|counting| {
        let counting = counting.try_borrow().ok()?;
        let counting = counting.as_ref()?;
        (counting.forks == quipu_posix::forks()).then(|| Arc::clone(&counting.thread))
    });
    own.ok()?
}

impl Threads {
    /// Forgets those of the process that this one was forked from.
    fn of_this_process(&mut self) {
        let forks = quipu_posix::forks();
        if self.forks != forks {
            self.forks = forks;
            self.all.clear();
        }
    }
}

impl Counting {
    fn start() -> Self {
        INTERRUPTED.get_or_init(interrupted);
        let opened = events_of_thread();
        // Behind them, so that the report is written before their backend gives back what is open.
        exit::register();
        let (set, tree) = match opened {
            Ok((set, now)) => {
                let tree = Mutex::new(Tree::new(&set.counts(), &now));
                (Some((set, now)), Ok(tree))
            }
            Err(error) => (None, Err(error)),
        };
        let thread = Arc::new(Thread {
            id: number(),
            name: name(),
            tree,
        });
        let mut threads = lock(&THREADS);
        threads.of_this_process();
        threads.all.push(Arc::clone(&thread));
        Self {
            thread,
            set,
            forks: threads.forks,
            depth: 0,
            of_parent: 0,
        }
    }
}

/// Opens the events of regions in the calling thread and starts them.
fn events_of_thread() -> Result<(EventSet, Counts)> {
    let mut set = crate::events::open()?;
    let mut now = set.counts();
    set.enable()?;
    set.read(&mut now)?;
    Ok((set, now))
}

fn refused(kind: ErrorKind, reason: &str) -> Error {
    Error::new(kind, "count a region").with_reason(reason)
}

fn interrupted() -> Error {
    let reason = "a signal handler came while the thread entered or left one";
    refused(ErrorKind::Busy, reason)
}

/// Runs what takes a lock; returns `None` in a signal handler that came while the thread did so.
pub(crate) fn alone<T>(body: impl FnOnce() -> T) -> Option<T> {
    forks_wait();
    let mut body = Some(body);
    let mut run = || body.take().map(|body| body());
    let ran = COUNTING.try_with(|counting| match counting.try_borrow_mut() {
        Ok(_alone) => run(),
        Err(_) => None,
    });
    // A thread that is ending has no state any more.
    ran.unwrap_or_else(|_| run())
}

/// Has forks wait for the locks of this crate from now on.
fn forks_wait() {
    extern "C" fn take() {
        let _ = alone(|| {
            let held = (region::names(), lock(&THREADS));
            let _ = FORKING.try_with(|forking| forking.replace(Some(held)));
        });
    }
    extern "C" fn give_back() {
        let _ = FORKING.try_with(RefCell::take);
    }
    static REGISTERED: Once = Once::new();
    REGISTERED.call_once(|| quipu_posix::around_forks(take, give_back));
}

/// Runs something with the state of the calling thread, which is made if there is none, or in a process that was forked.
fn with<T>(body: impl FnOnce(&mut Counting) -> Result<T>) -> Result<T> {
    let done = COUNTING.try_with(|counting| match counting.try_borrow_mut() {
        Ok(mut counting) => {
            let forks = quipu_posix::forks();
            match &mut *counting {
                Some(counting) if counting.forks == forks => body(counting),
                stale => {
                    let of_parent = stale
                        .take()
                        .map_or(0, |stale| stale.of_parent + stale.depth);
                    let counting = stale.insert(Counting::start());
                    counting.of_parent = of_parent;
                    body(counting)
                }
            }
        }
        Err(_) => Err(INTERRUPTED.get().cloned().unwrap_or_else(interrupted)),
    });
    done.unwrap_or_else(|_| {
        Err(refused(
            ErrorKind::InvalidConfiguration,
            "the thread is ending",
        ))
    })
}

impl Counting {
    /// Runs something with the counters and the tree.
    fn counted<T>(
        &mut self,
        body: impl FnOnce(&mut EventSet, &mut Counts, &mut Tree) -> Result<T>,
    ) -> Result<T> {
        let tree = self.thread.tree.as_ref().map_err(Clone::clone)?;
        match &mut self.set {
            Some((set, now)) => body(set, now, &mut lock(tree)),
            None => Err(refused(
                ErrorKind::InvalidConfiguration,
                "the thread has no counters",
            )),
        }
    }
}

pub(crate) fn begin(region: Region) -> Result<()> {
    if !region.is_known() {
        let reason = "it was not looked up, or in a signal handler that came while the thread was busy with regions";
        return Err(refused(ErrorKind::InvalidConfiguration, reason));
    }
    with(|counting| {
        counting.counted(|set, now, tree| {
            let node = tree.node_of(region, || set.counts());
            set.read(now)?;
            tree.enter(node, now)
        })?;
        counting.depth += 1;
        Ok(())
    })
}

pub(crate) fn end(region: Region) -> Result<()> {
    with(|counting| {
        if counting.of_parent > 0 && counting.depth == 0 {
            // What the parent process has entered is left in the parent.
            counting.of_parent -= 1;
            return Ok(());
        }
        counting.counted(|set, now, tree| {
            if let Err(error) = tree.check_innermost(region) {
                let error = error.with_hint(
                    "regions of a thread are left in the opposite order, and in that thread",
                );
                tree.note(&error);
                return Err(error);
            }
            set.read(now)?;
            tree.leave(now)
        })?;
        counting.depth -= 1;
        Ok(())
    })
}

pub(crate) fn reset(region: Region) -> Result<()> {
    with(|counting| counting.counted(|set, _, tree| tree.reset(region, &set.counts())))
}

/// A thread that ends adds what it did since its last region.
impl Drop for Counting {
    fn drop(&mut self) {
        if self.forks == quipu_posix::forks()
            && let (Some((set, now)), Ok(tree)) = (&mut self.set, &self.thread.tree)
            && set.read(now).is_ok()
        {
            lock(tree).finish(now);
        }
    }
}

/// Returns the number of the calling thread.
fn number() -> u64 {
    #[cfg(target_os = "linux")]
    {
        nix::unistd::gettid().as_raw() as u64
    }
    #[cfg(not(target_os = "linux"))]
    {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(1);
        NEXT.fetch_add(1, Ordering::Relaxed)
    }
}

/// Returns the name of the calling thread, as the system has it.
fn name() -> String {
    let of_system = std::fs::read_to_string("/proc/thread-self/comm").ok();
    let of_system = of_system.map(|name| name.trim_end().to_owned());
    of_system.unwrap_or_else(|| std::thread::current().name().unwrap_or_default().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_that_is_not_the_innermost_is_refused_by_name() {
        let [outer, inner] = ["outer of test", "inner of test"].map(Region::named);
        outer.begin().expect("counters");
        inner.begin().expect("counters");
        let error = outer.end().expect_err("it is not the innermost");
        assert!(
            format!("{error:#}").contains("inner of test is inside of it"),
            "{error:#}"
        );
        inner.end().expect("the innermost");
        outer.end().expect("the innermost");
        let error = format!("{:#}", outer.end().expect_err("left twice"));
        assert!(error.contains("leave the region outer of test"), "{error}");
    }
}
