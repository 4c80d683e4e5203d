//! Events of the user's own, which the file named by `PAPI_USER_EVENTS_FILE` defines in the format of PAPI's `papi_events.csv`.

use std::ffi::c_int;
use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::Path;
use std::sync::OnceLock;

use quipu::{Formula, NativeEvents};

use crate::abi::{NATIVE_MASK, PRESET_MASK};
use crate::event::name::parse;
use crate::event::preset;
use crate::machine::hardware::max_mhz;

/// The variable that names the file.
const VARIABLE: &str = "PAPI_USER_EVENTS_FILE";
/// The most events of the user's own (`PAPI_MAX_USER_EVENTS`).
const MOST: usize = 50;
/// The bits of codes of these events (`PAPI_UE_MASK`).
const MASK: c_int = PRESET_MASK | NATIVE_MASK;
/// The words behind the terms of an event, each before a text.
const TEXTS: [&str; 3] = ["SDESC", "LDESC", "NOTE"];

/// An event of the user's own.
#[derive(Debug)]
pub(crate) struct UserEvent {
    pub(crate) name: String,
    /// The way it is derived, and its operations behind their operands, as `PAPI_event_info_t` has them.
    pub(crate) derived: String,
    pub(crate) postfix: String,
    pub(crate) terms: Vec<String>,
    /// The short and the long description, and the note.
    pub(crate) texts: [String; 3],
    /// The formula that is counted.
    pub(crate) formula: Formula,
}

static EVENTS: OnceLock<Vec<UserEvent>> = OnceLock::new();

/// Reads the file, if one is named, the first time that it is called. What is wrong in it is reported on standard error, by
/// line, and left out.
pub(crate) fn read() {
    EVENTS.get_or_init(|| {
        let Some(path) = quipu_environment::variable(VARIABLE).filter(|path| !path.is_empty())
        else {
            return Vec::new();
        };
        let shown = path.display();
        match read_bounded(Path::new(&path)) {
            Ok(text) => events_of(&text, &is_this_cpu, |line, reason| {
                report(format_args!("{shown}, line {line}: {reason}"));
            }),
            Err(error) => {
                report(format_args!("cannot read {shown} of {VARIABLE}: {error}"));
                Vec::new()
            }
        }
    });
}

/// Reads a file that is a regular one and not longer than any of such events could be.
fn read_bounded(path: &Path) -> io::Result<String> {
    const LONGEST: u64 = 1 << 20;
    let about = fs::metadata(path)?;
    if !about.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    let mut text = String::new();
    let length = File::open(path)?
        .take(LONGEST + 1)
        .read_to_string(&mut text)? as u64;
    match length > LONGEST {
        true => {
            let why = format!("{} bytes, more than {LONGEST}", about.len());
            Err(io::Error::other(why))
        }
        false => Ok(text),
    }
}

fn report(line: std::fmt::Arguments<'_>) {
    // Standard error may be closed.
    let _ = writeln!(io::stderr(), "PAPI error: {line}");
}

/// Returns the events, in the order of their codes.
pub(crate) fn known() -> &'static [UserEvent] {
    EVENTS.get().map_or(&[], Vec::as_slice)
}

/// Returns an event by its code.
pub(crate) fn by_code(code: c_int) -> Option<&'static UserEvent> {
    known()
        .get(usize::try_from(code & !MASK).ok()?)
        .filter(|_| preset::is_user_defined(code))
}

/// Returns the code of the event at a place in the list.
pub(crate) fn code_at(place: usize) -> Option<c_int> {
    let number = c_int::try_from(place)
        .ok()
        .filter(|_| place < known().len())?;
    Some(number | MASK)
}

/// Returns the code of an event by its name, in any letter case.
pub(crate) fn code_of(name: &str) -> Option<c_int> {
    code_at(
        known()
            .iter()
            .position(|event| event.name.eq_ignore_ascii_case(name))?,
    )
}

/// Returns true for libpfm4's name of the PMU of this CPU.
fn is_this_cpu(pmu: &str) -> bool {
    let tables = NativeEvents::this().tables().unwrap_or_default();
    tables.iter().any(|table| table.has_pmu(pmu))
}

