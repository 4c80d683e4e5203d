//! Events as JSON: Intel's lists (<https://github.com/intel/perfmon>) and those in Linux
//! (`tools/perf/pmu-events/arch`), which have the same keys.
//!
//! Intel's list is one file of core events per CPU, and for some CPUs a matrix of what the offcore response event
//! takes. Linux has several files per CPU. There a key that would be 0 is left out, so is the counter of most
//! lists, and an ARM CPU's events mostly name an architectural one, whose number is in another file.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use quipu_events_format::{Bits, flag};
use serde_json::Value;

use super::offcore_matrix::{self, Matrix};
use super::{Events, Format, nth_number, number, text};

/// The files that have the numbers of ARM's architectural events, and those of RISC-V's firmware.
const ARCHITECTURAL: [&str; 3] = [
    "common-and-microarch.json",
    "recommended.json",
    "riscv-sbi-firmware.json",
];

/// The keys that are read.
const READ: [&str; 17] = [
    "AnyThread",
    "ArchStdEvent",
    "ConfigCode",
    "Counter",
    "CounterMask",
    "Deprecated",
    "EdgeDetect",
    "Equal",
    "Errata",
    "EventCode",
    "EventName",
    "Invert",
    "MSRIndex",
    "MSRValue",
    "UMask",
    "UMaskExt",
    "Unit",
];

/// The keys that change nothing in what is counted, and on which counters: words, and hints for sampling.
const NOT_NEEDED: [&str; 23] = [
    "BriefDescription",
    "CollectPEBSRecord",
    "CounterHTOff",
    "CounterType",
    "Data_LA",
    "ELLC",
    "L1_Hit_Indication",
    "Offcore",
    "Offmodule",
    "PDIR_COUNTER",
    "PDISTCounter",
    "PEBS",
    "PEBScounters",
    "PRECISE_STORE",
    "Precise",
    "ProgrammingRestriction",
    "PublicDescription",
    "RetirementLatencyMax",
    "RetirementLatencyMean",
    "RetirementLatencyMin",
    "SampleAfterValue",
    "Speculative",
    "TakenAlone",
];

/// The keys by which Intel's events are known from AMD's and ARM's.
const INTEL: [&str; 3] = ["SampleAfterValue", "Counter", "MSRIndex"];

/// The units in Linux's lists that are kinds of core of a hybrid CPU, or the counters of an s390.
const CORES: [&str; 3] = ["cpu_core", "cpu_atom", "CPU-M-CF"];

/// The event that the first fixed counter alone counts, beside the one that others count too
/// (`FIXED_EVENT_CONSTRAINT(0x0100, 0)`, arch/x86/events/intel/core.c).
const PRECISE: &str = ".PREC_DIST";

/// The facts that a list leaves unsaid in each of its events.
struct List {
    format: Format,
    is_intel: bool,
    /// The general counters that any event names.
    counters: u32,
    /// The number of the first fixed counter, as the list counts them.
    first_fixed: u8,
}

pub(super) fn read(format: Format, files: &[(&str, Vec<Value>)], events: &mut Events) {
    let (architectural, lists) = architectural(format, files);
    let (matrix, rows): (Vec<&Value>, Vec<&Value>) = lists
        .into_iter()
        .partition(|row| offcore_matrix::is_part(row));
    let rows = core_events(&rows, events);
    let list = List {
        format,
        is_intel: format == Format::IntelPerfmon
            || rows
                .iter()
                .any(|row| INTEL.iter().any(|key| row.get(key).is_some())),
        counters: rows
            .iter()
            .map(|row| general_counters(text(row, "Counter")))
            .fold(0, |all, mask| all | mask),
        first_fixed: rows
            .iter()
            .filter_map(|row| fixed_counter(row))
            .min()
            .unwrap_or(0),
    };
    let combinations = Matrix::new(&matrix, events).combinations(events);
    for row in &rows {
        let name = name(row);
        let corrected = combinations
            .iter()
            .find(|combination| combination.corrects(&name, row))
            .map(|combination| combination.over(row));
        let row = corrected.as_ref().unwrap_or(row);
        match list.bits(row, &architectural) {
            Ok(bits) => events.add(&name, bits, errata(text(row, "Errata"))),
            Err(reason) => events.leave_out(&name, reason),
        }
    }
    let event_of_matrix = rows
        .iter()
        .find(|row| text(row, "EventName").starts_with(offcore_matrix::EVENT));
    for combination in &combinations {
        match event_of_matrix {
            Some(row) => match list.bits(&combination.over(row), &architectural) {
                Ok(bits) => events.add(&combination.name, bits, Vec::new()),
                Err(reason) => events.leave_out(&combination.name, reason),
            },
            None => events.leave_out(&combination.name, "no list has its event"),
        }
    }
}

