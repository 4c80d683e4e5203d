//! A chosen CPU's table on another CPU: `--cpu` when counting.

use quipu_events_format::{SCHEMES, isa_of};
use quipu_hal::{CpuIdentity, CpuModel, Error, ErrorKind, Result, Scheme};

use super::{Core, describe};
use crate::cpu_table::CpuTable;
use crate::database::Database;

impl Database {
    /// Returns the table of a CPU by id, to count with on `core` as if it were that CPU.
    ///
    /// A CPU that the database does not know may have the events of its nearest relative. The counters stay
    /// those of the core.
    ///
    /// # Errors
    /// As [`cpu`](Self::cpu); [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) when the core takes
    /// its events in another scheme, so that the table's bits have another meaning on it.
    pub fn cpu_for_core(&self, id: &str, core: &Core) -> Result<CpuTable> {
        let table = self.cpu(id)?;
        let own = scheme(&core.identity);
        if own == Some(table.scheme()) && speak_of_one_driver(&core.identity, table.model()) {
            return Ok(table.on_core(core.facts(false, None)));
        }
        let this = describe(&core.identity);
        let takes = match own {
            Some(own) if own == table.scheme() => {
                format!("this CPU ({this}) takes the numbers of another driver")
            }
            Some(own) => format!("this CPU ({this}) takes {}", name(own)),
            None => format!("it is not known what this CPU ({this}) takes"),
        };
        Err(Error::new(
            ErrorKind::UnsupportedFeature,
            format!("count with the events of {id}"),
        )
        .with_reason(format!(
            "they are encoded as {}, and {takes}",
            name(table.scheme())
        ))
        .with_hint(format!(
            "`quipu encode NAME --cpu {id}` and `quipu list native --cpu {id}` work on any machine"
        )))
    }
}

/// Returns the scheme that a CPU takes its events in, as far as its identity tells.
fn scheme(identity: &CpuIdentity) -> Option<Scheme> {
    match identity {
        CpuIdentity::Arm { .. } => Some(Scheme::Armv8),
        CpuIdentity::Other { scheme, .. } => isa_of(scheme).map(|_| Scheme::Perf),
        CpuIdentity::X86 {
            vendor,
            family,
            model,
            ..
        } => match (vendor.as_str(), *family) {
            ("GenuineIntel", 5) => Some(Scheme::P5),
            // From Core Solo (model 0xE) on, performance monitoring is architectural.
            ("GenuineIntel", 6) if *model < 0xe => Some(Scheme::P6),
            // Family 11 is Knights Corner; its words are those of the P6, in other registers.
            ("GenuineIntel", 11) => Some(Scheme::P6),
            // Family 15 is NetBurst, whose counters are unlike any others: Linux's driver has numbers for them.
            ("GenuineIntel", 15) => Some(Scheme::Perf),
            ("GenuineIntel", 6 | 16..) | ("CentaurHauls" | "  Shanghai  ", _) => {
                Some(Scheme::IntelArchitectural)
            }
            ("AuthenticAMD", 6..0x10) => Some(Scheme::AmdK7),
            ("AuthenticAMD" | "HygonGenuine", 0x10..) => Some(Scheme::Amd10h),
            _ => None,
        },
        _ => None,
    }
}

/// Returns true unless the numbers of a table are for the Linux driver of another architecture.
fn speak_of_one_driver(own: &CpuIdentity, table: &CpuModel) -> bool {
    match (own, &table.identity) {
        (CpuIdentity::Other { scheme: own, .. }, CpuIdentity::Other { scheme, .. }) => {
            own == scheme
        }
        (CpuIdentity::Other { .. }, _) | (_, CpuIdentity::Other { .. }) => false,
        _ => true,
    }
}

fn name(scheme: Scheme) -> &'static str {
    let known = SCHEMES.iter().find(|(_, known)| *known == scheme);
    match (known, scheme) {
        (Some(&(name, _)), _) | (None, Scheme::Other(name)) => name,
        _ => "another scheme",
    }
}
