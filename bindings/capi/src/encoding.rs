//! From names to bits and back, for any CPU of the database.

use std::ffi::{c_char, c_int};

use quipu_events::Interface;
use quipu_hal::{
    Armv8Event, Encoding, ExtraRegister, FixedCounter, P5Function, PerfConfig, X86Select,
};

use crate::boundary::{self, Versioned, check_array};
use crate::cpu::{quipu_cpu, with_cpu};
use crate::failure::Failure;
use crate::names::counters;
use crate::quipu_status;

/// The interface that bits are for.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_interface {
    /// Linux's perf_event_open(2).
    QUIPU_FOR_LINUX = 0,
    /// OpenBSD's pctr(4).
    QUIPU_FOR_PCTR = 1,
    /// The registers themselves.
    QUIPU_FOR_MSR = 2,
}

/// The meaning of the words of a quipu_encoding.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum quipu_encoding_form {
    /// perf_event_attr's `type` and `config` to `config3`. Filters are elsewhere in that struct.
    QUIPU_PERF = 1,
    /// An x86 event select word in `config`, and an extra register.
    QUIPU_X86_SELECT = 2,
    /// A Pentium function in `config`.
    QUIPU_P5_FUNCTION = 3,
    /// A fixed counter: `type` is its number, `config` its control bits.
    QUIPU_FIXED_COUNTER = 4,
    /// An ARMv8 event type register in `config`.
    QUIPU_ARMV8_EVENT = 5,
}

/// The bits that program an event. Set `size` first (QUIPU_INIT).
#[repr(C)]
#[derive(Clone, Copy)]
pub struct quipu_encoding {
    /// sizeof (quipu_encoding).
    pub size: usize,
    /// The meaning of the words: a quipu_encoding_form.
    pub form: u32,
    /// See quipu_encoding_form.
    pub r#type: u32,
    /// See quipu_encoding_form.
    pub config: u64,
    /// See quipu_encoding_form.
    pub config1: u64,
    /// See quipu_encoding_form.
    pub config2: u64,
    /// See quipu_encoding_form.
    pub config3: u64,
    /// The value of the extra register.
    pub extra_value: u64,
    /// The extra register it needs, or 0.
    pub extra_register: u32,
    /// QUIPU_PERF: the accesses that a breakpoint counts (`bp_type`); its address and length are `config1` and `config2`.
    pub bp_type: u32,
    /// Which general counters can count it, a bit each; all ones when any can. Not read for decoding.
    pub general_counters: u64,
    /// Which fixed counters can count it, a bit each. Not read for decoding.
    pub fixed_counters: u64,
}

// SAFETY: integers, for all of which zero is a value.
unsafe impl Versioned for quipu_encoding {
    const FIRST_SIZE: usize = size_of::<Self>();
    fn size(&mut self) -> &mut usize {
        &mut self.size
    }
}

impl quipu_encoding {
    fn new(encoding: &Encoding) -> Result<Self, Failure> {
        use quipu_encoding_form::*;

        let mut out: Self = boundary::zeroed();
        let form = match encoding {
            Encoding::Perf(perf) => {
                out.r#type = perf.type_;
                out.config = perf.config;
                (out.config1, out.config2, out.config3) =
                    (perf.config1, perf.config2, perf.config3);
                out.bp_type = perf.bp_type;
                QUIPU_PERF
            }
            Encoding::X86(word) => {
                out.config = word.select;
                if let Some(extra) = word.extra.first() {
                    (out.extra_register, out.extra_value) = (extra.address, extra.value);
                }
                QUIPU_X86_SELECT
            }
            Encoding::P5(function) => {
                out.config = function.0.into();
                QUIPU_P5_FUNCTION
            }
            Encoding::Fixed(counter) => {
                out.r#type = counter.index.into();
                out.config = counter.control.into();
                QUIPU_FIXED_COUNTER
            }
            Encoding::Armv8(event) => {
                out.config = event.0.into();
                QUIPU_ARMV8_EVENT
            }
            other => {
                let reason = format!("there is no form for {other:?}");
                return Err(Failure::invalid("hand out an encoding", reason));
            }
        };
        out.form = form as u32;
        Ok(out)
    }