/// Returns the numbers of ARM's architectural events, and the rows of the other files. Where nothing refers to
/// those events, their files are lists like any other.
fn architectural<'f>(
    format: Format,
    files: &'f [(&str, Vec<Value>)],
) -> (HashMap<&'f str, u64>, Vec<&'f Value>) {
    let rows = || files.iter().flat_map(|(_, rows)| rows);
    let refers =
        format == Format::LinuxPmuEvents && rows().any(|row| !text(row, "ArchStdEvent").is_empty());
    let is_architectural = |(name, _): &&(&str, Vec<Value>)| {
        let file = Path::new(name).file_name();
        refers
            && ARCHITECTURAL
                .iter()
                .any(|known| file.is_some_and(|file| file == *known))
    };
    let (definitions, lists): (Vec<_>, Vec<_>) = files.iter().partition(is_architectural);
    let numbers = definitions
        .iter()
        .flat_map(|(_, rows)| rows)
        .filter_map(|row| {
            let number = number(row, "EventCode").or(number(row, "ConfigCode"));
            Some((text(row, "EventName"), number?))
        })
        .collect();
    (
        numbers,
        lists.into_iter().flat_map(|(_, rows)| rows).collect(),
    )
}

/// Returns the rows that are events of the core. Those of other units are left out, and keys that are not known
/// are told: either may make an event count something else than its name says.
fn core_events<'v>(rows: &[&'v Value], events: &mut Events) -> Vec<&'v Value> {
    let mut units: BTreeMap<&str, usize> = BTreeMap::new();
    let mut unknown: BTreeMap<&str, (String, usize)> = BTreeMap::new();
    let mut core = Vec::new();
    for row in rows {
        // Metrics have no event name.
        let name = name(row);
        if name.is_empty() {
            continue;
        }
        let unit = text(row, "Unit");
        if !unit.is_empty() && !CORES.contains(&unit) {
            *units.entry(unit).or_default() += 1;
            continue;
        }
        for key in row.as_object().into_iter().flat_map(|row| row.keys()) {
            if ![&READ[..], &NOT_NEEDED[..]]
                .concat()
                .contains(&key.as_str())
            {
                unknown.entry(key).or_insert((name.clone(), 0)).1 += 1;
            }
        }
        core.push(*row);
    }
    for (unit, count) in units {
        let unit = unit.escape_debug();
        events.leave_out(&format!("{count} of unit {unit}"), "that is no core");
    }
    for (key, (name, count)) in unknown {
        let key = key.escape_debug();
        let name = name.escape_debug();
        events.tell(format!(
            "the key `{key}` is not known and was not read: {count} have it, {name} first"
        ));
    }
    core
}

/// Returns the name of an event. One list writes some as `EVENT:request=MASK:response=MASK`.
fn name(row: &Value) -> String {
    let name = match text(row, "EventName") {
        "" => text(row, "ArchStdEvent"),
        name => name,
    };
    name.replace(":request=", ".").replace(":response=", ".")
}

