//! The high level: regions of a program, counted in each thread, and a report in JSON when the process ends.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int, c_longlong};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use crate::boundary::call::done;
use crate::boundary::pointer::caller_text;
use crate::code::{EINVAL, EMISC, Outcome};
use crate::event_set::set::{MULTIPLEXING, Set};
use crate::library::{HIGH_LEVEL, LIBRARY, THREAD_LEVEL, lock};
use crate::machine::clock;
use crate::rate;
use regions::{REGIONS, Region, Regions, Values, events};

mod regions;
mod report;

/// The event sets of a thread, by component.
struct Running {
    sets: BTreeMap<usize, Set>,
    regions: Arc<Mutex<Regions>>,
    /// True if they are also regions of `quipu_regions`, for `QUIPU_REGIONS` and `quipu stat --regions`. Those are sums over
    /// the calls of a region; PAPI's report has each call.
    is_shared: bool,
}

thread_local! {
    static RUNNING: RefCell<Option<Running>> = const { RefCell::new(None) };
}

/// False after `PAPI_hl_stop`, until a region begins.
static COUNTS: AtomicBool = AtomicBool::new(false);

extern "C" fn thread_id() -> std::ffi::c_ulong {
    #[cfg(target_os = "linux")]
    {
        nix::unistd::gettid().as_raw() as std::ffi::c_ulong
    }
    #[cfg(not(target_os = "linux"))]
    {
        nix::sys::pthread::pthread_self() as std::ffi::c_ulong
    }
}

/// Initializes the library and the report at the end of the process, once.
fn initialize() -> Outcome {
    static REPORTED: OnceLock<bool> = OnceLock::new();
    rate::initialize()?;
    if !LIBRARY.has_level(THREAD_LEVEL) {
        crate::thread::PAPI_thread_init(Some(thread_id));
    }
    LIBRARY.add_level(HIGH_LEVEL);
    let registered = REPORTED.get_or_init(|| crate::sys::at_exit(report::at_exit));
    match registered {
        true => Ok(()),
        false => Err(EMISC),
    }
}

impl Running {
    /// Starts the events in the calling thread.
    fn start() -> Outcome<Self> {
        let mut sets = BTreeMap::new();
        for event in events()? {
            let set = match sets.entry(event.component) {
                std::collections::btree_map::Entry::Occupied(known) => known.into_mut(),
                std::collections::btree_map::Entry::Vacant(new) => {
                    let set = new.insert(Set::for_this_thread()?);
                    set.assign(event.component);
                    if quipu_environment::variable("PAPI_MULTIPLEX").is_some() {
                        set.state |= MULTIPLEXING;
                    }
                    set
                }
            };
            set.add(event.code)?;
        }
        for set in sets.values_mut() {
            set.start(crate::abi::NULL)?;
        }
        let regions = Arc::new(Mutex::new(Regions::default()));
        lock(&REGIONS).push(Arc::clone(&regions));
        Ok(Self {
            sets,
            regions,
            is_shared: quipu_regions::is_on(),
        })
    }

    /// Returns the region of `quipu_regions` that is entered and left with one of this name, if any is.
    fn shared(&self, name: &str) -> Option<quipu_regions::Region> {
        self.is_shared.then(|| quipu_regions::Region::named(name))
    }

    /// Returns the values of this moment.
    fn values(&mut self) -> Outcome<Values> {
        let (real, _) = clock::seconds();
        let mut values = vec![clock::real_cycles(), (real * 1e9) as c_longlong];
        let mut read = BTreeMap::new();
        for (component, set) in &mut self.sets {
            read.insert(*component, set.values()?.to_vec().into_iter());
        }
        for event in events()? {
            let value = read.get_mut(&event.component).and_then(Iterator::next);
            values.push(value.unwrap_or(0));
        }
        Ok(values)
    }
}

/// Returns what was counted since the begin of a region; of gauges, the value.
fn since(begin: &[c_longlong], now: &[c_longlong]) -> Values {
    let instant = |at: usize| {
        let event = at.checked_sub(2).and_then(|at| events().ok()?.get(at));
        event.is_some_and(|event| event.is_instant)
    };
    let pairs = begin.iter().zip(now).enumerate();
    pairs
        .map(|(at, (begin, now))| if instant(at) { *now } else { now - begin })
        .collect()
}

/// Runs something in the calling thread, where events are counted.
fn in_thread<T>(body: impl FnOnce(&mut Running) -> Outcome<T>) -> Outcome<T> {
    RUNNING.with_borrow_mut(|running| match running {
        Some(running) => body(running),
        None => Err(EMISC),
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_hl_region_begin(region: *const c_char) -> c_int {
    done(|| {
        // SAFETY: null, or a text that ends with a NUL.
        let name = unsafe { caller_text(region) }?;
        initialize()?;
        // Rates count in the same thread.
        let _ = rate::stop();
        COUNTS.store(true, Ordering::Relaxed);
        RUNNING.with_borrow_mut(|running| {
            if running.is_none() {
                *running = Some(Running::start()?);
            }
            Ok(())
        })?;
        in_thread(|running| {
            let begin = running.values()?;
            let mut regions = lock(&running.regions);
            let id = regions.all.len();
            let parent = regions.open.last().copied();
            let shared = running.shared(&name);
            regions.all.push(Region {
                id,
                name: name.into_owned(),
                parent,
                begin,
                total: None,
                reads: Vec::new(),
            });
            regions.open.push(id);
            if let Some(region) = shared {
                // Its report has the reason if it cannot be counted.
                let _ = region.begin();
            }
            Ok(())
        })
    })
}

/// Returns the place of the region that was opened last, if it has the name.
fn innermost(regions: &Regions, name: &str) -> Outcome<usize> {
    let id = regions.open.last().copied().ok_or(EMISC)?;
    match regions.all.get(id) {
        Some(region) if region.name == name => Ok(id),
        _ => Err(EMISC),
    }
}

/// Notes what was counted in a region until now.
fn note(region: *const c_char, ends: bool) -> c_int {
    done(|| {
        // SAFETY: null, or a text that ends with a NUL.
        let name = unsafe { caller_text(region) }?;
        in_thread(|running| {
            let now = running.values()?;
            let mut regions = lock(&running.regions);
            let id = innermost(&regions, &name)?;
            let counted = since(&regions.all[id].begin, &now);
            match ends {
                true => {
                    if let Some(region) = running.shared(&name) {
                        // As with its begin.
                        let _ = region.end();
                    }
                    regions.all[id].total = Some(counted);
                    regions.open.pop();
                }
                false => regions.all[id].reads.push(counted),
            }
            Ok(())
        })
    })
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_hl_read(region: *const c_char) -> c_int {
    note(region, false)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_hl_region_end(region: *const c_char) -> c_int {
    note(region, true)
}

#[unsafe(no_mangle)]
pub(crate) extern "C" fn PAPI_hl_stop() -> c_int {
    done(|| {
        if !COUNTS.load(Ordering::Relaxed) {
            return Err(EINVAL);
        }
        let running = RUNNING.with_borrow_mut(Option::take).ok_or(EMISC)?;
        for mut set in running.sets.into_values() {
            set.stop()?;
        }
        Ok(())
    })
}