/// Returns the events that a text defines for a CPU; `wrong` gets the number of each line that is wrong, and why.
fn events_of(
    text: &str,
    is_this_cpu: &dyn Fn(&str) -> bool,
    mut wrong: impl FnMut(usize, String),
) -> Vec<UserEvent> {
    let mut events: Vec<UserEvent> = Vec::new();
    let (mut is_ours, mut has_events) = (false, false);
    for (at, line) in text.lines().enumerate() {
        let mut words = line.split(',').map(str::trim);
        let first = words.next().unwrap_or_default();
        if first.is_empty() || first.starts_with('#') {
            continue;
        }
        if first.eq_ignore_ascii_case("CPU") {
            // Several before the first event are alternatives.
            if has_events {
                (is_ours, has_events) = (false, false);
            }
            match (
                words.next().unwrap_or_default(),
                words.next().unwrap_or_default(),
            ) {
                ("", _) => wrong(at + 1, "CPU has no name".to_owned()),
                (name, "") => is_ours |= is_this_cpu(name),
                (name, _) => wrong(at + 1, format!("the number behind {name} is unknown here")),
            }
        } else if first.eq_ignore_ascii_case("EVENT") || first.eq_ignore_ascii_case("PRESET") {
            has_events = true;
            if !is_ours {
                continue;
            }
            match event_of(&words.collect::<Vec<_>>(), &events) {
                Ok(event) => match events.iter().position(|known| known.name == event.name) {
                    Some(place) => events[place] = event,
                    None if events.len() == MOST => {
                        wrong(at + 1, format!("there are {MOST} events already"));
                    }
                    None => events.push(event),
                },
                Err(reason) => wrong(at + 1, reason),
            }
        } else {
            wrong(at + 1, format!("{first} is neither CPU nor EVENT"));
        }
    }
    events
}

/// Returns the event of a line by the words behind the first; its terms may be those `before` it.
fn event_of(words: &[&str], before: &[UserEvent]) -> Result<UserEvent, String> {
    let mut words = words.iter().copied();
    let mut next = |what: &str| match words.next() {
        Some("") | None => Err(format!("the event has no {what}")),
        Some(word) => Ok(word),
    };
    let (name, mut derived) = (
        next("name")?,
        next("way to derive it")?.to_ascii_uppercase(),
    );
    let operations = match derived.as_str() {
        "DERIVED_POSTFIX" | "DERIVED_INFIX" => next("operations")?,
        _ => "",
    };
    let is_text = |word: &&str| TEXTS.iter().any(|text| text.eq_ignore_ascii_case(word));
    let behind: Vec<&str> = words.collect();
    let number = behind
        .iter()
        .position(|word| word.is_empty() || is_text(word));
    let (terms, described) = behind.split_at(number.unwrap_or(behind.len()));
    if terms.is_empty() {
        return Err("the event has no terms".to_owned());
    }
    let mut counted = Vec::with_capacity(terms.len());
    for name in terms {
        counted.push(term(name, before)?);
    }
    let postfix = match derived.as_str() {
        "DERIVED_POSTFIX" => operations.to_owned(),
        "DERIVED_INFIX" => {
            "DERIVED_POSTFIX".clone_into(&mut derived);
            postfix_of(operations)?
        }
        _ => String::new(),
    };
    let formula = match (derived.as_str(), counted.as_slice()) {
        ("NOT_DERIVED" | "DERIVED_CMPD", [one]) => one.clone(),
        ("NOT_DERIVED" | "DERIVED_CMPD", _) => {
            return Err(format!("{derived} is of one event"));
        }
        ("DERIVED_ADD", _) => counted.join(" + "),
        ("DERIVED_SUB", _) => counted.join(" - "),
        ("DERIVED_POSTFIX", _) => formula_of(&postfix, &counted)?,
        // How often a second, of the CPU's clock: the first term counts its cycles.
        ("DERIVED_PS", [cycles, units]) => format!("{units} * {} / {cycles}", hertz()),
        ("DERIVED_PS", _) => return Err(format!("{derived} is of cycles and one event")),
        ("DERIVED_ADD_PS", [cycles, units @ ..]) if !units.is_empty() => {
            format!("({}) * {} / {cycles}", units.join(" + "), hertz())
        }
        ("DERIVED_ADD_PS", _) => return Err(format!("{derived} is of cycles and events")),
        _ => return Err(format!("{derived} is no way to derive an event")),
    };
    let text_of = |key: &str| {
        let at = described
            .iter()
            .position(|word| word.eq_ignore_ascii_case(key));
        let text = at.and_then(|at| described.get(at + 1));
        text.map_or("", |text| text.trim_matches(['"', '\'']))
            .to_owned()
    };
    Ok(UserEvent {
        name: name.to_owned(),
        derived,
        postfix,
        terms: terms.iter().map(|term| (*term).to_owned()).collect(),
        texts: TEXTS.map(text_of),
        formula: Formula::parse(&formula).map_err(|error| format!("{formula}: {error}"))?,
    })
}