    fn as_encoding(&self) -> Result<Encoding, Failure> {
        let too_large = |_| Failure::invalid("read an encoding", "its bits do not fit its form");
        Ok(match self.form {
            1 => Encoding::Perf(
                PerfConfig::new(self.r#type, self.config)
                    .with_config1(self.config1)
                    .with_config2(self.config2)
                    .with_config3(self.config3)
                    .with_bp_type(self.bp_type),
            ),
            2 => {
                let extra = ExtraRegister {
                    address: self.extra_register,
                    value: self.extra_value,
                };
                Encoding::X86(X86Select {
                    select: self.config,
                    extra: match extra.address {
                        0 => Vec::new(),
                        _ => vec![extra],
                    },
                })
            }
            3 => Encoding::P5(P5Function(self.config.try_into().map_err(too_large)?)),
            4 => Encoding::Fixed(FixedCounter {
                index: self.r#type.try_into().map_err(too_large)?,
                control: self.config.try_into().map_err(too_large)?,
            }),
            5 => Encoding::Armv8(Armv8Event(self.config.try_into().map_err(too_large)?)),
            other => {
                let reason = format!("there is no form {other}");
                return Err(Failure::invalid("read an encoding", reason));
            }
        })
    }
}

/// Finds the bits of an event for a quipu_interface, on any CPU of the database: this machine need not
/// have it. `event` is one event as quipu_set_add() takes it, modifiers included.
///
/// For QUIPU_FOR_LINUX they are those that are really opened: the kernel's own numbers for generalized events
/// ("page-faults" is type 1, config 2, "cycles" type 0, config 0) and breakpoints, those of the kernel of this machine for
/// tracepoints, probes and events of PMUs ("sched:sched_switch", "cpu/event=0xc0/"). The `config1` of a probe is the address
/// of the name of its function or file, and 0 here; inherited, it is a tracepoint that is made when it is opened. The event
/// of the CPU that "cycles" is has a name, quipu_name_info.stands_for, and the bits of that.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_encode(
    cpu: *mut quipu_cpu,
    event: *const c_char,
    interface: u32,
    out: *mut quipu_encoding,
) -> quipu_status {
    with_cpu(cpu, |cpu| {
        // SAFETY: the caller's promise.
        let event = unsafe { boundary::text(event, "event") }?;
        let interface = match interface {
            0 => Interface::Linux,
            1 => Interface::Pctr,
            2 => Interface::Msr,
            other => {
                let reason = format!("there is no interface {other}");
                return Err(Failure::invalid("encode an event", reason));
            }
        };
        let spec = quipu_text::parse_spec(event, &cpu.table.events_for(interface))?;
        let encoded = quipu::encode(&cpu.table, &spec, interface)?;
        let mut encoding = quipu_encoding::new(&encoded.encoding)?;
        (encoding.general_counters, encoding.fixed_counters) = counters(encoded.slots);
        // SAFETY: the caller's promise.
        unsafe { boundary::write_versioned(out, encoding, "out") }
    })
}

/// Finds a name that encodes to these bits on a CPU, and writes it to the `size` bytes at `name`, with a
/// NUL at its end. `levels` becomes where it counts, a sum of quipu_filter, or -1 where the bits do not
/// say; it may be null.
///
/// Returns QUIPU_EEVENT when the CPU has no such event, QUIPU_EINVAL when `name` is too short.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn quipu_decode(
    cpu: *mut quipu_cpu,
    encoding: *const quipu_encoding,
    name: *mut c_char,
    size: usize,
    levels: *mut c_int,
) -> quipu_status {
    with_cpu(cpu, |cpu| {
        // SAFETY: the caller's promise.
        let encoding = unsafe { boundary::read_versioned(encoding, "encoding") }?;
        let decoded = cpu.table.decode(&encoding.as_encoding()?)?;
        if decoded.name.len() >= size {
            let needed = decoded.name.len() + 1;
            return Err(Failure::invalid(
                "write the name of an event",
                format!("it takes {needed} bytes and there are {size}"),
            ));
        }
        check_array(name, size, "name")?;
        // SAFETY: `name` has `size` bytes by the caller's promise, one more at least than is copied.
        unsafe {
            let bytes = decoded.name.as_ptr();
            bytes.copy_to_nonoverlapping(name.cast(), decoded.name.len());
            name.add(decoded.name.len()).write(0);
        }
        if !levels.is_null() {
            let known = decoded.levels.map_or(-1, |levels| levels.bits().into());
            // SAFETY: the caller's promise.
            unsafe { boundary::write(levels, known, "levels") }?;
        }
        Ok(())
    })
}
