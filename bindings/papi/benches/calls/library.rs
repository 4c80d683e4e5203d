//! The functions of a libpapi that was loaded, and its event sets.

use std::env;
use std::ffi::{CStr, CString, c_char, c_int, c_longlong, c_void};
use std::path::Path;

const VERSION: c_int = 7 << 24;
const OK: c_int = 0;

/// Defines the struct of functions, and how they are found.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $value:ty)?,)*) => {
        /// One library.
        #[allow(non_snake_case, reason = "names of C")]
        pub(crate) struct Papi {
            $(pub(crate) $name: unsafe extern "C" fn($($argument),*) $(-> $value)?,)*
        }

        impl Papi {
            /// Loads a library.
            fn load(path: &CStr) -> Result<Self, String> {
                // SAFETY: a path; the initializers are those of a libpapi.
                let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
                let find = |name: &str| -> Result<*mut c_void, String> {
                    let name = CString::new(name).map_err(|error| error.to_string())?;
                    // SAFETY: `dlsym` takes a null handle too, and finds nothing of ours then.
                    let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
                    match handle.is_null() || found.is_null() {
                        true => Err(format!("{} cannot be loaded", path.to_string_lossy())),
                        false => Ok(found),
                    }
                };
                Ok(Self {$(
                    // SAFETY: a function of papi.h, and its type there.
                    $name: unsafe {
                        std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $value)?>(
                            find(stringify!($name))?
                        )
                    },
                )*})
            }
        }
    };
}

functions! {
    PAPI_library_init: fn(c_int) -> c_int,
    PAPI_shutdown: fn(),
    PAPI_create_eventset: fn(*mut c_int) -> c_int,
    PAPI_destroy_eventset: fn(*mut c_int) -> c_int,
    PAPI_cleanup_eventset: fn(c_int) -> c_int,
    PAPI_add_named_event: fn(c_int, *const c_char) -> c_int,
    PAPI_add_events: fn(c_int, *mut c_int, c_int) -> c_int,
    PAPI_event_name_to_code: fn(*const c_char, *mut c_int) -> c_int,
    PAPI_start: fn(c_int) -> c_int,
    PAPI_stop: fn(c_int, *mut c_longlong) -> c_int,
    PAPI_read: fn(c_int, *mut c_longlong) -> c_int,
    PAPI_get_real_nsec: fn() -> c_longlong,
    PAPI_strerror: fn(c_int) -> *const c_char,
}

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

impl Papi {
    /// Loads what cargo built beside this bench.
    pub(crate) fn of_quipu() -> Result<Self, String> {
        let bench = env::current_exe().map_err(|error| error.to_string())?;
        Self::at(&bench.with_file_name("libpapi.so"))
    }

    fn at(path: &Path) -> Result<Self, String> {
        let path = CString::new(path.as_os_str().as_encoded_bytes());
        Self::load(&path.map_err(|error| error.to_string())?)
    }

    /// Loads PAPI's.
    pub(crate) fn of_papi() -> Result<Self, String> {
        Self::load(c"libpapi.so.7.0").map_err(|_| "libpapi.so.7.0 is not installed".to_owned())
    }

    /// Initializes it.
    pub(crate) fn initialize(&self) -> Result<(), String> {
        // SAFETY: it takes a number.
        match unsafe { (self.PAPI_library_init)(VERSION) } {
            VERSION => Ok(()),
            code => Err(self.says(code)),
        }
    }

    /// Returns the text of a code.
    fn says(&self, code: c_int) -> String {
        // SAFETY: null, or a text that stays.
        let text = unsafe {
            (self.PAPI_strerror)(code)
                .as_ref()
                .map(|text| CStr::from_ptr(text))
        };
        text.unwrap_or(c"an unknown error")
            .to_string_lossy()
            .into_owned()
    }

    /// Returns the events to count: those of the CPU if it has counters for them.
    pub(crate) fn events(&self) -> &'static [&'static CStr; 5] {
        let has_counters = self
            .initialize()
            .is_ok_and(|()| match self.open(&EVENTS[0]) {
                Ok(set) => {
                    self.close(set);
                    true
                }
                Err(_) => false,
            });
        &EVENTS[usize::from(!has_counters)]
    }

    /// Makes an event set, to which events are added one by one.
    pub(crate) fn open(&self, events: &[&CStr]) -> Result<c_int, String> {
        // SAFETY: a set, and texts.
        let add = |set, event: &&CStr| unsafe { (self.PAPI_add_named_event)(set, event.as_ptr()) };
        self.open_with(|set| {
            let mut codes = events.iter().map(|event| add(set, event));
            codes.find(|code| *code != OK).unwrap_or(OK)
        })
    }

    /// Makes an event set, to which events are added in one call.
    pub(crate) fn open_at_once(&self, events: &[&CStr; 5]) -> Result<c_int, String> {
        let mut codes = [0; 5];
        for (event, code) in events.iter().zip(&mut codes) {
            // SAFETY: a text, and a number to be written.
            unsafe { (self.PAPI_event_name_to_code)(event.as_ptr(), code) };
        }
        // SAFETY: a set, and as many codes.
        self.open_with(|set| unsafe { (self.PAPI_add_events)(set, codes.as_mut_ptr(), 5) })
    }

    fn open_with(&self, add: impl FnOnce(c_int) -> c_int) -> Result<c_int, String> {
        let mut set = -1;
        // SAFETY: a number to be written.
        let made = unsafe { (self.PAPI_create_eventset)(&mut set) };
        match if made == OK { add(set) } else { made } {
            OK => Ok(set),
            code => {
                self.close(set);
                Err(self.says(code))
            }
        }
    }

    /// Destroys an event set, which counts no more.
    pub(crate) fn close(&self, mut set: c_int) {
        // SAFETY: a number, and where it is.
        unsafe {
            (self.PAPI_cleanup_eventset)(set);
            (self.PAPI_destroy_eventset)(&mut set);
        }
    }
}
