//! The kernel's static tracepoints, from tracefs.
//!
//! `Documentation/trace/events.rst`: `events/SYSTEM/NAME/id` holds the number that goes into
//! `config` of an event of type `PERF_TYPE_TRACEPOINT`.

pub use quipu_perf_data::{FieldList, FieldValue, TraceField, TraceFormat};

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use quipu_hal::{Error, ErrorKind, Result};

use crate::machine::hint::did_you_mean;
use crate::machine::kernel_file;

/// A mounted tracefs.
///
/// ```
/// use quipu_linux::tracefs::Tracefs;
///
/// match Tracefs::find().and_then(|tracefs| tracefs.format("sched", "sched_switch")) {
///     Ok(format) => println!("{} fields", format.fields().len()),
///     Err(error) => println!("{error:#}"),
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Tracefs {
    root: PathBuf,
}

impl Tracefs {
    /// The tracefs of this machine: at `/sys/kernel/tracing`, `/sys/kernel/debug/tracing`, or where
    /// `/proc/mounts` says.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when it is not mounted,
    /// [`NoPermission`](ErrorKind::NoPermission) when it is and may not be read.
    pub fn find() -> Result<Self> {
        Self::find_under(Path::new("/"))
    }

    /// As [`find`](Self::find), below another directory than `/`.
    ///
    /// # Errors
    /// As [`find`](Self::find).
    pub fn find_under(root: &Path) -> Result<Self> {
        let usual = ["sys/kernel/tracing", "sys/kernel/debug/tracing"];
        let mut places: Vec<PathBuf> = usual.iter().map(|place| root.join(place)).collect();
        let mounts = kernel_file::read(&root.join("proc/mounts")).unwrap_or_default();
        places.extend(mounted(&mounts).map(|place| {
            let relative = place.strip_prefix("/").unwrap_or(&place);
            root.join(relative)
        }));
        let mut denied = None;
        for place in places {
            match place.join("events").read_dir() {
                Ok(_) => return Ok(Self::at(place)),
                // A debugfs that may not be entered does not show whether tracefs is in it.
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
                    denied.get_or_insert((place.join("events"), e));
                }
                Err(_) => {}
            }
        }
        match denied {
            Some((path, e)) => Err(unreadable("read the tracepoints", &path, &e)),
            None => Err(Error::new(ErrorKind::NoSuchDevice, "read the tracepoints")
                .with_reason("tracefs is not mounted")
                .with_hint("as root: mount -t tracefs nodev /sys/kernel/tracing")),
        }
    }

    /// The tracefs mounted here; nothing is checked.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Returns the mount point.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The number of a tracepoint, for `config`.
    ///
    /// # Errors
    /// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) when there is none, with the nearest names
    /// as the hint; [`NoPermission`](ErrorKind::NoPermission).
    pub fn id(&self, system: &str, name: &str) -> Result<u64> {
        let (path, text) = self.read(system, name, "id")?;
        text.parse().map_err(|_| {
            Error::new(ErrorKind::Os, attempted(system, name))
                .with_reason(format!("{} holds no number", path.display()))
        })
    }

    /// The fields of a tracepoint.
    ///
    /// # Errors
    /// As [`id`](Self::id) and [`TraceFormat::parse`].
    pub fn format(&self, system: &str, name: &str) -> Result<TraceFormat> {
        TraceFormat::parse(&self.read(system, name, "format")?.1)
    }

    /// The names of the fields of a tracepoint.
    pub(crate) fn field_names(&self, system: &str, name: &str) -> Result<Vec<String>> {
        let text = self.read(system, name, "format")?.1;
        Ok(TraceFormat::field_names(&text).map(str::to_owned).collect())
    }

    /// A file of a tracepoint, with where it is.
    fn read(&self, system: &str, name: &str, file: &str) -> Result<(PathBuf, String)> {
        let unknown = || self.unknown(attempted(system, name), system, name);
        if !kernel_file::is_component(system) || !kernel_file::is_component(name) {
            return Err(unknown());
        }
        let path = self.events_dir().join(system).join(name).join(file);
        match kernel_file::read(&path) {
            Ok(text) => Ok((path, text)),
            Err(e) if kernel_file::is_missing(&e) => Err(unknown()),
            Err(e) => Err(unreadable(&attempted(system, name), &path, &e)),
        }
    }

    /// The systems that have tracepoints, sorted: `sched`, `syscalls`.
    ///
    /// # Errors
    /// [`NoPermission`](ErrorKind::NoPermission), or when the directory cannot be read.
    pub fn systems(&self) -> Result<Vec<String>> {
        directories(&self.events_dir())
    }

    /// The tracepoints of one system, sorted.
    ///
    /// # Errors
    /// As [`systems`](Self::systems).
    pub fn events(&self, system: &str) -> Result<Vec<String>> {
        directories(&self.events_dir().join(system))
    }

    /// Every tracepoint as (system, name), one system's directory read at a time. Systems that
    /// cannot be read are left out.
    ///
    /// # Errors
    /// As [`systems`](Self::systems).
    pub fn tracepoints(&self) -> Result<impl Iterator<Item = (String, String)> + use<'_>> {
        let systems = self.systems()?.into_iter();
        Ok(systems.flat_map(|system| {
            let events = self.events(&system).unwrap_or_default();
            events.into_iter().map(move |event| (system.clone(), event))
        }))
    }

    fn events_dir(&self) -> PathBuf {
        self.root.join("events")
    }

    fn unknown(&self, attempted: String, system: &str, name: &str) -> Error {
        let error = Error::new(ErrorKind::UnsupportedEvent, attempted);
        let systems = self.systems().unwrap_or_default();
        if systems.iter().any(|s| s == system) {
            let events = self.events(system).unwrap_or_default();
            error
                .with_reason(format!("{system} has no such tracepoint"))
                .with_hint(did_you_mean(name, &events, &format!("{system} has")))
        } else {
            error
                .with_reason("the kernel has no such system of tracepoints")
                .with_hint(did_you_mean(system, &systems, "the systems are"))
        }
    }
}

