//! Features of PMUs: their numbers, the CPUs of those of a hybrid machine, and what they are capable of
//! (`HEADER_PMU_MAPPINGS`, `HEADER_HYBRID_TOPOLOGY`, `HEADER_CPU_PMU_CAPS` and `HEADER_PMU_CAPS`,
//! `tools/perf/util/header.c`).

use crate::Result;
use crate::section::{SectionCursor, push_string};

/// The CPUs of a core PMU of a hybrid machine.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PmuCpus {
    /// The PMU's name: `cpu_core`.
    pub pmu: String,
    /// Its CPUs, as `0-3,8`.
    pub cpus: String,
}

/// Capabilities of a core PMU (`/sys/bus/event_source/devices/*/caps`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct PmuCapabilities {
    /// The PMU's name.
    pub pmu: String,
    /// Names and values: `branches` and `32`.
    pub list: Vec<(String, String)>,
}

/// Returns the section of PMUs, if there are any.
pub(crate) fn pmu_section(pmus: &[(u32, String)]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let count = u32::try_from(pmus.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&count.to_ne_bytes());
    for (number, name) in pmus {
        out.extend_from_slice(&number.to_ne_bytes());
        push_string(&mut out, name.as_bytes());
    }
    (!pmus.is_empty()).then_some(out)
}

pub(crate) fn read_pmus(mut cursor: SectionCursor<'_>) -> Result<Vec<(u32, String)>> {
    let count = cursor.u32()?;
    (0..count)
        .map(|_| Ok((cursor.u32()?, cursor.string()?)))
        .collect()
}

pub(crate) fn read_hybrid(mut cursor: SectionCursor<'_>) -> Result<Vec<PmuCpus>> {
    let count = cursor.u32()?;
    let pmus = (0..count).map(|_| {
        let (pmu, cpus) = (cursor.string()?, cursor.string()?);
        Ok(PmuCpus { pmu, cpus })
    });
    pmus.collect()
}

impl PmuCapabilities {
    /// Reads those of the one PMU `cpu`, which are none where the kernel does not tell them.
    pub(crate) fn read_of_cpu(mut cursor: SectionCursor<'_>) -> Result<Self> {
        let pmu = "cpu".to_owned();
        let list = read_list(&mut cursor)?;
        Ok(Self { pmu, list })
    }

    /// Reads those of each PMU that has some.
    pub(crate) fn read_all(mut cursor: SectionCursor<'_>) -> Result<Vec<Self>> {
        let count = cursor.u32()?;
        let pmus = (0..count).map(|_| {
            let list = read_list(&mut cursor)?;
            let pmu = cursor.string()?;
            Ok(Self { pmu, list })
        });
        pmus.collect()
    }
}

fn read_list(cursor: &mut SectionCursor<'_>) -> Result<Vec<(String, String)>> {
    let count = cursor.u32()?;
    (0..count)
        .map(|_| Ok((cursor.string()?, cursor.string()?)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::byte_order::ByteOrder;

    fn section(parts: &[Result<u32, &str>]) -> Vec<u8> {
        let mut out = Vec::new();
        for part in parts {
            match part {
                Ok(number) => out.extend_from_slice(&number.to_ne_bytes()),
                Err(text) => push_string(&mut out, text.as_bytes()),
            }
        }
        out
    }

    fn cursor(section: &[u8]) -> SectionCursor<'_> {
        SectionCursor::new(section, "PMUs", ByteOrder::Native)
    }

    #[test]
    fn the_pmus_of_a_hybrid_machine_have_their_own_cpus_and_capabilities() {
        let hybrid = section(&[
            Ok(2),
            Err("cpu_core"),
            Err("0-15"),
            Err("cpu_atom"),
            Err("16-23"),
        ]);
        let read = read_hybrid(cursor(&hybrid)).expect("whole");
        let read: Vec<_> = read.iter().map(|p| (&*p.pmu, &*p.cpus)).collect();
        assert_eq!(read, [("cpu_core", "0-15"), ("cpu_atom", "16-23")]);
        assert!(read_hybrid(cursor(&hybrid[..hybrid.len() - 1])).is_err());

        let all = section(&[
            Ok(2),
            Ok(2),
            Err("branches"),
            Err("32"),
            Err("max_precise"),
            Err("3"),
            Err("cpu_core"),
            Ok(0),
            Err("cpu_atom"),
        ]);
        let read = PmuCapabilities::read_all(cursor(&all)).expect("whole");
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read,
            [
                PmuCapabilities {
                    pmu: "cpu_core".into(),
                    list: vec![pair("branches", "32"), pair("max_precise", "3")],
                },
                PmuCapabilities {
                    pmu: "cpu_atom".into(),
                    list: vec![],
                },
            ]
        );
        let own = section(&[Ok(1), Err("pmu_name"), Err("skylake")]);
        let read = PmuCapabilities::read_of_cpu(cursor(&own)).expect("whole");
        let pmu_name = vec![pair("pmu_name", "skylake")];
        assert_eq!((&*read.pmu, read.list), ("cpu", pmu_name));
    }
}
