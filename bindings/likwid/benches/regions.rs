//! The cost of a region: beside two reads of the same set, and by LIKWID's markers here and in LIKWID.
//!
//! `cargo bench -p quipu-likwid --bench regions` prints the rows that `ci/bench` judges. LIKWID's own markers count in registers,
//! which take root and a CPU that LIKWID knows. The libraries are never unloaded.

#[path = "../../../quipu/benches/calls/pairs.rs"]
mod pairs;

use std::env;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use pairs::{Work, row, skip};
use quipu::EventSet;
use quipu_regions::Region;

/// Each is a system call to read.
const EVENTS: &str = "page-faults,context-switches";
const TIMES: u32 = 100;

/// Begin and end of a region.
fn region() -> Work {
    let region = Region::named("bench");
    Box::new(move |times| {
        for _ in 0..times {
            region.begin().expect("counters");
            region.end().expect("the innermost");
        }
    })
}

/// A region inside of four others.
fn inner_region() -> Work {
    let region = Region::named("inner bench");
    let outer = ["1", "2", "3", "4"].map(Region::named);
    Box::new(move |times| {
        for outer in outer {
            outer.begin().expect("counters");
        }
        for _ in 0..times {
            region.begin().expect("counters");
            region.end().expect("the innermost");
        }
        for outer in outer.into_iter().rev() {
            outer.end().expect("the innermost");
        }
    })
}

/// Two reads of the set that regions have.
fn two_reads() -> Work {
    let mut set = EventSet::builder()
        .events(EVENTS)
        .expect("events")
        .open()
        .expect("it opens");
    set.enable().expect("it counts");
    let mut counts = [set.counts(), set.counts()];
    Box::new(move |times| {
        for _ in 0..times {
            for counts in &mut counts {
                set.read(counts).expect("it reads");
            }
        }
    })
}

/// The markers of a library.
#[derive(Clone, Copy)]
struct Markers {
    start: extern "C" fn(*const c_char) -> c_int,
    stop: extern "C" fn(*const c_char) -> c_int,
}

impl Markers {
    fn load(path: &CStr) -> Result<Self, String> {
        // SAFETY: a path; the initializers are those of a liblikwid.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        if handle.is_null() {
            return Err(format!("{} cannot be loaded", path.to_string_lossy()));
        }
        let find = |name: &CStr| {
            // SAFETY: `dlsym` reads the name.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            match found.is_null() {
                true => Err(format!("there is no {}", name.to_string_lossy())),
                false => Ok(found),
            }
        };
        let of_region = |name| {
            // SAFETY: the functions that are asked for here have this type in likwid.h.
            find(name).map(|found| unsafe {
                std::mem::transmute::<*mut c_void, extern "C" fn(*const c_char) -> c_int>(found)
            })
        };
        let init = find(c"likwid_markerInit")?;
        // SAFETY: the function has this type in likwid.h.
        let init: extern "C" fn() = unsafe { std::mem::transmute(init) };
        init();
        let markers = Self {
            start: of_region(c"likwid_markerStartRegion")?,
            stop: of_region(c"likwid_markerStopRegion")?,
        };
        match [markers.start, markers.stop].map(|call| call(c"bench".as_ptr())) {
            [0, 0] => Ok(markers),
            codes => Err(format!("its markers return {codes:?} here")),
        }
    }
}

static OURS: OnceLock<Markers> = OnceLock::new();
static THEIRS: OnceLock<Markers> = OnceLock::new();

fn markers(of: &'static OnceLock<Markers>) -> Work {
    let markers = *of.get().expect("they are loaded");
    Box::new(move |times| {
        for _ in 0..times {
            (markers.start)(c"bench".as_ptr());
            (markers.stop)(c"bench".as_ptr());
        }
    })
}

fn set(variable: &CStr, value: &CStr) {
    // SAFETY: no other thread runs yet.
    unsafe { libc::setenv(variable.as_ptr(), value.as_ptr(), 1) };
}

fn ours() -> Result<Markers, String> {
    let bench = env::current_exe().map_err(|error| error.to_string())?;
    let path = bench.with_file_name("liblikwid.so");
    let path =
        CString::new(path.as_os_str().as_encoded_bytes()).map_err(|error| error.to_string())?;
    Markers::load(&path)
}

fn main() {
    // By its soname, which both have: the installed one before ours.
    set(
        c"LIKWID_EVENTS",
        c"INSTR_RETIRED_ANY:FIXC0,CPU_CLK_UNHALTED_CORE:FIXC1",
    );
    set(c"LIKWID_FILEPATH", c"/dev/null");
    set(c"LIKWID_MODE", c"0");
    set(c"LIKWID_THREADS", c"0");
    let theirs = Markers::load(c"liblikwid.so.5.2");

    set(c"LIKWID_EVENTS", c"page-faults,context-switches");
    quipu_regions::choose_events(EVENTS).expect("the first");
    row("a region / two reads", TIMES, region, two_reads);
    row(
        "a region in five / two reads",
        TIMES,
        inner_region,
        two_reads,
    );
    match ours() {
        Ok(ours) => OURS.get_or_init(|| ours),
        Err(reason) => return skip("a marked region / two reads", &reason),
    };
    row(
        "a marked region / two reads",
        TIMES,
        || markers(&OURS),
        two_reads,
    );
    match theirs {
        Ok(theirs) => {
            THEIRS.get_or_init(|| theirs);
            row(
                "a marked region / LIKWID's",
                TIMES,
                || markers(&OURS),
                || markers(&THEIRS),
            );
        }
        Err(reason) => skip(
            "a marked region / LIKWID's",
            &format!("LIKWID's library: {reason}"),
        ),
    }
}