fn attempted(system: &str, name: &str) -> String {
    format!("find the tracepoint {system}:{name}")
        .escape_debug()
        .to_string()
}

/// The directories in a directory, sorted. Files beside them (`enable`, `filter`) are no events.
fn directories(dir: &Path) -> Result<Vec<String>> {
    let fail = |e: io::Error| unreadable("list the tracepoints", dir, &e);
    let mut names = Vec::new();
    for entry in dir.read_dir().map_err(fail)? {
        let entry = entry.map_err(fail)?;
        // The type is in the directory itself; a stat(2) of each of thousands takes far longer.
        if entry.file_type().is_ok_and(|kind| kind.is_dir())
            && let Ok(name) = entry.file_name().into_string()
        {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

fn unreadable(attempted: &str, path: &Path, e: &io::Error) -> Error {
    let error = kernel_file::error(attempted, path, e);
    match error.kind() {
        ErrorKind::NoPermission => error.with_hint(
            "tracefs is usually readable by root only; run as root, or as root remount it for a \
             group you are in: mount -o remount,mode=755,gid=GROUP /sys/kernel/tracing",
        ),
        _ => error,
    }
}

/// The places in `/proc/mounts` (proc_pid_mounts(5)) where tracefs is, or may be within debugfs.
fn mounted(mounts: &str) -> impl Iterator<Item = PathBuf> + '_ {
    mounts.lines().filter_map(|line| {
        let mut words = line.split(' ');
        let place = words.nth(1)?;
        match words.next()? {
            "tracefs" => Some(unescape(place)),
            "debugfs" => Some(unescape(place).join("tracing")),
            _ => None,
        }
    })
}

/// Takes back the octal escapes of getmntent(3): `\040` for a space, and three others.
fn unescape(place: &str) -> PathBuf {
    let mut bytes = Vec::with_capacity(place.len());
    let mut rest = place.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let escaped = match tail {
            [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..] if first == b'\\' => {
                Some((a - b'0') << 6 | (b - b'0') << 3 | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(escaped.unwrap_or(first));
        rest = if escaped.is_some() { &tail[3..] } else { tail };
    }
    PathBuf::from(OsString::from_vec(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mount_points_are_unescaped() {
        let mounts = "proc /proc proc rw 0 0\n\
                      nodev /mnt/my\\040trace\\134s tracefs rw 0 0\n\
                      d /dbg debugfs rw 0 0\n\
                      x\n\
                      nodev /odd\\9 tracefs rw 0 0\n";
        let places: Vec<PathBuf> = mounted(mounts).collect();
        assert_eq!(
            places,
            ["/mnt/my trace\\s", "/dbg/tracing", "/odd\\9"].map(PathBuf::from)
        );
    }
}
