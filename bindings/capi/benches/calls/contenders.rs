//! The contenders: the bare system calls, the Linux backend, the facade, and the C library.

use std::ffi::{CStr, CString, c_int, c_void};
use std::hint::black_box;
use std::process::Command;
use std::ptr::NonNull;

use quipu::{Count, Counts, EventSet};
use quipu_capi::{quipu_count, quipu_reading, quipu_set, quipu_status};
use quipu_hal::{Backend, Group, GroupSpec, ReadBuf, Target};
use quipu_linux::LinuxBackend;

/// The calls that are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing.
    Nothing,
    /// Opening, starting and reading once.
    FirstCount,
    OpenClose,
    StartStop,
    Read,
    /// Reading, and the total of each event.
    Total,
    /// Reading, and the total of each event twice.
    TotalTwice,
    /// Reading values alone.
    Exact,
    /// Reading, and adding what was counted since the last time.
    Accumulate,
}

impl Step {
    const ALL: [Self; 9] = [
        Self::Nothing,
        Self::FirstCount,
        Self::OpenClose,
        Self::StartStop,
        Self::Read,
        Self::Total,
        Self::TotalTwice,
        Self::Exact,
        Self::Accumulate,
    ];

    pub(crate) fn named(name: &str) -> Option<Self> {
        let is_it = |step: &Self| format!("{step:?}") == name;
        Self::ALL.into_iter().find(is_it)
    }
}

/// Events of user mode.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Kind {
    Software,
    /// Of the CPU's PMU.
    Hardware,
}

/// Why something could not be done. Small, so that figures are of the contenders.
pub(crate) type Refusal = Box<str>;

pub(crate) type Outcome = Result<(), Refusal>;

/// One way to count some events of the calling thread, in one group.
pub(crate) trait Contender {
    fn open(&mut self, kind: Kind, events: usize) -> Outcome;
    /// Makes what is read into, once it is open.
    fn make_buffers(&mut self) {}
    fn close(&mut self);
    fn start(&mut self) -> Outcome;
    fn stop(&mut self) -> Outcome;
    fn read(&mut self) -> Outcome;
    fn totals(&mut self) -> Outcome;
    /// Totals only, where those of an event that was looked up are not asked for by themselves.
    fn totals_twice(&mut self) -> Outcome {
        self.totals()
    }
    /// Totals, where values are not offered alone.
    fn exact(&mut self) -> Outcome {
        self.totals()
    }
    /// Reads only, where nothing more is offered.
    fn accumulate(&mut self) -> Outcome {
        self.read()
    }
}

pub(crate) fn named(name: &str) -> Result<Box<dyn Contender>, Refusal> {
    match name {
        "EventSet" => Ok(Box::<Facade>::default()),
        "linux" => Ok(Box::new(Linux::new()?)),
        "C" => Ok(Box::<C>::default()),
        "idle" => Ok(Box::new(Idle)),
        "mapped" => Ok(Box::new(Mapped(Raw::load()?))),
        _ => Ok(Box::new(Raw::load()?)),
    }
}

/// One that does nothing, whose figures are the cost of calling a contender.
struct Idle;

impl Contender for Idle {
    fn open(&mut self, _: Kind, _: usize) -> Outcome {
        Ok(())
    }

    fn close(&mut self) {}

    fn start(&mut self) -> Outcome {
        Ok(())
    }

    fn stop(&mut self) -> Outcome {
        Ok(())
    }

    fn read(&mut self) -> Outcome {
        Ok(())
    }

    fn totals(&mut self) -> Outcome {
        Ok(())
    }
}

/// So many events, in one group, as a program has them in its text.
fn text(kind: Kind, events: usize) -> Result<&'static str, Refusal> {
    Ok(match (kind, events) {
        (Kind::Software, 1) => "page-faults:u",
        (Kind::Software, 5) => {
            "{page-faults,task-clock,context-switches,cpu-migrations,minor-faults}:u"
        }
        (Kind::Hardware, 1) => "instructions:u",
        (Kind::Hardware, 4) => "{instructions,cycles,branches,branch-misses}:u",
        _ => return Err(format!("there is no text for {events} events").into()),
    })
}

