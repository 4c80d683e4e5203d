//! Probes that are inherited: made in tracefs, and opened as tracepoints.
//!
//! An attr of the PMUs `kprobe` and `uprobe` points to the name of a function or file. When a thread makes another one, the
//! kernel reads that name again for the inherited event, from the memory and with the rights of the thread that is counted
//! (`perf_kprobe_event_init`, `perf_uprobe_init`, `kernel/events/core.c`, `kernel/trace/trace_event_perf.c`): its fork(2)
//! fails. The attr of a tracepoint is a number, and no right is needed to inherit it
//! (`Documentation/trace/kprobetrace.rst`, `uprobetracer.rst`).

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use quipu_hal::{Attributes, Error, ErrorKind, EventSpec, Probe, Result, Target};

use super::bits::EventBits;
use super::elf_symbol;
use super::placement::Placement;
use super::probe;
use crate::machine::kernel_file;
use crate::machine::tracefs::Tracefs;

/// The files of tracefs that probes are made in.
const CONTROLS: [&str; 2] = ["kprobe_events", "uprobe_events"];

/// The systems of our probes, before the process id.
const SYSTEM: &str = "quipu_";

/// The end of the hints.
const WITHOUT: &str = "or count without inherit (`-i`), which leaves out what the target starts";

/// A probe in tracefs. Dropping it removes it, which the kernel refuses while a counter of it is open.
#[derive(Debug)]
pub(crate) struct TracedProbe {
    /// The file of tracefs that it was made in.
    control: PathBuf,
    /// `SYSTEM/NAME`.
    name: String,
}

/// Makes the probes among events that are to be inherited, and returns the placements with those as tracepoints.
///
/// # Errors
/// When a probe cannot be made. The error names its position, and none is left.
pub(crate) fn make_inheritable<'a>(
    events: impl Iterator<Item = &'a EventSpec>,
    mut placements: Vec<Placement>,
    attributes: Attributes,
    target: &Target,
) -> Result<(Vec<Placement>, Vec<TracedProbe>)> {
    let mut made = Vec::new();
    if !attributes.inherit || !has_threads(target) {
        return Ok((placements, made));
    }
    for (member, (event, placement)) in events.zip(&mut placements).enumerate() {
        if let Some(probe) = probe::of(&event.event)
            && let Some(of_pmu) = placement.first_bits()
        {
            let made_as = TracedProbe::new(probe, of_pmu.config.config2);
            let (probe, id) = made_as.map_err(|e| e.with_member(member))?;
            made.push(probe);
            *placement = Placement::Anywhere(EventBits::tracepoint(id));
        }
    }
    Ok((placements, made))
}

/// Returns true if counters of a target are attached to threads, so that those that they make can inherit them.
fn has_threads(target: &Target) -> bool {
    matches!(
        target,
        Target::CurrentThread | Target::Thread(_) | Target::ThreadOnCpu { .. } | Target::Process(_)
    )
}

impl TracedProbe {
    /// Makes a probe at this offset of its function or file; returns its number as a tracepoint, too.
    fn new(probe: &Probe, offset: u64) -> Result<(Self, u64)> {
        let tracefs = Tracefs::find().map_err(|e| no_tracefs(probe, &e))?;
        static CLEAN: Once = Once::new();
        CLEAN.call_once(|| remove_stale(tracefs.root()));
        let (kernel, user) = (CONTROLS[0], CONTROLS[1]);
        let control = if probe.object.is_some() { user } else { kernel };
        let control = tracefs.root().join(control);
        let (system, event) = unique_name();
        let name = format!("{system}/{event}");
        define(probe, &control, &name, offset)?;
        let made = Self { control, name };
        let id = tracefs.id(&system, &event)?;
        Ok((made, id))
    }
}

impl Drop for TracedProbe {
    fn drop(&mut self) {
        // What is still in use, as by a child that was forked meanwhile, the next process removes.
        let _ = remove(&self.control, &self.name);
    }
}

/// Returns a system and a name that no probe has: the kernel adds a second definition of a name to the first. Process ids
/// are not unique where there are several PID namespaces.
fn unique_name() -> (String, String) {
    static MADE: AtomicU32 = AtomicU32::new(0);
    let made = MADE.fetch_add(1, Ordering::Relaxed);
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.unwrap_or_default().as_nanos();
    let system = format!("{SYSTEM}{}", process::id());
    (system, format!("probe_{now:x}_{made}"))
}

/// Makes a probe by that name.
fn define(probe: &Probe, control: &Path, name: &str, offset: u64) -> Result<()> {
    let refused = |e: io::Error| {
        let error = Error::new(ErrorKind::Os, attempted(probe)).with_io_error(&e);
        let errno = e.raw_os_error().unwrap_or_default();
        match probe::refusal_reason(probe, errno) {
            Some((kind, reason)) => Error::new(kind, attempted(probe))
                .with_errno(errno)
                .with_reason(reason),
            None => error,
        }
    };
    // By its descriptor: the command has no way to quote a path with a space.
    let object = match &probe.object {
        Some(path) => {
            let mut options = OpenOptions::new();
            let options = options.read(true).custom_flags(libc::O_PATH);
            Some(options.open(elf_symbol::located(path)).map_err(refused)?)
        }
        None => None,
    };
    let place = match (&object, &probe.symbol) {
        (Some(object), _) => format!("/proc/self/fd/{}:{offset:#x}", object.as_raw_fd()),
        (None, Some(symbol)) if is_function(symbol) => format!("{symbol}+{offset}"),
        (None, Some(_)) => return Err(refused(io::Error::from_raw_os_error(libc::ENOENT))),
        (None, None) => format!("{offset:#x}"),
    };
    let kind = if probe.on_return { 'r' } else { 'p' };
    let mut file = opened(control).map_err(|e| cannot_write(probe, control, &e))?;
    file.write_all(format!("{kind}:{name} {place}\n").as_bytes())
        .map_err(refused)
}

