//! Presets: their codes, and the formulas that the event database has for this CPU.

use std::ffi::c_int;
use std::sync::OnceLock;

use quipu::{Error, Formula, Hardware, NativeEvents, Target};

use crate::abi::{NATIVE_MASK, PRESET_MASK, V7_3};
use crate::boundary::call::refused_as;
use crate::code::{ENOEVNT, ENOTPRESET, Outcome};
use crate::event::standard::{PRESETS, SINCE_7_3};
use crate::event_set::builder::{are_counted, counted_here, registers};
use crate::library::LIBRARY;

/// The number of codes that presets may have, whether there is a preset or not.
pub(crate) const CODES: usize = 128;

/// Returns true if a code is one of presets.
pub(crate) fn is_preset(code: c_int) -> bool {
    code & PRESET_MASK != 0 && code & NATIVE_MASK == 0
}

/// Returns true if a code is one of events of the user's own, whether there is one or not.
pub(crate) fn is_user_defined(code: c_int) -> bool {
    code & PRESET_MASK != 0 && code & NATIVE_MASK != 0
}

/// Returns the presets of the version that the program has asked for.
pub(crate) fn known() -> &'static [(&'static str, u32)] {
    debug_assert!(PRESETS.len() <= CODES);
    match LIBRARY.version() {
        V7_3.. => &PRESETS,
        _ => &PRESETS[..PRESETS.len() - SINCE_7_3],
    }
}

/// Returns the place and name of a preset.
pub(crate) fn by_code(code: c_int) -> Outcome<(usize, &'static str)> {
    if !is_preset(code) {
        return Err(ENOEVNT);
    }
    let index = (code & !PRESET_MASK) as usize;
    known()
        .get(index)
        .map(|(name, _)| (index, *name))
        .ok_or(ENOTPRESET)
}

/// Returns the code of a preset by its name, in any letter case behind `PAPI_`.
pub(crate) fn code_of(name: &str) -> Option<c_int> {
    const PREFIX: &str = "PAPI_";
    let name = name.strip_prefix(PREFIX)?;
    let at = known()
        .iter()
        .position(|(known, _)| known[PREFIX.len()..].eq_ignore_ascii_case(name))?;
    Some(c_int::try_from(at).ok()? | PRESET_MASK)
}

/// Returns true if the counters of the CPU can be used here.
pub(crate) fn has_counters() -> bool {
    no_counters().is_none()
}

/// Returns true if the counters of the CPU are read without a system call here.
pub(crate) fn has_user_reads() -> bool {
    matches!(counters(), Ok(true))
}

/// Returns why the counters of the CPU cannot be used here.
fn no_counters() -> Option<&'static Error> {
    counters().as_ref().err()
}

/// Opens an event, to see that the counters of the CPU can be used here; true if they are read without a system call.
fn counters() -> &'static Result<bool, Error> {
    static COUNTERS: OnceLock<Result<bool, Error>> = OnceLock::new();
    COUNTERS.get_or_init(|| {
        let cycles = quipu::EventSpec::new(Hardware::Cycles).with_filter(quipu::Filter::USER_ONLY);
        let mut builder = counted_here(Target::CurrentThread);
        let mut set = builder.events(cycles)?.open()?;
        match set.events().iter().find_map(|event| event.error()) {
            Some(error) => Err(error.clone()),
            None => Ok(set.user_read_obstacle(0).is_none()),
        }
    })
}

/// Returns a code if a preset cannot be counted of a target here, and remembers what would help.
pub(crate) fn query_on(index: usize, target: &Target) -> Outcome {
    let Some(error) = no_counters() else {
        return formula(index).map(drop).ok_or(ENOEVNT);
    };
    match (registers(), are_counted(target)) {
        (Some(Ok(_)), true) => known_formula(index).map(drop).ok_or(ENOEVNT),
        (Some(Ok(_)), false) => {
            const REMEDY: &str = "attach the event set to a CPU: PAPI_set_opt with PAPI_CPU_ATTACH";
            Err(refused_as(ENOEVNT, &error.clone().with_hint(REMEDY)))
        }
        _ => Err(refused_as(ENOEVNT, error)),
    }
}

/// Returns a code if a preset cannot be counted of a thread here.
pub(crate) fn query(index: usize) -> Outcome {
    query_on(index, &Target::CurrentThread)
}

/// Returns the formula of a preset, if threads can be counted here.
pub(crate) fn formula(index: usize) -> Option<&'static Formula> {
    known_formula(index).filter(|_| has_counters())
}

