//! `quipu encode` and `quipu decode`: names to bits and back.

use std::process::ExitCode;

use clap::Args;
use quipu::{Event, Filter};
use quipu_events::{CpuTable, Formula, Interface, UncoreDetails, describe};
use quipu_hal::{
    Armv8Event, Encoding, EventSpec, ExtraRegister, P5Function, PerfConfig, Scheme, SlotClass,
    SlotSet, X86Select,
};

use quipu_text::parse_spec;

use crate::events::CpuChoice;
use quipu_shell::Failure;
use quipu_shell::terminal;

#[derive(Debug, Args)]
pub(crate) struct EncodeOptions {
    /// The event: `INST_RETIRED.ANY`, `L2_RQSTS:MISS:u`, `cycles`, `PAPI_TOT_INS`
    name: String,

    /// Show the encoding for linux, pctr or msr only
    #[arg(long = "for", value_name = "INTERFACE", value_parser = interface)]
    interface: Option<Interface>,

    #[command(flatten)]
    choice: CpuChoice,
}

#[derive(Debug, Args)]
pub(crate) struct DecodeOptions {
    /// The encoding in hexadecimal: an event select or config word or a whole CESR, and the value of an
    /// extra register
    #[arg(value_name = "BITS", value_parser = hexadecimal, num_args = 1..=2, required = true)]
    bits: Vec<u64>,

    #[command(flatten)]
    choice: CpuChoice,
}

fn interface(name: &str) -> Result<Interface, String> {
    Interface::ALL
        .iter()
        .copied()
        .find(|interface| interface.name() == name)
        .ok_or_else(|| "expected linux, pctr or msr".to_owned())
}

fn hexadecimal(text: &str) -> Result<u64, String> {
    let digits = text.trim_start_matches("0x").trim_start_matches('r');
    u64::from_str_radix(digits, 16)
        .map_err(|_| "expected a hexadecimal number of at most 64 bits".to_owned())
}

