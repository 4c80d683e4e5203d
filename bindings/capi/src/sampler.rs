//! Samples: where events happen, handed out to a function of the caller's.

use std::ffi::{c_char, c_int, c_void};
use std::ptr;

use quipu::{Error, ErrorKind, SampleRate, Sampler};

use crate::boundary::{self, Versioned, borrow, guarded};
use crate::config::{Config, quipu_config};
use crate::failure::Failure;
use crate::handle::HandleTable;
use crate::quipu_status;

/// Samples being taken of events on a target. A handle, not an address. One thread at a time may use it,
/// any thread; a second meanwhile gets QUIPU_EINUSE.
pub struct quipu_sampler {
    _opaque: (),
}

static SAMPLERS: HandleTable<Sampling> = HandleTable::new(9, "sampler");

/// An open sampler, and the callers of the sample that is being handed out.
struct Sampling {
    sampler: Sampler,
    callers: Vec<quipu_caller>,
}

/// Optional contents of samples; several are added.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_sampling_flag {
    /// The callers, found by following frame pointers.
    QUIPU_CALL_CHAINS = 1,
    /// The address that the event is about: the page that was missing, the data that a breakpoint
    /// watches.
    QUIPU_ADDRESSES = 2,
}

/// The rate and contents of samples. Set `size` first (QUIPU_INIT); everything zero is 1000 samples a second,
/// or as many as the system takes at present if these are fewer.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_sampling {
    /// sizeof (quipu_sampling).
    pub size: usize,
    /// Once in so many events; 1 takes each of them. 0 where `frequency` says how often.
    pub period: u64,
    /// So many times a second, for which the period is adjusted. 0 where `period` says how often.
    pub frequency: u64,
    /// Bytes of room for samples in each part of the target, 0 for 512 KiB.
    pub room: usize,
    /// After how many samples a descriptor becomes readable; 0 is when the room is half full.
    pub wake_after: u32,
    /// Sum of quipu_sampling_flag.
    pub flags: u32,
}

// SAFETY: integers, for all of which zero is a value.
unsafe impl Versioned for quipu_sampling {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

/// Properties of a sample or a caller; several are added.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_sample_flag {
    /// The address of the instruction is one of the kernel.
    QUIPU_SAMPLE_IN_KERNEL = 1,
    /// There is an address that the event is about.
    QUIPU_SAMPLE_HAS_ADDRESS = 2,
}

/// A caller in a call chain. It does not grow, so that arrays of it stay what they are.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct quipu_caller {
    /// The address that the call returns to: the instruction after the call.
    pub return_address: u64,
    /// Sum of quipu_sample_flag.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// One sample. The library sets `size`; what a later one adds comes at the end.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_sample {
    /// sizeof (quipu_sample) as the library knows it.
    pub size: usize,
    /// The address of the instruction.
    pub ip: u64,
    /// When it was taken, in nanoseconds of a clock that never goes back.
    pub time: u64,
    /// The number of events it stands for; 0 where the counter jumped, so that it is not known.
    pub period: u64,
    /// The address that the event is about (QUIPU_SAMPLE_HAS_ADDRESS), or 0.
    pub address: u64,
    /// The callers of the function of `ip`, the innermost first (QUIPU_CALL_CHAINS), or null.
    pub callers: *const quipu_caller,
    /// The number of callers at `callers`.
    pub caller_count: usize,
    /// The position of the event among those asked for, from 0.
    pub event: u32,
    /// The CPU.
    pub cpu: u32,
    /// The process.
    pub pid: c_int,
    /// The thread.
    pub tid: c_int,
    /// Sum of quipu_sample_flag.
    pub flags: u32,
    /// Zero.
    pub reserved: u32,
}

/// Takes one sample, which is there for as long as the call lasts; `data` is what quipu_sampler_drain()
/// was given. It must return, and may call this library, but for the same sampler.
pub type quipu_sample_fn =
    Option<unsafe extern "C" fn(sample: *const quipu_sample, data: *mut c_void)>;

const ATTEMPTED: &str = "take samples";

fn flag(set: bool, flag: quipu_sample_flag) -> u32 {
    if set { flag as u32 } else { 0 }
}

