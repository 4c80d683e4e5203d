//! `PAPI_read` and the regions of the high level of this library beside PAPI's own: both are loaded into one process and called in
//! turns.
//!
//! `cargo bench -p quipu-papi --bench read` prints the rows that `ci/bench` judges. Where there are no counters of the
//! CPU the events are those of software. The libraries are never unloaded.

#[cfg(target_os = "linux")]
#[path = "../../../quipu/benches/calls/pairs.rs"]
mod pairs;

#[cfg(target_os = "linux")]
mod measured {
    use std::env;
    use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_void};
    use std::sync::OnceLock;

    use crate::pairs::{Work, row, skip};

    const VERSION: c_int = 7 << 24;
    const OK: c_int = 0;
    const READS: u32 = 200;

    /// Events of the CPU, and those that are counted where it has no counters.
    const EVENTS: [[&CStr; 5]; 2] = [
        [
            c"PAPI_TOT_CYC",
            c"PAPI_TOT_INS",
            c"PAPI_BR_INS",
            c"PAPI_BR_MSP",
            c"PAPI_L1_DCM",
        ],
        [
            c"perf::PAGE-FAULTS",
            c"perf::TASK-CLOCK",
            c"perf::CONTEXT-SWITCHES",
            c"perf::CPU-MIGRATIONS",
            c"perf::MINOR-FAULTS",
        ],
    ];

    /// Defines the functions of a library, as papi.h declares them, and how they are found.
    macro_rules! functions {
        ($($field:ident: $name:literal, fn($($argument:ty),*);)*) => {
            /// The functions of one library.
            #[derive(Clone, Copy)]
            struct Papi {
                $($field: unsafe extern "C" fn($($argument),*) -> c_int,)*
            }

            impl Papi {
                fn find(handle: *mut c_void) -> Result<Self, String> {
                    Ok(Self {$(
                        $field: {
                            // SAFETY: `dlsym` reads the name.
                            let found = unsafe { libc::dlsym(handle, $name.as_ptr()) };
                            if found.is_null() {
                                return Err(format!("there is no {}", $name.to_string_lossy()));
                            }
                            // SAFETY: the function of this name has the type that papi.h gives it.
                            unsafe {
                                std::mem::transmute::<
                                    *mut c_void,
                                    unsafe extern "C" fn($($argument),*) -> c_int,
                                >(found)
                            }
                        },
                    )*})
                }
            }
        };
    }

    functions! {
        library_init: c"PAPI_library_init", fn(c_int);
        create_eventset: c"PAPI_create_eventset", fn(*mut c_int);
        cleanup_eventset: c"PAPI_cleanup_eventset", fn(c_int);
        destroy_eventset: c"PAPI_destroy_eventset", fn(*mut c_int);
        add_named_event: c"PAPI_add_named_event", fn(c_int, *const c_char);
        start: c"PAPI_start", fn(c_int);
        stop: c"PAPI_stop", fn(c_int, *mut c_longlong);
        read: c"PAPI_read", fn(c_int, *mut c_longlong);
        hl_region_begin: c"PAPI_hl_region_begin", fn(*const c_char);
        hl_region_end: c"PAPI_hl_region_end", fn(*const c_char);
    }

    impl Papi {
        fn load(path: &CStr) -> Result<Self, String> {
            // SAFETY: a path; the initializers are those of a libpapi.
            let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
            if handle.is_null() {
                return Err(format!("{} cannot be loaded", path.to_string_lossy()));
            }
            let papi = Self::find(handle)?;
            // SAFETY: it takes a number.
            match unsafe { (papi.library_init)(VERSION) } {
                VERSION => Ok(papi),
                code => Err(format!("PAPI_library_init says {code}")),
            }
        }

        /// Returns an event set that counts these events, or the first code that is not PAPI_OK.
        fn open(&'static self, events: &[&CStr]) -> Result<Set, c_int> {
            let mut set = Set { papi: self, id: -1 };
            // SAFETY: a set to be written, then its number, and texts.
            unsafe {
                ok((self.create_eventset)(&mut set.id))?;
                for event in events {
                    ok((self.add_named_event)(set.id, event.as_ptr()))?;
                }
                ok((self.start)(set.id))?;
            }
            Ok(set)
        }
    }

    fn ok(code: c_int) -> Result<(), c_int> {
        if code == OK { Ok(()) } else { Err(code) }
    }

    /// An event set.
    struct Set {
        papi: &'static Papi,
        id: c_int,
    }

    impl Set {
        fn read(&self, values: &mut [c_longlong; 5]) -> c_int {
            // SAFETY: there is room for all values.
            unsafe { (self.papi.read)(self.id, values.as_mut_ptr()) }
        }
    }

    impl Drop for Set {
        fn drop(&mut self) {
            let mut values = [0; 5];
            // SAFETY: there is room for all values; the number is that of the set.
            unsafe {
                (self.papi.stop)(self.id, values.as_mut_ptr());
                (self.papi.cleanup_eventset)(self.id);
                (self.papi.destroy_eventset)(&mut self.id);
            }
        }
    }

    static OURS: OnceLock<Papi> = OnceLock::new();
    static THEIRS: OnceLock<Papi> = OnceLock::new();
    /// The index of the events that both count.
    static WHICH: OnceLock<usize> = OnceLock::new();

    fn read(papi: &'static OnceLock<Papi>, events: usize) -> Work {
        let papi = papi.get().expect("it is loaded");
        let which = *WHICH.get().expect("the events are chosen");
        let set = papi
            .open(&EVENTS[which][..events])
            .expect("the events open");
        Box::new(move |times| {
            let mut values = [0; 5];
            for _ in 0..times {
                assert_eq!(set.read(&mut values), OK, "a read failed");
            }
        })
    }

    /// Begin and end of a region of the high level, or the first code that is not PAPI_OK.
    fn region(papi: &Papi) -> Result<(), c_int> {
        let name = c"bench".as_ptr();
        // SAFETY: texts.
        unsafe {
            ok((papi.hl_region_begin)(name))?;
            ok((papi.hl_region_end)(name))
        }
    }

    fn regions(papi: &'static OnceLock<Papi>) -> Work {
        let papi = papi.get().expect("it is loaded");
        Box::new(move |times| {
            for _ in 0..times {
                region(papi).expect("a region");
            }
        })
    }

    /// Compares regions of one event. What each library keeps of every call is written when the process ends.
    fn row_of_regions() {
        const ROW: &str = "PAPI_hl_region_begin and _end / PAPI's";
        let which = *WHICH.get().expect("the events are chosen");
        let variables = [
            (c"PAPI_EVENTS", EVENTS[which][0]),
            (c"PAPI_OUTPUT_DIRECTORY", c"/tmp/quipu-bench"),
        ];
        for (variable, value) in variables {
            // SAFETY: texts; no other thread runs.
            unsafe { libc::setenv(variable.as_ptr(), value.as_ptr(), 1) };
        }
        for (papi, whose) in [(&OURS, "Quipu's"), (&THEIRS, "PAPI's")] {
            if let Err(code) = region(papi.get().expect("it is loaded")) {
                return skip(ROW, &format!("{whose} regions return {code}"));
            }
        }
        row(ROW, READS, || regions(&OURS), || regions(&THEIRS));
    }

    pub(super) fn main() {
        if let Err(reason) = load() {
            skip("PAPI_read of 1 / PAPI's", &reason);
            skip("PAPI_read of 5 / PAPI's", &reason);
            return;
        }
        row(
            "PAPI_read of 1 / PAPI's",
            READS,
            || read(&OURS, 1),
            || read(&THEIRS, 1),
        );
        row(
            "PAPI_read of 5 / PAPI's",
            READS,
            || read(&OURS, 5),
            || read(&THEIRS, 5),
        );
        row_of_regions();
    }

    /// Loads both libraries, and chooses the events.
    fn load() -> Result<(), String> {
        // By its soname, which both have: the installed one before ours.
        let theirs = Papi::load(c"libpapi.so.7.0")
            .map_err(|_| "libpapi.so.7.0 is not installed".to_owned())?;
        let bench = env::current_exe().map_err(|error| error.to_string())?;
        let path = bench.with_file_name("libpapi.so");
        let path = CString::new(path.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        let ours = Papi::load(&path)?;
        let (theirs, _) = (THEIRS.get_or_init(|| theirs), OURS.get_or_init(|| ours));
        let which = EVENTS.iter().position(|events| theirs.open(events).is_ok());
        let which = which.ok_or("PAPI counts neither events of the CPU nor of software")?;
        WHICH.get_or_init(|| which);
        Ok(())
    }
}

#[cfg(target_os = "linux")]
fn main() {
    measured::main();
}

#[cfg(not(target_os = "linux"))]
fn main() {
    println!("SKIP\tPAPI_read\tPAPI counts by perf_event_open(2)");
}
