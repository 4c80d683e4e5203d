//! Regions by name, and the ways in and out.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};

use quipu::Result;

use crate::thread;

/// A part of a program under a name. Its counts are those of all threads that enter it.
///
/// ```
/// use quipu_regions::Region;
///
/// let solve = Region::named("solve");
/// for _ in 0..10 {
///     solve.begin()?;
///     // ...
///     solve.end()?;
/// }
/// assert_eq!(solve, Region::named("solve"));
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Region(u32);

/// A region that is left when this is dropped.
///
/// It stays in its thread: what another thread did is not of the region.
#[derive(Debug)]
#[must_use = "the region is left when this is dropped"]
pub struct Entered {
    region: Region,
    /// False if it could not be entered, which the report says.
    is_inside: bool,
    not_send: PhantomData<*const ()>,
}

/// The names of all regions, by which they are found.
pub(crate) struct Names {
    all: Vec<&'static str>,
    places: BTreeMap<&'static str, u32>,
}

static NAMES: Mutex<Names> = Mutex::new(Names {
    all: Vec::new(),
    places: BTreeMap::new(),
});

/// The number of names, which a signal handler reads without a lock.
static KNOWN: AtomicU32 = AtomicU32::new(0);

/// Waits for the names. A thread that has them is [alone](thread::alone).
pub(crate) fn names() -> MutexGuard<'static, Names> {
    thread::lock(&NAMES)
}

impl Region {
    /// The region that stands for a name that could not be looked up. It cannot be entered.
    const UNKNOWN: Self = Self(u32::MAX);

    /// Returns the region of a name, which is made if there is none. Names are kept until the process ends.
    ///
    /// In a signal handler that came while the thread looked up a name, the region is one that cannot be entered: handlers
    /// keep regions that were looked up before.
    pub fn named(name: &str) -> Self {
        thread::alone(|| {
            let mut names = names();
            if let Some(place) = names.places.get(name) {
                return Self(*place);
            }
            let place = KNOWN.load(Ordering::Relaxed);
            if place == Self::UNKNOWN.0 {
                return Self::UNKNOWN;
            }
            let name: &'static str = Box::leak(Box::from(name));
            names.all.push(name);
            names.places.insert(name, place);
            KNOWN.store(place + 1, Ordering::Release);
            Self(place)
        })
        .unwrap_or(Self::UNKNOWN)
    }

    /// Returns its name; in a signal handler that came while the thread looked up another one, an empty text.
    pub fn name(self) -> &'static str {
        thread::alone(|| self.name_alone()).unwrap_or_default()
    }

    /// Returns its name to a thread that is [alone](thread::alone).
    pub(crate) fn name_alone(self) -> &'static str {
        names().all.get(self.place()).copied().unwrap_or_default()
    }

    /// Returns a number for it, from 1, by which other languages know it. 0 is one that cannot be entered.
    pub fn number(self) -> u32 {
        self.0.wrapping_add(1)
    }

    /// Returns the region that has a number, which need not be of any.
    pub fn of_number(number: u32) -> Self {
        Self(number.wrapping_sub(1))
    }

    /// Returns true unless it stands for no name.
    pub(crate) fn is_known(self) -> bool {
        self.0 < KNOWN.load(Ordering::Acquire)
    }

    pub(crate) fn place(self) -> usize {
        self.0 as usize
    }

    /// Enters the region until the guard is dropped. [`region!`](crate::region!) is the short form.
    ///
    /// It does not fail, so that what is measured goes on: the report has the reason why a thread counts nothing.
    pub fn enter(self) -> Entered {
        Entered {
            region: self,
            is_inside: thread::begin(self).is_ok(),
            not_send: PhantomData,
        }
    }

    /// Enters the region in the calling thread, until [`end`](Self::end). The first time, the thread's counters are opened.
    ///
    /// # Errors
    /// If the thread has no counters for the reason that the error gives. [`Busy`](quipu::ErrorKind::Busy) in a signal handler
    /// that came while the thread entered or left a region.
    pub fn begin(self) -> Result<()> {
        thread::begin(self)
    }

    /// Leaves the region, which is the last one that the thread has entered and not left.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](quipu::ErrorKind::InvalidConfiguration) if it is not: another region is inside of it, it
    /// was left already, or another thread entered it. Nothing is left then. As [`begin`](Self::begin).
    pub fn end(self) -> Result<()> {
        thread::end(self)
    }

    /// Forgets what was counted in the region in the calling thread.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](quipu::ErrorKind::InvalidConfiguration) if the thread is inside of it.
    pub fn reset(self) -> Result<()> {
        thread::reset(self)
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        if self.is_inside {
            // The report names what was not left as it was entered.
            let _ = thread::end(self.region);
        }
    }
}

/// Enters the region of a name until the end of the block: `let _region = region!("solve");`. The name is looked up once.
///
/// ```
/// use quipu_regions::region;
///
/// fn solve() {
///     let _region = region!("solve");
///     for _ in 0..3 {
///         let _step = region!("step");
///     }
/// }
/// solve();
/// let report = quipu_regions::Report::now();
/// let calls = |name| report.totals().iter().find(|region| region.name() == name).map(|region| region.calls);
/// assert_eq!((calls("solve"), calls("step")), (Some(1), Some(3)));
/// ```
#[macro_export]
macro_rules! region {
    ($name:expr) => {{
        static REGION: ::std::sync::OnceLock<$crate::Region> = ::std::sync::OnceLock::new();
        REGION.get_or_init(|| $crate::Region::named($name)).enter()
    }};
}