impl quipu_sampling {
    /// Returns the rate that events are sampled at, or `None` if it is left open.
    fn rate(&self) -> Result<Option<SampleRate>, Failure> {
        match (self.period, self.frequency) {
            (0, 0) => Ok(None),
            (period, 0) => Ok(Some(SampleRate::Period(period))),
            (0, frequency) => Ok(Some(SampleRate::Frequency(frequency))),
            _ => Err(Failure::invalid(
                ATTEMPTED,
                "both a period and a frequency are given",
            )),
        }
    }

    fn has(&self, flag: quipu_sampling_flag) -> bool {
        self.flags & flag as u32 != 0
    }
}

/// # Safety
/// `how` is null or points to a struct whose size is set.
unsafe fn sampling(how: *const quipu_sampling) -> Result<quipu_sampling, Failure> {
    const KNOWN: u32 = quipu_sampling_flag::QUIPU_ADDRESSES as u32 * 2 - 1;
    let how = match how.is_null() {
        true => boundary::zeroed(),
        // SAFETY: the caller's promise.
        false => unsafe { boundary::read_versioned(how, "how") }?,
    };
    match how.flags & !KNOWN {
        0 => Ok(how),
        unknown => Err(Failure::invalid(
            ATTEMPTED,
            format!("there are no flags {unknown:#x}"),
        )),
    }
}

fn open(config: Config, events: &str, how: &quipu_sampling) -> Result<Sampler, Failure> {
    if config.user_mode_fallback {
        let reason = "QUIPU_USER_FALLBACK is for event sets; ask for user mode by \":u\"";
        return Err(Failure::invalid(ATTEMPTED, reason));
    }
    if config.is_simulated {
        let error = Error::new(ErrorKind::UnsupportedFeature, ATTEMPTED)
            .with_reason("a simulated PMU counts and takes no samples");
        return Err(error.into());
    }
    let mut builder = Sampler::builder();
    if let Some(machine) = config.machine {
        builder.machine(machine);
    }
    builder
        .events(events)?
        .target(config.target)
        .inherit(config.attributes.inherit)
        .inherit_thread(config.attributes.inherit_thread)
        .pinned(config.attributes.pinned)
        .exclusive(config.attributes.exclusive)
        .enable_on_exec(config.attributes.enable_on_exec)
        .remove_on_exec(config.attributes.remove_on_exec)
        .call_chains(how.has(quipu_sampling_flag::QUIPU_CALL_CHAINS))
        .addresses(how.has(quipu_sampling_flag::QUIPU_ADDRESSES));
    if let Some(rate) = how.rate()? {
        builder.rate(rate);
    }
    if how.room != 0 {
        builder.room(how.room);
    }
    if how.wake_after != 0 {
        builder.wake_after(how.wake_after);
    }
    let Some(backends) = config.backends else {
        return Ok(builder.open()?);
    };
    let mut refused = None;
    for backend in backends {
        match builder.backend(backend.name()).open() {
            Ok(sampler) => return Ok(sampler),
            Err(error) => refused = refused.or(Some(error)),
        }
    }
    refused.map_or_else(|| Ok(builder.open()?), |error| Err(error.into()))
}

/// Opens a sampler, which takes no samples until it is started. `events` is as for quipu_set_add(), without
/// groups; a null `config` is the calling thread, a null `how` 1000 samples a second of each
/// event. quipu_sampler_close() closes it.
///
/// Returns QUIPU_EFEATURE where no backend samples, or those of `config` do not; else why the backend
/// refuses. QUIPU_USER_FALLBACK is QUIPU_EINVAL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sampler_open(
    config: *const quipu_config,
    events: *const c_char,
    how: *const quipu_sampling,
    out: *mut *mut quipu_sampler,
) -> quipu_status {
    guarded(|| {
        // SAFETY: the caller's promise.
        let config = unsafe { Config::read(config) }?;
        // SAFETY: the caller's promise.
        let events = unsafe { boundary::text(events, "events") }?;
        // SAFETY: the caller's promise.
        let how = unsafe { sampling(how) }?;
        boundary::check_pointer(out, "out")?;
        let sampling = Sampling {
            sampler: open(config, events, &how)?,
            callers: Vec::new(),
        };
        // SAFETY: the caller's promise.
        unsafe { boundary::export(&SAMPLERS, sampling, out) }
    })
}

/// Starts sampling.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sampler_start(sampler: *mut quipu_sampler) -> quipu_status {
    guarded(|| Ok(borrow(&SAMPLERS, sampler)?.sampler.enable()?))
}

