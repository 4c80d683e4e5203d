//! Regions by name, and the ways in and out.

use std::collections::HashMap;
use std::marker::PhantomData;
use std::sync::{LazyLock, Mutex, PoisonError};

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
#[derive(Default)]
struct Names {
    all: Vec<&'static str>,
    places: HashMap<&'static str, u32>,
}

static NAMES: LazyLock<Mutex<Names>> = LazyLock::new(Mutex::default);

impl Region {
    /// Returns the region of a name, which is made if there is none. Names are kept until the process ends.
    pub fn named(name: &str) -> Self {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = names.places.get(name) {
            return Self(*place);
        }
        let name: &'static str = Box::leak(Box::from(name));
        let place = u32::try_from(names.all.len()).unwrap_or(u32::MAX);
        names.all.push(name);
        names.places.insert(name, place);
        Self(place)
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        let names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        names.all.get(self.place()).copied().unwrap_or_default()
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
    /// If the thread has no counters for the reason that the error gives, or in a signal handler that came while a region
    /// was entered or left.
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