/// Returns the formula that the event database has for a preset on this CPU. It is looked up once.
fn known_formula(index: usize) -> Option<&'static Formula> {
    static FORMULAS: [OnceLock<Option<Formula>>; CODES] = [const { OnceLock::new() }; CODES];
    let (name, _) = PRESETS.get(index)?;
    let find = || {
        let tables = NativeEvents::this().tables().ok()?;
        tables.first()?.preset(name)?.formula.ok()
    };
    FORMULAS.get(index)?.get_or_init(find).as_ref()
}

/// Returns the number of presets that can be counted here.
pub(crate) fn available() -> usize {
    static AVAILABLE: OnceLock<usize> = OnceLock::new();
    *AVAILABLE.get_or_init(|| {
        (0..known().len())
            .filter(|at| formula(*at).is_some())
            .count()
    })
}

/// Returns the operations of a formula behind their operands, as `PAPI_event_info_t` has them: `N0|N1|+|`.
pub(crate) fn postfix(formula: &Formula) -> String {
    let mut out = String::new();
    let mut waiting: Vec<&str> = Vec::new();
    let rank = |operator: &str| match operator {
        "+" | "-" => 1,
        "*" | "/" => 2,
        _ => 0,
    };
    let text = formula.to_string().replace('(', " ( ").replace(')', " ) ");
    let push = |out: &mut String, word: &str| {
        out.push_str(word);
        out.push('|');
    };
    for word in text.split_whitespace() {
        match word {
            "(" => waiting.push("("),
            ")" => {
                while let Some(operator) = waiting.pop().filter(|operator| *operator != "(") {
                    push(&mut out, operator);
                }
            }
            "+" | "-" | "*" | "/" => {
                while let Some(operator) = waiting.pop_if(|top| rank(top) >= rank(word)) {
                    push(&mut out, operator);
                }
                waiting.push(match word {
                    "+" => "+",
                    "-" => "-",
                    "*" => "*",
                    _ => "/",
                });
            }
            word => match formula.events().iter().position(|event| event == word) {
                Some(at) => push(&mut out, &format!("N{at}")),
                None => push(&mut out, word),
            },
        }
    }
    while let Some(operator) = waiting.pop() {
        push(&mut out, operator);
    }
    out
}

/// Returns the name that `papi.h` has for the way a formula is made up.
pub(crate) fn derived(formula: &Formula) -> &'static str {
    if formula.single().is_some() {
        return "NOT_DERIVED";
    }
    let text = formula.to_string();
    let words: Vec<&str> = text.split_whitespace().collect();
    let events = words
        .iter()
        .step_by(2)
        .all(|word| formula.events().iter().any(|e| e == word));
    let all = |operator: &str| {
        words
            .iter()
            .skip(1)
            .step_by(2)
            .all(|word| *word == operator)
    };
    match (events, all("+"), all("-")) {
        (true, true, _) => "DERIVED_ADD",
        (true, _, true) => "DERIVED_SUB",
        _ => "DERIVED_POSTFIX",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_lead_to_each_other() {
        for (at, (name, _)) in known().iter().enumerate() {
            let code = code_of(name).expect("a code");
            assert_eq!(by_code(code), Ok((at, *name)));
        }
        assert_eq!(code_of("PAPI_TOT_CYC"), Some(PRESET_MASK | 0x3b));
        assert_eq!(code_of("papi_TOT_CYC"), None);
        assert_eq!(by_code(PRESET_MASK | 0x7f), Err(ENOTPRESET));
        assert_eq!(by_code(0), Err(ENOEVNT));
    }

    #[test]
    fn operations_stand_behind_their_operands() {
        let text = |formula: &str| postfix(&Formula::parse(formula).unwrap());
        assert_eq!(text("A"), "N0|");
        assert_eq!(text("A - B"), "N0|N1|-|");
        assert_eq!(text("A + B * C"), "N0|N1|N2|*|+|");
        assert_eq!(text("(A + B) * 2 - A"), "N0|N1|+|2|*|N0|-|");
    }

    #[test]
    fn sums_and_differences_have_names() {
        let name = |formula: &str| derived(&Formula::parse(formula).unwrap());
        assert_eq!(name("A"), "NOT_DERIVED");
        assert_eq!(name("A + B + C"), "DERIVED_ADD");
        assert_eq!(name("A - B"), "DERIVED_SUB");
        assert_eq!(name("A + B - C"), "DERIVED_POSTFIX");
        assert_eq!(name("A * 2"), "DERIVED_POSTFIX");
    }
}