/// The backend by itself, made once, with a description of the group that was made before.
struct Linux {
    backend: LinuxBackend,
    spec: Option<GroupSpec>,
    group: Option<Box<dyn Group>>,
    buf: Option<ReadBuf>,
}

impl Linux {
    fn new() -> Result<Self, Refusal> {
        Ok(Self {
            backend: told(LinuxBackend::new())?,
            spec: None,
            group: None,
            buf: None,
        })
    }

    fn group(&mut self) -> Result<&mut Box<dyn Group>, Refusal> {
        self.group.as_mut().ok_or_else(|| NOT_OPEN.into())
    }
}

impl Contender for Linux {
    fn open(&mut self, kind: Kind, events: usize) -> Outcome {
        let spec = match self.spec.take() {
            Some(spec) if spec.members.len() == events => spec,
            _ => {
                let mut spec: GroupSpec = told(text(kind, events)?.parse())?;
                spec.attributes.disabled = true;
                spec
            }
        };
        let group = self.backend.open(&spec, &Target::CurrentThread);
        self.spec = Some(spec);
        self.group = Some(told(group)?);
        Ok(())
    }

    fn make_buffers(&mut self) {
        self.buf = self.group.as_ref().map(|group| group.read_buf());
    }

    fn close(&mut self) {
        (self.group, self.buf) = (None, None);
    }

    fn start(&mut self) -> Outcome {
        told(self.group()?.enable())
    }

    fn stop(&mut self) -> Outcome {
        told(self.group()?.disable())
    }

    fn read(&mut self) -> Outcome {
        let group = self.group.as_mut().ok_or(NOT_OPEN)?;
        told(group.read(self.buf.as_mut().ok_or(NOT_OPEN)?))
    }

    fn totals(&mut self) -> Outcome {
        self.read()
    }
}

#[derive(Default)]
struct Facade {
    /// The set, until there is a buffer for it.
    opened: Option<EventSet>,
    open: Option<(EventSet, Counts)>,
    /// The values that are read alone.
    values: Vec<u64>,
}

const NOT_OPEN: &str = "it is not open";

impl Facade {
    fn parts(&mut self) -> Result<&mut (EventSet, Counts), Refusal> {
        self.open.as_mut().ok_or_else(|| NOT_OPEN.into())
    }
}

fn told<T>(result: quipu::Result<T>) -> Result<T, Refusal> {
    result.map_err(|error| error.to_string().into())
}

impl Contender for Facade {
    fn open(&mut self, kind: Kind, events: usize) -> Outcome {
        let mut builder = EventSet::builder();
        told(builder.events(text(kind, events)?))?;
        let set = told(builder.open())?;
        if let Some(error) = set.events().iter().find_map(|event| event.error()) {
            return Err(error.to_string().into());
        }
        self.opened = Some(set);
        Ok(())
    }

    fn make_buffers(&mut self) {
        if let Some(set) = self.opened.take() {
            let counts = set.counts();
            self.values = vec![0; counts.len()];
            self.open = Some((set, counts));
        }
    }

    fn close(&mut self) {
        (self.opened, self.open) = (None, None);
    }

    fn start(&mut self) -> Outcome {
        told(self.parts()?.0.enable())
    }

    fn stop(&mut self) -> Outcome {
        told(self.parts()?.0.disable())
    }

    fn read(&mut self) -> Outcome {
        let (set, counts) = self.parts()?;
        told(set.read(counts))
    }

    fn totals(&mut self) -> Outcome {
        let (set, counts) = self.parts()?;
        told(set.read(counts))?;
        Ok(counts.events().try_for_each(|event| exact(event.total()))?)
    }

