//! The bits by which an event is asked for: of any CPU of the database, and of this machine's kernel.

use quipu_events::{CpuTable, Interface};
use quipu_hal::{
    Encoding, ErrorKind, Event, EventMap, EventSpec, PerfConfig, Result, Scheme, SlotSet,
};

use crate::core_terms::raw_of_terms;

/// The bits of an event for an interface; see [`encode`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Encoded {
    /// The bits.
    pub encoding: Encoding,
    /// The counters that can count it; [`SlotSet::ANY_GENERAL`] where the kernel chooses.
    pub slots: SlotSet,
    /// The errata that affect it.
    pub errata: Vec<String>,
    /// The CPU's own bits of a generalized event that the kernel has numbers for, if they are known.
    pub native: Option<Encoding>,
}

impl Encoded {
    fn of_kernel(words: PerfConfig) -> Self {
        Self {
            encoding: Encoding::Perf(words),
            slots: SlotSet::ANY_GENERAL,
            errata: Vec::new(),
            native: None,
        }
    }
}

/// Returns the bits by which an event is asked for.
///
/// For Linux they are the words of `perf_event_attr` that are really opened: the kernel's own numbers for generalized
/// events, unless an event file defines these, and for breakpoints; the table's for native events; this machine's for
/// what only its kernel knows: tracepoints, probes, and events of PMUs. Terms of the cores' PMU (`cpu/event=0xc0/`) are
/// bits of the CPU, also of an x86 CPU that this machine is not.
///
/// The `config1` of a probe is the address of the name of its function or file, and 0 here. A probe that is inherited is
/// opened as a tracepoint, which is made then.
///
/// ```
/// use quipu::{Interface, encode};
/// use quipu_hal::{Encoding, PerfConfig};
///
/// let zen = quipu::NativeEvents::new().for_cpu("amd-zen4");
/// let table = &zen.tables()?[0];
/// let words = |event| {
///     let spec = quipu::text::parse_spec(event, &zen)?;
///     Ok::<_, quipu::Error>(encode(table, &spec, Interface::Linux)?.encoding)
/// };
/// assert_eq!(words("page-faults")?, Encoding::Perf(PerfConfig::new(1, 2)));
/// assert_eq!(words("cycles")?, Encoding::Perf(PerfConfig::new(0, 0)));
/// assert_eq!(words("ex_ret_instr")?, Encoding::Perf(PerfConfig::new(4, 0xc0)));
/// # Ok::<(), quipu::Error>(())
/// ```
///
/// # Errors
/// [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) if neither the table nor, for Linux, this machine's kernel has the
/// event; [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) if the interface cannot ask for it.
pub fn encode(table: &CpuTable, spec: &EventSpec, interface: Interface) -> Result<Encoded> {
    if let Some(raw) = raw_of_terms(table, &spec.event) {
        let spec = spec.clone().with_event(raw?);
        return encode(table, &spec, interface);
    }
    let map = table.events_for(interface);
    let of_table = || {
        let resolved = map.resolve(&spec.event, spec.filter)?;
        Ok(Encoded {
            encoding: resolved.encoding,
            slots: resolved.slots,
            errata: resolved.info.errata,
            native: None,
        })
    };
    if interface != Interface::Linux {
        return of_table();
    }
    match &spec.event {
        Event::Hardware(_) | Event::Cache(_) if table.user_defined(&spec.event).is_some() => {
            of_table()
        }
        Event::Named(_) => match of_table() {
            Err(refused) if refused.kind() == ErrorKind::UnsupportedEvent => {
                of_this_kernel(spec).map_err(|_| refused)
            }
            other => other,
        },
        Event::Hardware(_) | Event::Cache(_) => {
            let native = match of_table() {
                Ok(native) => Some(native.encoding),
                // Linux has no driver for the counters, whether the table has the event or not.
                Err(error)
                    if error.kind() == ErrorKind::UnsupportedFeature
                        || table.scheme() == Scheme::P5 =>
                {
                    return Err(error);
                }
                Err(_) => None,
            };
            let words = PerfConfig::of(&spec.event).unwrap_or_default();
            Ok(Encoded {
                native,
                ..Encoded::of_kernel(words)
            })
        }
        Event::Raw(_) => of_table(),
        event => match PerfConfig::of(event) {
            Some(words) => Ok(Encoded::of_kernel(words)),
            None => of_this_kernel(spec),
        },
    }
}

/// Returns the words of an event that only the kernel of a machine knows.
fn of_this_kernel(spec: &EventSpec) -> Result<Encoded> {
    cfg_if::cfg_if! {
        if #[cfg(all(feature = "linux", target_os = "linux"))] {
            crate::linux_backend()?.encode(spec).map(Encoded::of_kernel)
        } else {
            Err(quipu_hal::Error::new(ErrorKind::UnsupportedEvent, format!("encode {}", spec.event))
                .with_reason("its numbers are those of a Linux kernel, and this is none"))
        }
    }
}