/// Returns true if a text can be a function of the kernel, and not more words of a command.
fn is_function(symbol: &str) -> bool {
    let of_name = |c: u8| c.is_ascii_alphanumeric() || b"_.$:".contains(&c);
    !symbol.is_empty() && symbol.bytes().all(of_name)
}

/// Opens a file of tracefs for a command. (To truncate it would remove all probes.)
fn opened(control: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).open(control)
}

/// Removes a probe. The kernel refuses it while the probe is in use.
fn remove(control: &Path, name: &str) -> io::Result<()> {
    opened(control)?.write_all(format!("-:{name}\n").as_bytes())
}

/// Removes the probes that processes left behind which were killed.
fn remove_stale(tracefs: &Path) {
    for control in CONTROLS.map(|control| tracefs.join(control)) {
        let listed = kernel_file::read(&control).unwrap_or_default();
        for name in listed.lines().filter_map(|line| stale(line, has_ended)) {
            // One of a process in another PID namespace is in use, and stays.
            let _ = remove(&control, name);
        }
    }
}

/// Returns the name of the probe that a line defines, if it is one of ours and the process that made it has ended.
fn stale(line: &str, has_ended: impl Fn(u32) -> bool) -> Option<&str> {
    let (_, rest) = line.split_once(':')?;
    let name = rest.split(' ').next()?;
    let (system, _) = name.split_once('/')?;
    let pid = system.strip_prefix(SYSTEM)?.parse().ok()?;
    has_ended(pid).then_some(name)
}

/// Returns true if there is no such process, or it is this one, which has made no probe yet.
fn has_ended(pid: u32) -> bool {
    pid == process::id()
        || Path::new("/proc/self").exists() && !Path::new("/proc").join(pid.to_string()).exists()
}

fn attempted(probe: &Probe) -> String {
    format!("open {probe} with inherit")
}

fn no_tracefs(probe: &Probe, error: &Error) -> Error {
    let reason = error.reason().unwrap_or("tracefs cannot be read");
    let hint = error.hint().unwrap_or("run as root");
    Error::new(error.kind(), attempted(probe))
        .with_reason(format!("the probe has to be made in tracefs: {reason}"))
        .with_hint(format!("{hint}, {WITHOUT}"))
}

fn cannot_write(probe: &Probe, control: &Path, e: &io::Error) -> Error {
    let (kind, hint) = match e.kind() {
        io::ErrorKind::PermissionDenied => (ErrorKind::NoPermission, "run as root"),
        _ => (
            ErrorKind::UnsupportedFeature,
            "use a kernel with CONFIG_KPROBE_EVENTS and CONFIG_UPROBE_EVENTS",
        ),
    };
    Error::new(kind, attempted(probe))
        .with_io_error(e)
        .with_reason(format!("writing {}", control.display()))
        .with_hint(format!("{hint}, {WITHOUT}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_probes_of_ours_whose_process_has_ended_are_stale() {
        let ended = |pid| pid == 7;
        for (line, expected) in [
            (
                "p:quipu_7/probe_1_0 /proc/self/fd/5:0x10",
                Some("quipu_7/probe_1_0"),
            ),
            (
                "r16:quipu_7/probe_1_1 vfs_read+0",
                Some("quipu_7/probe_1_1"),
            ),
            ("p:quipu_8/probe_1_0 /proc/self/fd/5:0x10", None),
            ("p:quipu_x/probe /bin/sh:0x10", None),
            ("p:probe_libc/malloc /lib/libc.so.6:0x10 a=%di", None),
            ("p", None),
        ] {
            assert_eq!(stale(line, ended), expected, "{line}");
        }
    }

    #[test]
    fn no_name_of_a_function_becomes_another_command() {
        for name in ["vfs_read", "foo.isra.0", "nf_tables:nft_do_chain", "_RNv$1"] {
            assert!(is_function(name), "{name}");
        }
        for name in ["", "a b", "a\n-:b", "a+1", "a#", "a%return", "a;b", "a\tb"] {
            assert!(!is_function(name), "{name:?}");
        }
    }

    #[test]
    fn names_are_unique_and_of_this_process() {
        let (first, second) = (unique_name(), unique_name());
        assert_eq!(first.0, second.0);
        assert_ne!(first.1, second.1);
        assert!(first.1.len() < 64, "MAX_EVENT_NAME_LEN: {}", first.1);
        let line = format!("p:{}/{} x", first.0, first.1);
        assert_eq!(stale(&line, has_ended), Some(&line[2..line.len() - 2]));
        let init = "p:quipu_1/probe x";
        assert_eq!(stale(init, has_ended), None, "process 1 lives");
    }

    /// Commands as the kernel documents them, written to a file that is not the kernel's.
    #[test]
    fn probes_of_the_kernel_are_defined_by_name_or_address() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let define = |probe: &Probe| define(probe, file.path(), "quipu_1/probe", probe.offset);
        define(&Probe::kernel("vfs_read").at(4)).expect("written");
        define(&Probe::kernel("vfs_read").returning()).expect("written");
        let mut address = Probe::kernel("").at(0xffff_ffff_8100_0000);
        address.symbol = None;
        define(&address).expect("written");
        let refused = define(&Probe::kernel("a b")).expect_err("two words");
        assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
        let written = std::fs::read_to_string(file.path()).expect("text");
        assert_eq!(
            written,
            "p:quipu_1/probe vfs_read+4\n\
             r:quipu_1/probe vfs_read+0\n\
             p:quipu_1/probe 0xffffffff81000000\n"
        );
    }
}