    fn totals_twice(&mut self) -> Outcome {
        let (set, counts) = self.parts()?;
        told(set.read(counts))?;
        Ok(counts.events().try_for_each(|event| {
            exact(event.total())?;
            exact(event.total())
        })?)
    }

    fn exact(&mut self) -> Outcome {
        let (values, (set, _)) = (&mut self.values, self.open.as_mut().ok_or(NOT_OPEN)?);
        match set.read_exact(values) {
            true => Ok(()),
            false => Err("they are not exact".into()),
        }
    }
}

/// Takes an exact total, as a program does that goes on with the number.
#[inline(always)]
fn exact(total: quipu::Result<Count>) -> Result<(), String> {
    match total {
        Ok(Count::Exact(value)) => black_box(value as u64),
        total => return Err(not_exact(&total)),
    };
    Ok(())
}

#[cold]
#[inline(never)]
fn not_exact(total: &quipu::Result<Count>) -> String {
    format!("it is not exact: {total:?}")
}

/// The functions of the C library, as a program of C calls them.
#[derive(Default)]
struct C {
    set: Option<NonNull<quipu_set>>,
    counts: Vec<quipu_count>,
    sum: Vec<quipu_reading>,
    last: Vec<quipu_reading>,
}

impl C {
    fn set(&self) -> *mut quipu_set {
        self.set.map_or(std::ptr::null_mut(), NonNull::as_ptr)
    }
}

fn checked(status: quipu_status) -> Outcome {
    match status {
        quipu_status::QUIPU_OK => Ok(()),
        refused => Err(refusal(refused)),
    }
}

#[cold]
#[inline(never)]
fn refusal(status: quipu_status) -> Refusal {
    format!("the library says {status:?}").into()
}

impl Contender for C {
    fn open(&mut self, kind: Kind, events: usize) -> Outcome {
        let names = CString::new(text(kind, events)?).map_err(|error| error.to_string())?;
        let mut set = std::ptr::null_mut();
        // SAFETY: pointers to live values, and a set that the library has made.
        unsafe {
            checked(quipu_capi::quipu_set_create(std::ptr::null(), &raw mut set))?;
            checked(quipu_capi::quipu_set_add(set, names.as_ptr()))?;
            checked(quipu_capi::quipu_set_open(set))?;
        }
        *self = Self {
            set: NonNull::new(set),
            counts: vec![quipu_count::default(); events],
            sum: vec![quipu_reading::default(); events],
            last: vec![quipu_reading::default(); events],
        };
        Ok(())
    }

    fn close(&mut self) {
        if let Some(set) = self.set.take() {
            // SAFETY: a set that the library has made.
            unsafe { quipu_capi::quipu_set_close(set.as_ptr()) };
        }
    }

    fn start(&mut self) -> Outcome {
        // SAFETY: a set that the library has made, or none.
        checked(unsafe { quipu_capi::quipu_set_start(self.set()) })
    }

    fn stop(&mut self) -> Outcome {
        // SAFETY: a set that the library has made, or none.
        checked(unsafe { quipu_capi::quipu_set_stop(self.set()) })
    }

    fn read(&mut self) -> Outcome {
        self.totals()
    }

    fn totals(&mut self) -> Outcome {
        let (set, counts) = (self.set(), &mut self.counts);
        // SAFETY: the array has room for as many as are said.
        checked(unsafe { quipu_capi::quipu_set_read(set, counts.as_mut_ptr(), counts.len()) })
    }

    fn accumulate(&mut self) -> Outcome {
        let (sum, last) = (self.sum.as_mut_ptr(), self.last.as_mut_ptr());
        let readings = self.sum.len();
        // SAFETY: both arrays have room for as many as are said.
        checked(unsafe { quipu_capi::quipu_set_accumulate(self.set(), sum, last, readings) })
    }
}