impl List {
    fn bits(&self, row: &Value, architectural: &HashMap<&str, u64>) -> Result<Bits, &'static str> {
        let register = number(row, "MSRIndex").unwrap_or(0);
        // Two numbers or masks stand for the two offcore response registers.
        let which = usize::from(register == u64::from(offcore_matrix::REGISTERS[1]));
        let code = match text(row, "ArchStdEvent") {
            "" => nth_number(row, "EventCode", which)
                .or(number(row, "ConfigCode"))
                .or(self.default(row, "EventCode")),
            standard => architectural.get(standard).copied(),
        };
        let code = code.ok_or("its number is not known")?;
        let unit_mask = nth_number(row, "UMask", which)
            .or(self.default(row, "UMask"))
            .ok_or("it has no unit mask")?;
        // Linux's `umask` has the second one in bits 8-15 (format/umask: config:8-15,40-47).
        let second_mask = unit_mask >> 8 | number(row, "UMaskExt").unwrap_or(0);
        let mut bits = Bits {
            unit_mask: unit_mask as u8,
            second_mask: u8::try_from(second_mask).map_err(|_| "its unit mask is too large")?,
            counter_mask: u8::try_from(number(row, "CounterMask").unwrap_or(0))
                .map_err(|_| "its counter mask is too large")?,
            ..Bits::default().with_config(code)
        };
        if self.is_intel && code > 0xffff {
            return Err("its number is too large");
        }
        for (key, flag) in [
            ("EdgeDetect", flag::EDGE),
            ("Invert", flag::INVERT),
            ("AnyThread", flag::ANY_THREAD),
            ("Equal", flag::EQUAL),
            ("Deprecated", flag::DEPRECATED),
        ] {
            if number(row, key) == Some(1) {
                bits.flags |= flag;
            }
        }
        if !self.is_intel {
            // AMD's unit masks are bits to be put together; ARM has none.
            if text(row, "EventName").contains('.') {
                bits.flags |= flag::COMBINES;
            }
            return Ok(bits);
        }
        self.place(row, &mut bits)?;
        if register != 0 {
            bits.register = u32::try_from(register).map_err(|_| "its register is too large")?;
            bits.value = number(row, "MSRValue").unwrap_or(0);
        }
        Ok(bits)
    }

    /// Returns what a number is where it is not given: in Linux's lists 0 for unit masks, and for the event
    /// numbers of Intel's fixed counters.
    fn default(&self, row: &Value, key: &str) -> Option<u64> {
        let may_lack = self.format == Format::LinuxPmuEvents && (key == "UMask" || self.is_intel);
        (may_lack && row.get(key).is_none()).then_some(0)
    }

    /// Sets the counters of one of Intel's events.
    fn place(&self, row: &Value, bits: &mut Bits) -> Result<(), &'static str> {
        let counter = text(row, "Counter");
        // Event 0 names the fixed counters by unit mask, from 1.
        let is_pseudo = bits.code == 0 && (1..=16).contains(&bits.unit_mask);
        if is_pseudo && text(row, "EventName").ends_with(PRECISE) {
            bits.flags |= flag::FIXED_ONLY;
        }
        if counter.starts_with("Fixed counter ") {
            // Where a list has another event there, the number in the text tells it, which old lists count from 1.
            if is_pseudo {
                bits.fixed = bits.unit_mask;
            } else {
                let number = fixed_counter(row).and_then(|n| n.checked_sub(self.first_fixed));
                bits.fixed = match number {
                    Some(number @ 0..=15) => number + 1,
                    _ => return Err("its fixed counter is not known"),
                };
                bits.code = 0;
                bits.unit_mask = bits.fixed;
            }
            return Ok(());
        }
        if counter.is_empty() && self.format == Format::LinuxPmuEvents {
            match bits.code {
                0 if is_pseudo => bits.fixed = bits.unit_mask,
                0 => return Err("its number is not known"),
                _ => {}
            }
            return Ok(());
        }
        let counters = general_counters(counter);
        if counters == 0 {
            return Err("it names no counter");
        }
        if counters != self.counters {
            bits.counters = counters;
        }
        Ok(())
    }
}

/// Returns the number of the fixed counter that an event is for, as the list counts them.
fn fixed_counter(event: &Value) -> Option<u8> {
    text(event, "Counter")
        .strip_prefix("Fixed counter ")?
        .parse()
        .ok()
}

/// Returns the counters of a list such as `0,1,2,3`.
fn general_counters(list: &str) -> u32 {
    list.split(',')
        .filter_map(|number| number.trim().parse::<u32>().ok())
        .filter(|number| *number < 32)
        .fold(0, |mask, number| mask | 1 << number)
}

fn errata(field: &str) -> Vec<String> {
    field
        .split(',')
        .map(str::trim)
        .filter(|erratum| !matches!(*erratum, "" | "0" | "null" | "None"))
        .map(|erratum| {
            erratum
                .chars()
                .filter(|c| !c.is_control() && *c != '"' && *c != '\\')
                .collect()
        })
        .collect()
}