/// Returns the cycles of the CPU's clock in a second, the highest that `PAPI_get_hardware_info` returns.
fn hertz() -> i64 {
    i64::from(max_mhz()) * 1_000_000
}

/// Returns what a term is in a formula.
fn term(name: &str, before: &[UserEvent]) -> Result<String, String> {
    if let Some(event) = before.iter().find(|event| event.name == name) {
        return Ok(format!("({})", event.formula));
    }
    if let Some(code) = preset::code_of(name) {
        let formula = preset::by_code(code)
            .ok()
            .and_then(|(at, _)| preset::formula(at));
        let formula = formula.ok_or_else(|| format!("{name} cannot be counted here"))?;
        return Ok(format!("({formula})"));
    }
    let native = parse(name).map_err(|_| format!("there is no event {name}"))?;
    if native.has_levels || native.pinned || native.exclusive || native.cpu.is_some() {
        return Err(format!("{name} has modifiers, which a term cannot have"));
    }
    let text = native.spec.event.to_string();
    match Formula::parse(&text) {
        Ok(formula) if formula.terms().eq([native.spec.event]) => Ok(text),
        _ => Err(format!("{name} cannot stand in a formula")),
    }
}

/// Returns the operations behind their operands of a formula over `N0`, `N1` and so on.
fn postfix_of(operations: &str) -> Result<String, String> {
    let mut spaced = String::new();
    for c in operations.chars() {
        match c {
            '+' | '-' | '*' | '/' | '(' | ')' => spaced.extend([' ', c, ' ']),
            _ => spaced.push(c),
        }
    }
    let formula = Formula::parse(&spaced).map_err(|error| format!("{operations}: {error}"))?;
    let postfix = preset::postfix(&formula);
    let named = postfix.split_inclusive('|').map(|word| {
        let number = word
            .strip_prefix('N')
            .and_then(|word| word.trim_end_matches('|').parse().ok());
        let name = number.and_then(|number: usize| formula.events().get(number));
        name.map_or_else(|| word.to_owned(), |name| format!("{name}|"))
    });
    Ok(named.collect())
}