/// The functions of `raw.c`.
pub(crate) struct Raw {
    open: extern "C" fn(c_int, c_int) -> c_int,
    start: extern "C" fn() -> c_int,
    stop: extern "C" fn() -> c_int,
    read: extern "C" fn() -> c_int,
    read_mapped: extern "C" fn() -> c_int,
    has_times: extern "C" fn() -> c_int,
    close: extern "C" fn(),
}

impl Raw {
    /// Compiles `raw.c` if that was not done yet, and loads it.
    pub(crate) fn load() -> Result<Self, Refusal> {
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/calls/raw.c");
        let bench = std::env::current_exe().map_err(|error| error.to_string())?;
        let object = bench.with_extension("raw.so");
        if !object.exists() {
            let compiler = Command::new("cc")
                .args(["-std=gnu11", "-O2", "-shared", "-fPIC", source, "-o"])
                .arg(&object)
                .status();
            if !compiler.is_ok_and(|status| status.success()) {
                return Err("there is no C compiler".into());
            }
        }
        let path =
            CString::new(object.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
        // SAFETY: a path; the object has no initializers.
        let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        let find = |name: &CStr| -> Result<*mut c_void, Refusal> {
            // SAFETY: `dlsym` takes a null handle too, and finds nothing of ours then.
            let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
            match handle.is_null() || found.is_null() {
                true => Err(format!("{} cannot be loaded", object.display()).into()),
                false => Ok(found),
            }
        };
        let call =
            |name| -> Result<extern "C" fn() -> c_int, Refusal> {
                // SAFETY: the functions of that source without arguments return an int.
                Ok(unsafe {
                    std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(find(name)?)
                })
            };
        // SAFETY: the types of these two in that source.
        unsafe {
            Ok(Self {
                open: std::mem::transmute::<*mut c_void, extern "C" fn(c_int, c_int) -> c_int>(
                    find(c"raw_open")?,
                ),
                close: std::mem::transmute::<*mut c_void, extern "C" fn()>(find(c"raw_close")?),
                start: call(c"raw_start")?,
                stop: call(c"raw_stop")?,
                read: call(c"raw_read")?,
                read_mapped: call(c"raw_read_mapped")?,
                has_times: call(c"raw_has_times")?,
            })
        }
    }
}

impl Raw {
    /// Returns true if the mapped pages of the open counters tell times.
    pub(crate) fn has_times(&self) -> bool {
        (self.has_times)() != 0
    }
}

fn made(returned: c_int) -> Outcome {
    match returned {
        0 => Ok(()),
        _ => Err(std::io::Error::last_os_error().to_string().into()),
    }
}

impl Contender for Raw {
    fn open(&mut self, kind: Kind, events: usize) -> Outcome {
        made((self.open)(
            matches!(kind, Kind::Hardware).into(),
            events as c_int,
        ))
    }

    fn close(&mut self) {
        (self.close)();
    }

    fn start(&mut self) -> Outcome {
        made((self.start)())
    }

    fn stop(&mut self) -> Outcome {
        made((self.stop)())
    }

    fn read(&mut self) -> Outcome {
        made((self.read)())
    }

    fn totals(&mut self) -> Outcome {
        self.read()
    }
}

/// The bare loop over the mapped pages, in the place of reads.
struct Mapped(Raw);

impl Contender for Mapped {
    fn open(&mut self, kind: Kind, events: usize) -> Outcome {
        self.0.open(kind, events)
    }

    fn close(&mut self) {
        self.0.close();
    }

    fn start(&mut self) -> Outcome {
        self.0.start()
    }

    fn stop(&mut self) -> Outcome {
        self.0.stop()
    }

    fn read(&mut self) -> Outcome {
        match (self.0.read_mapped)() {
            0 => Ok(()),
            _ => Err("the counters cannot be read in user space".into()),
        }
    }

    fn totals(&mut self) -> Outcome {
        self.read()
    }
}