/// Prints the bits of an event and how they are made up.
pub(crate) fn encode(options: &EncodeOptions) -> Result<ExitCode, Failure> {
    let interfaces = options
        .interface
        .map_or(Interface::ALL.to_vec(), |one| vec![one]);
    let mut text = String::new();
    for table in options.choice.tables()? {
        text += &format!("{} ({})\n", table.id(), table.name());
        let events = table.events_for(Interface::Linux);
        if let Some(uncore) = uncore(&table, &options.name) {
            text += &format!("  linux  {}\n", uncore.encoded());
            continue;
        }
        let spec = parse_spec(&options.name, &events)?;
        let Some(formula) = formula(&table, &spec.event) else {
            text += &bits(&table, &spec, &interfaces)?;
            continue;
        };
        text += &format!("  {} = {formula}\n", spec.event);
        for (name, event) in formula.events().iter().zip(formula.terms()) {
            text += &format!("{name}\n");
            text += &bits(&table, &spec.clone().with_event(event), &interfaces)?;
        }
    }
    terminal::print(&text).map_err(Failure::new)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the event of a unit outside of the cores, which backend linux alone counts.
fn uncore(table: &CpuTable, name: &str) -> Option<UncoreDetails> {
    let of_core = table.event(name).is_some() || table.preset(name).is_some();
    table.uncore_event(name).filter(|_| !of_core)
}

/// Returns the formula of a preset that is several events.
fn formula(table: &CpuTable, event: &Event) -> Option<Formula> {
    let Event::Named(name) = event else {
        return None;
    };
    let preset = table.preset(name)?.formula.ok()?;
    (table.event(name).is_none() && preset.single().is_none()).then_some(preset)
}

/// Returns the bits of one event for each interface, and how they are made up.
fn bits(table: &CpuTable, spec: &EventSpec, interfaces: &[Interface]) -> Result<String, Failure> {
    let mut text = String::new();
    let mut refused = None;
    let mut encoded = 0;
    for interface in interfaces {
        match quipu::encode(table, spec, *interface) {
            Ok(resolved) => {
                encoded += 1;
                text += &format!(
                    "  {:<6} {}\n",
                    interface.name(),
                    one_line(&resolved.encoding, interface)
                );
                if let Event::Probe(_) = spec.event {
                    text += "           config1: the address of the name of its function or file\n";
                    text += "           inherited it is a tracepoint, which is made when it is opened\n";
                }
                let own = match (&resolved.native, &resolved.encoding) {
                    (Some(native), _) => {
                        text +=
                            &format!("           on this CPU {}\n", one_line(native, interface));
                        Some(native)
                    }
                    // Other numbers are the kernel's, and no bits of the CPU.
                    (None, Encoding::Perf(words)) if words.type_ != PerfConfig::RAW => None,
                    (None, encoding) => Some(encoding),
                };
                let fields = own.map(|own| describe(table.scheme(), own));
                for field in fields.unwrap_or_default() {
                    text += &format!(
                        "           {:#018x}  {}{}\n",
                        field.bits,
                        field.name,
                        field
                            .value
                            .map(|value| format!(" {value:#x}"))
                            .unwrap_or_default()
                    );
                }
                if let Some(counters) = counters(resolved.slots) {
                    text += &format!("           counters {counters}\n");
                }
                for erratum in &resolved.errata {
                    text += &format!("           {erratum}\n");
                }
            }
            Err(error) => {
                text += &format!("  {:<6} {error}\n", interface.name());
                refused.get_or_insert(error);
            }
        }
    }
    match (encoded, refused) {
        (0, Some(error)) => Err(Failure::from(error)),
        _ => Ok(text),
    }
}

/// Returns the words of an encoding as its interface takes them.
fn one_line(encoding: &Encoding, interface: &Interface) -> String {
    match encoding {
        Encoding::Perf(perf) => {
            let mut text = format!("type {}, config {:#x}", perf.type_, perf.config);
            let more = [
                ("config1", perf.config1),
                ("config2", perf.config2),
                ("config3", perf.config3),
                ("bp_type", perf.bp_type.into()),
            ];
            for (name, word) in more.into_iter().filter(|(_, word)| *word != 0) {
                text += &format!(", {name} {word:#x}");
            }
            text
        }
        Encoding::X86(word) => {
            let mut text = match interface {
                Interface::Pctr => format!("function {:#010x}", word.select),
                _ => format!("select {:#x}", word.select),
            };
            for extra in &word.extra {
                text += &format!(", register {:#x} = {:#x}", extra.address, extra.value);
            }
            text
        }
        Encoding::P5(function) => format!("function {:#05x}", function.0),
        Encoding::Fixed(fixed) => format!(
            "fixed counter {}, control {:#x}",
            fixed.index,
            fixed.control_bits()
        ),
        Encoding::Armv8(event) => format!("PMEVTYPER {:#010x}", event.0),
        other => format!("{other:?}"),
    }
}

/// Returns the counters that can count an event, when not all can.
pub(crate) fn counters(slots: SlotSet) -> Option<String> {
    if slots == SlotSet::ANY_GENERAL {
        return None;
    }
    let numbers = |class, name: &str| {
        (0..64)
            .filter(|number| slots.contains(class, *number))
            .map(|number| format!("{name}{number}"))
            .collect::<Vec<_>>()
    };
    // However many the CPU has.
    let mut all = match slots.intersection(SlotSet::ANY_GENERAL) {
        SlotSet::ANY_GENERAL => vec!["any".to_owned()],
        _ => numbers(SlotClass::General, ""),
    };
    all.extend(numbers(SlotClass::Fixed, "fixed "));
    Some(all.join(", "))
}

/// Prints the name of what bits count.
pub(crate) fn decode(options: &DecodeOptions) -> Result<ExitCode, Failure> {
    let mut text = String::new();
    for table in options.choice.tables()? {
        for (which, encoding) in encodings(&table, &options.bits) {
            let decoded = table.decode(&encoding)?;
            let levels = decoded.levels.map(levels).unwrap_or_default();
            text += &format!("{}: {which}{}{levels}\n", table.id(), decoded.name);
        }
    }
    terminal::print(&text).map_err(Failure::new)?;
    Ok(ExitCode::SUCCESS)
}

/// Returns the encodings that bits are in the scheme of a CPU: one, or those of both counters in a
/// Pentium's CESR.
fn encodings(table: &CpuTable, bits: &[u64]) -> Vec<(&'static str, Encoding)> {
    const FUNCTION: u64 = 0x1ff;
    let word = bits.first().copied().unwrap_or(0);
    if table.scheme() == Scheme::P5 && word > FUNCTION {
        let half = |shift: u32| Encoding::P5(P5Function((word >> shift & FUNCTION) as u16));
        return vec![("counter 0: ", half(0)), ("counter 1: ", half(16))];
    }
    vec![("", encoding(table, bits))]
}

/// Returns the encoding that bits are in the scheme of a CPU.
fn encoding(table: &CpuTable, bits: &[u64]) -> Encoding {
    let word = bits.first().copied().unwrap_or(0);
    let value = bits.get(1).copied().unwrap_or(0);
    // A select word says where it counts; a config word of Linux does not.
    let has_levels = word & (X86Select::USER | X86Select::KERNEL) != 0;
    match table.scheme() {
        Scheme::P5 => Encoding::P5(P5Function(word as u16)),
        Scheme::Armv8 => Encoding::Armv8(Armv8Event(word as u32)),
        _ if has_levels => {
            let mut select = X86Select {
                select: word,
                extra: Vec::new(),
            };
            if value != 0 {
                select.extra.push(ExtraRegister { address: 0, value });
            }
            Encoding::X86(select)
        }
        _ => Encoding::Perf(PerfConfig::new(4, word).with_config1(value)),
    }
}

fn levels(levels: Filter) -> String {
    let mut text = String::from(":");
    for (level, letter) in [(Filter::USER, 'u'), (Filter::KERNEL, 'k')] {
        if levels.contains(level) {
            text.push(letter);
        }
    }
    if text.len() == 1 {
        return String::from(" (counts nothing: neither user nor kernel mode is set)");
    }
    text
}