/// Returns the formula of operations behind their operands, `N0|N1|+|`, over these terms.
fn formula_of(postfix: &str, terms: &[String]) -> Result<String, String> {
    let mut waiting: Vec<String> = Vec::new();
    for word in postfix
        .split('|')
        .map(str::trim)
        .filter(|word| !word.is_empty())
    {
        let number = word
            .strip_prefix('N')
            .and_then(|number| number.parse::<usize>().ok());
        let operand = match (word, number) {
            ("+" | "-" | "*" | "/", _) => {
                let (right, left) = (waiting.pop(), waiting.pop());
                let (Some(right), Some(left)) = (right, left) else {
                    return Err(format!("{postfix}: {word} has no two operands"));
                };
                format!("({left} {word} {right})")
            }
            (_, Some(number)) => match terms.get(number) {
                Some(term) => term.clone(),
                None => return Err(format!("{postfix}: there is no term {word}")),
            },
            ("#", _) => hertz().to_string(),
            _ if word.parse::<f64>().is_ok() => word.to_owned(),
            _ => {
                return Err(format!(
                    "{postfix}: {word} is no operation that is known here"
                ));
            }
        };
        waiting.push(operand);
    }
    match (waiting.pop(), waiting.pop()) {
        (Some(formula), None) => Ok(formula),
        _ => Err(format!("{postfix}: there is not one value in the end")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (Vec<UserEvent>, Vec<(usize, String)>) {
        let mut wrong = Vec::new();
        let events = events_of(text, &|name| name == "ours", |line, why| {
            wrong.push((line, why));
        });
        (events, wrong)
    }

    fn formulas(text: &str) -> Vec<String> {
        let (events, wrong) = read(text);
        assert_eq!(wrong, []);
        events
            .iter()
            .map(|event| event.formula.to_string())
            .collect()
    }

    #[test]
    fn each_way_to_derive_an_event_is_a_formula() {
        let text = "
            # comment
            CPU,theirs
            EVENT,OTHERS,NOT_DERIVED,perf::CPU-CLOCK
            CPU,ours
            CPU,theirs
            EVENT,ONE,NOT_DERIVED,perf::PAGE-FAULTS
            event,SUM,derived_add,perf::MINOR-FAULTS,perf::MAJOR-FAULTS
            EVENT,LESS,DERIVED_SUB,perf::PAGE-FAULTS,SUM
            EVENT,POST,DERIVED_POSTFIX,N0|N1|-|2|*|,perf::PAGE-FAULTS,perf::MAJOR-FAULTS
            EVENT,IN,DERIVED_INFIX,N1*(N0+3)/2,perf::PAGE-FAULTS,perf::MAJOR-FAULTS
            EVENT,RATE,DERIVED_PS,perf::CS,SUM
            EVENT,RATES,DERIVED_ADD_PS,perf::CS,perf::MINOR-FAULTS,perf::MAJOR-FAULTS
            EVENT,CLOCK,DERIVED_POSTFIX,N0|#|*|,perf::CS
            CPU,theirs
            EVENT,OTHERS,NOT_DERIVED,perf::CPU-CLOCK";
        let hertz = hertz();
        let wanted = [
            "page-faults".to_owned(),
            "minor-faults + major-faults".to_owned(),
            "page-faults - (minor-faults + major-faults)".to_owned(),
            "((page-faults - major-faults) * 2)".to_owned(),
            "((major-faults * (page-faults + 3)) / 2)".to_owned(),
            format!("(minor-faults + major-faults) * {hertz} / context-switches"),
            format!("(minor-faults + major-faults) * {hertz} / context-switches"),
            format!("(context-switches * {hertz})"),
        ];
        assert_eq!(formulas(text), wanted);
        let (events, _) = read(text);
        assert_eq!(events[4].derived, "DERIVED_POSTFIX");
        assert_eq!(events[4].postfix, "N1|N0|3|+|*|2|/|");
    }

    #[test]
    fn texts_follow_the_terms() {
        let (events, wrong) =
            read("CPU,ours\nEVENT,A,NOT_DERIVED,perf::CS,LDESC,\"more of it\",SDESC,it,NOTE,'n'");
        assert_eq!(wrong, []);
        assert_eq!(
            events[0].texts,
            ["it", "more of it", "n"].map(str::to_owned)
        );
        assert_eq!(events[0].terms, ["perf::CS"]);
    }

    #[test]
    fn what_is_wrong_is_told_by_line_and_left_out() {
        let (events, wrong) = read(
            "CPU,ours
EVENT,A,NOT_DERIVED,perf::NOTHING-LIKE-IT
EVENT,B,NOT_DERIVED,perf::CS,perf::PAGE-FAULTS
EVENT,C,DERIVED_POSTFIX,N0|N1|+|,perf::CS
EVENT,D,DERIVED_POSTFIX,N0|+|,perf::CS
EVENT,E,DERIVED_PS,perf::CS
EVENT,F,DERIVED_SOMEHOW,perf::CS
EVENT,G,DERIVED_ADD
EVENT
ENTRY,H
EVENT,I,NOT_DERIVED,perf::CS:u=1
EVENT,J,NOT_DERIVED,perf::CS
EVENT,K,DERIVED_ADD_PS,perf::CS",
        );
        let names: Vec<_> = events.iter().map(|event| &*event.name).collect();
        assert_eq!(names, ["J"]);
        let lines: Vec<_> = wrong.iter().map(|(line, _)| *line).collect();
        assert_eq!(lines, [2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 13], "{wrong:?}");
    }
}
