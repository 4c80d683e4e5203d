//! A chosen CPU's table on another CPU: `--cpu` when counting.

use quipu_events_format::SCHEMES;
use quipu_hal::{CpuIdentity, Error, ErrorKind, Result, Scheme};

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
        if own == Some(table.scheme()) {
            return Ok(table.on_machine(core.machine(false, None)));
        }
        let this = describe(&core.identity);
        let takes = match own {
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
        CpuIdentity::X86 {
            vendor,
            family,
            model,
            ..
        } => match (vendor.as_str(), *family) {
            ("GenuineIntel", 5) => Some(Scheme::P5),
            // From Core Solo (model 0xE) on, performance monitoring is architectural.
            ("GenuineIntel", 6) if *model < 0xe => Some(Scheme::P6),
            // Family 15 is NetBurst, whose counters are unlike any others.
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

fn name(scheme: Scheme) -> &'static str {
    let known = SCHEMES.iter().find(|(_, known)| *known == scheme);
    match (known, scheme) {
        (Some(&(name, _)), _) | (None, Scheme::Other(name)) => name,
        _ => "another scheme",
    }
}
