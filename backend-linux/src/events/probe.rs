//! Probes of the kernel and of programs: the PMUs `kprobe` and `uprobe`.
//!
//! The kernel takes the function or file by a pointer in `config1` and the place in `config2`
//! (`kprobe_func`, `uprobe_path`, `kprobe_addr`, `probe_offset` of perf_event_open(2); since 4.17), and
//! which bit asks for returns from the PMU's `format`.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use quipu_hal::{Error, ErrorKind, Event, EventInfo, Filter, PmuEvent, Probe, Result};

use super::bits::{EventBits, TRACEPOINT_FILTER};
use super::elf_symbol;
use super::placement::{Placement, Resolved};
use crate::machine::sysfs::SysfsPmus;

/// Resolves a probe to the bits of its PMU.
pub(crate) fn resolve(probe: &Probe, pmus: &SysfsPmus) -> Result<Resolved> {
    let attempted = || format!("open {probe}");
    let pmu = if probe.object.is_some() {
        "uprobe"
    } else {
        "kprobe"
    };
    let mut request = PmuEvent::new(pmu);
    if probe.on_return {
        request = request.with("retprobe");
    }
    let mut config = pmus
        .resolve(&request)
        .map_err(|_| {
            Error::new(ErrorKind::UnsupportedFeature, attempted()).with_reason(format!(
                "the kernel has no {pmu} PMU (CONFIG_{}_EVENTS, since Linux 4.17)",
                pmu.to_ascii_uppercase()
            ))
        })?
        .config;
    let text = match &probe.object {
        Some(object) => {
            let object = &*elf_symbol::located(object);
            if probe.on_return && probe.symbol.is_some() && elf_symbol::is_go(object) {
                return Err(Error::new(ErrorKind::UnsupportedEvent, attempted())
                    .with_reason(
                        "a return probe ends Go programs: their runtime moves stacks, and finds the probe's address there",
                    )
                    .with_hint("uprobe counts the calls; a return probe at an offset in the file is set all the same"));
            }
            config.config2 = offset_in_file(probe, object)?;
            Some(c_string(object.as_os_str().as_bytes(), attempted)?)
        }
        None => {
            config.config2 = probe.offset;
            let symbol = probe.symbol.as_ref();
            symbol
                .map(|symbol| c_string(symbol.as_bytes(), attempted))
                .transpose()?
        }
    };
    let occurs_in = match probe.object {
        Some(_) => Filter::USER,
        None => Filter::KERNEL,
    };
    let bits = EventBits::probe(config);
    Ok(Resolved {
        placement: match text {
            Some(text) => Placement::Probe(bits, text),
            None => Placement::Anywhere(bits),
        },
        info: EventInfo::counter(probe.to_string())
            .honouring(TRACEPOINT_FILTER)
            .occurring_in(occurs_in),
    })
}

/// The byte of the file at which a probe is put.
fn offset_in_file(probe: &Probe, object: &Path) -> Result<u64> {
    let Some(symbol) = &probe.symbol else {
        return Ok(probe.offset);
    };
    let start = elf_symbol::file_offset(object, symbol)?;
    start.checked_add(probe.offset).ok_or_else(|| {
        Error::new(ErrorKind::InvalidConfiguration, format!("open {probe}"))
            .with_reason("the offset is beyond the end of any file")
    })
}

fn c_string(bytes: &[u8], attempted: impl Fn() -> String) -> Result<CString> {
    CString::new(bytes).map_err(|_| {
        Error::new(ErrorKind::InvalidConfiguration, attempted())
            .with_reason("the name contains a zero byte")
    })
}

/// Returns the reason why the kernel refused a probe that this process may make.
pub(crate) fn refusal_reason(probe: &Probe, errno: i32) -> Option<(ErrorKind, &'static str)> {
    let in_kernel = probe.object.is_none();
    match errno {
        libc::ENOENT if in_kernel => Some((
            ErrorKind::UnsupportedEvent,
            "the kernel has no such function",
        )),
        libc::ENOENT => Some((ErrorKind::UnsupportedEvent, "there is no such file")),
        libc::EINVAL | libc::EOPNOTSUPP | libc::EILSEQ | libc::ERANGE if in_kernel => Some((
            ErrorKind::UnsupportedEvent,
            "the kernel allows no probe there",
        )),
        libc::EINVAL | libc::EOPNOTSUPP | libc::EIO => Some((
            ErrorKind::UnsupportedEvent,
            "no probe is possible there: it is not the start of an instruction of a regular file",
        )),
        _ => None,
    }
}

/// The event as a probe, if it is one.
pub(crate) fn of(event: &Event) -> Option<&Probe> {
    match event {
        Event::Probe(probe) => Some(probe),
        _ => None,
    }
}
