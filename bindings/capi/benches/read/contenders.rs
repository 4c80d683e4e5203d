//! The contenders: programs and closures that read.

use std::ffi::{CStr, CString, c_int, c_void};
use std::path::Path;
use std::process::Command;
use std::time::Instant;
use std::{env, fs};

use quipu::{Count, Counts, EventSet};
use tempfile::TempDir;

/// One way to read: opened, timed over some reads, closed.
pub(crate) trait Contender {
    fn name(&self) -> &'static str;
    fn open(&mut self) -> Result<(), String>;
    /// Nanoseconds a read takes; no positive number when one fails.
    fn read(&mut self, times: u32) -> f64;
    fn close(&mut self);
}

struct Rust {
    totals: bool,
    open: Option<(EventSet, Counts)>,
}

impl Contender for Rust {
    fn name(&self) -> &'static str {
        match self.totals {
            true => "Rust, totals",
            false => "Rust, parts",
        }
    }

    fn open(&mut self) -> Result<(), String> {
        let open = || -> quipu::Result<_> {
            let mut set = EventSet::builder().events(EVENTS)?.open()?;
            set.enable()?;
            let counts = set.counts();
            Ok((set, counts))
        };
        self.open = Some(open().map_err(|error| error.to_string())?);
        Ok(())
    }

    fn read(&mut self, times: u32) -> f64 {
        let Some((set, counts)) = &mut self.open else {
            return f64::NAN;
        };
        let start = Instant::now();
        for _ in 0..times {
            if set.read(counts).is_err() {
                return f64::NAN;
            }
            if self.totals {
                for event in counts.events() {
                    if !matches!(std::hint::black_box(event.total()), Ok(Count::Exact(_))) {
                        return f64::NAN;
                    }
                }
            } else {
                for event in counts.events() {
                    let Ok(parts) = event.parts() else {
                        return f64::NAN;
                    };
                    for (_, reading) in parts {
                        std::hint::black_box(*reading);
                    }
                }
            }
        }
        start.elapsed().as_nanos() as f64 / f64::from(times)
    }

    fn close(&mut self) {
        self.open = None;
    }
}

/// The events of `five_events.h`.
const EVENTS: &str =
    "{task-clock:u,page-faults:u,context-switches:u,cpu-migrations:u,minor-faults:u}";

struct C {
    name: &'static str,
    open: extern "C" fn() -> c_int,
    read: extern "C" fn(c_int) -> f64,
    close: extern "C" fn(),
}

impl Contender for C {
    fn name(&self) -> &'static str {
        self.name
    }

    fn open(&mut self) -> Result<(), String> {
        match (self.open)() {
            0 => Ok(()),
            _ => Err("its events cannot be opened".into()),
        }
    }

    fn read(&mut self, times: u32) -> f64 {
        (self.read)(times as c_int)
    }

    fn close(&mut self) {
        (self.close)();
    }
}

/// Compiles a contender and loads it, with the function that reads under another name.
fn load(
    dir: &Path,
    name: &'static str,
    source: &str,
    reader: &CStr,
    flags: &[String],
) -> Result<C, String> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let object = dir.join(format!("{}.so", name.replace([' ', ','], "")));
    let output = Command::new("cc")
        .args([
            "-std=c11",
            "-D_DEFAULT_SOURCE",
            "-O2",
            "-shared",
            "-fPIC",
            "-I",
        ])
        .arg(here.join("include"))
        .arg(here.join("benches/read").join(source))
        .args(flags)
        .arg("-o")
        .arg(&object)
        .output()
        .map_err(|error| format!("there is no C compiler: {error}"))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let first = said.lines().find(|line| line.contains("error"));
        return Err(first.unwrap_or("it does not compile").trim().to_owned());
    }
    let path = CString::new(object.as_os_str().as_encoded_bytes()).map_err(|e| e.to_string())?;
    // SAFETY: a path; the object's initializers are those of libquipu or libpapi.
    let handle = unsafe { libc::dlopen(path.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    let find = |name: &CStr| -> Result<*mut c_void, String> {
        // SAFETY: `dlsym` takes a null handle too, and finds nothing of ours then.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if handle.is_null() || found.is_null() {
            return Err(format!("{} cannot be loaded", object.display()));
        }
        Ok(found)
    };
    // SAFETY: these are the functions of the sources beside this file, and their types.
    unsafe {
        Ok(C {
            name,
            open: std::mem::transmute::<*mut c_void, extern "C" fn() -> c_int>(find(
                c"open_events",
            )?),
            read: std::mem::transmute::<*mut c_void, extern "C" fn(c_int) -> f64>(find(reader)?),
            close: std::mem::transmute::<*mut c_void, extern "C" fn()>(find(c"close_events")?),
        })
    }
}

/// The shared library under its installed names, and the flags to link with it.
fn lay_out(dir: &TempDir) -> Result<Vec<String>, String> {
    let bench = env::current_exe().map_err(|error| error.to_string())?;
    let built = bench.with_file_name("libquipu_capi.so");
    for name in ["libquipu.so", "libquipu.so.0.1"] {
        fs::copy(&built, dir.path().join(name))
            .map_err(|error| format!("{}: {error}", built.display()))?;
    }
    let dir = dir.path().display();
    Ok(vec![
        format!("-L{dir}"),
        format!("-Wl,-rpath,{dir}"),
        "-lquipu".into(),
    ])
}

/// Everybody who can read here, and where their objects are.
pub(crate) struct Contenders {
    pub(crate) all: Vec<Box<dyn Contender>>,
    _dir: TempDir,
}

/// Compiles and loads all contenders, and says who is left out.
pub(crate) fn contenders() -> Result<Contenders, String> {
    let dir = tempfile::tempdir().map_err(|error| error.to_string())?;
    let quipu = lay_out(&dir)?;
    let papi = ["-lpapi".to_owned()];
    let mut all: Vec<Box<dyn Contender>> = Vec::new();
    for totals in [true, false] {
        all.push(Box::new(Rust { totals, open: None }));
    }
    for (name, source, reader, flags) in [
        ("C, totals", "quipu_read.c", c"read_totals", &quipu[..]),
        ("C, parts", "quipu_read.c", c"read_parts", &quipu),
        ("PAPI_read", "papi_read.c", c"read_totals", &papi),
    ] {
        match load(dir.path(), name, source, reader, flags) {
            Ok(c) => all.push(Box::new(c)),
            Err(reason) => println!("SKIP {name}: {reason}"),
        }
    }
    all.retain_mut(|contender| match contender.open() {
        Ok(()) => {
            contender.close();
            true
        }
        Err(reason) => {
            println!("SKIP {}: {reason}", contender.name());
            false
        }
    });
    Ok(Contenders { all, _dir: dir })
}