/// Stops sampling. What was taken can still be drained.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sampler_stop(sampler: *mut quipu_sampler) -> quipu_status {
    guarded(|| Ok(borrow(&SAMPLERS, sampler)?.sampler.disable()?))
}

/// Says which descriptors to wait on: poll(2) finds one readable when samples are to be drained, and
/// hung up when the thread it is of has ended. There is one for each part of the target. They are the
/// sampler's, and closed with it.
///
/// `fds` has room for `room` of them, or is null; `count` becomes how many there are, and where that is
/// more than `room`, nothing else is written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sampler_descriptors(
    sampler: *mut quipu_sampler,
    fds: *mut c_int,
    room: usize,
    count: *mut usize,
) -> quipu_status {
    guarded(|| {
        let borrowed = borrow(&SAMPLERS, sampler)?;
        let known = descriptors(&borrowed.sampler);
        if !fds.is_null() && known.len() <= room {
            boundary::check_array(fds, room, "fds")?;
            for (at, fd) in known.iter().enumerate() {
                // SAFETY: there are no more than `room`, by the caller's promise.
                unsafe { fds.add(at).write(*fd) };
            }
        }
        // SAFETY: the caller's promise.
        unsafe { boundary::write(count, known.len(), "count") }
    })
}

#[cfg(unix)]
fn descriptors(sampler: &Sampler) -> Vec<c_int> {
    use std::os::fd::AsRawFd;

    sampler.descriptors().map(|fd| fd.as_raw_fd()).collect()
}

#[cfg(not(unix))]
fn descriptors(_: &Sampler) -> Vec<c_int> {
    Vec::new()
}

/// Hands out the samples taken since the last time, one call of `each` for each, and makes room for
/// others. Each part of the target hands out its own in the order of their times, one part after the
/// other.
///
/// Returns QUIPU_EOS when the kernel wrote something that is no record; what was taken so far is given up
/// then.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sampler_drain(
    sampler: *mut quipu_sampler,
    each: quipu_sample_fn,
    data: *mut c_void,
) -> quipu_status {
    guarded(|| {
        let each = each.ok_or_else(|| Failure::invalid(ATTEMPTED, "the argument each is null"))?;
        let mut borrowed = borrow(&SAMPLERS, sampler)?;
        let Sampling { sampler, callers } = &mut *borrowed;
        Ok(sampler.drain(|sample| {
            callers.clear();
            callers.extend(sample.callers.iter().map(|caller| quipu_caller {
                return_address: caller.return_address,
                flags: flag(caller.in_kernel, quipu_sample_flag::QUIPU_SAMPLE_IN_KERNEL),
                reserved: 0,
            }));
            let has_address = sample.address.is_some();
            let sample = quipu_sample {
                size: size_of::<quipu_sample>(),
                ip: sample.ip,
                time: sample.time,
                period: sample.period,
                address: sample.address.unwrap_or(0),
                callers: match callers.is_empty() {
                    true => ptr::null(),
                    false => callers.as_ptr(),
                },
                caller_count: callers.len(),
                event: sample.event as u32,
                cpu: sample.cpu,
                pid: sample.pid,
                tid: sample.tid,
                flags: flag(sample.in_kernel, quipu_sample_flag::QUIPU_SAMPLE_IN_KERNEL)
                    | flag(has_address, quipu_sample_flag::QUIPU_SAMPLE_HAS_ADDRESS),
                reserved: 0,
            };
            // SAFETY: the caller's function, with a sample that lives as long as the call.
            unsafe { each(&sample, data) };
        })?)
    })
}

/// Says how many samples were lost so far because room was not made in time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sampler_lost(
    sampler: *mut quipu_sampler,
    out: *mut u64,
) -> quipu_status {
    guarded(|| {
        let lost = borrow(&SAMPLERS, sampler)?.sampler.lost();
        // SAFETY: the caller's promise.
        unsafe { boundary::write(out, lost, "out") }
    })
}

/// Closes a sampler and gives everything back. A null `sampler` is nothing to close.
///
/// Returns QUIPU_EHANDLE when it was closed before, QUIPU_EINUSE while it is in a call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_sampler_close(sampler: *mut quipu_sampler) -> quipu_status {
    boundary::close(&SAMPLERS, sampler)
}
