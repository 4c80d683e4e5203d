//! The words of the text form of events: which of them stand as they are, and which in quotes.
//!
//! `Display` of [`Event`] writes by these rules, and the crate `quipu-text` reads by them.

use crate::Event;

/// The letters of modifiers that end a name, as in `X:Y:u`.
const MODIFIERS: &str = "ukhIGHpPDe-";

/// The words before a colon that begin an event of their own.
const PREFIXES: [&str; 6] = [
    "tracepoint",
    "mem",
    "kprobe",
    "kretprobe",
    "uprobe",
    "uretprobe",
];

/// Returns true if a character stands in a word: ASCII letters, digits, and what names of vendors, PAPI, libpfm4, sysfs and
/// tracefs have besides.
pub fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_.-+:=@#~*?[]".contains(c)
}

/// Returns true if a character stands in the system or name of a tracepoint.
pub fn is_part(c: char) -> bool {
    is_word(c) && c != ':'
}

/// Returns true if a character stands in the value of a term.
pub fn is_value(c: char) -> bool {
    is_word(c) && c != '='
}

/// Returns true if a character stands in the name of a PMU or of a term.
pub fn is_name(c: char) -> bool {
    is_part(c) && is_value(c)
}

/// Returns true if a character stands in the path of a probe.
pub fn is_path(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !":,{}'".contains(c)
}

/// Returns true if a character stands in the symbol of a probe.
pub fn is_symbol(c: char) -> bool {
    is_part(c) && c != '+'
}

/// Returns true if text is not empty and consists of such characters.
pub fn consists_of(text: &str, allowed: fn(char) -> bool) -> bool {
    !text.is_empty() && text.chars().all(allowed)
}

/// Returns true if text stands as the value of a term: numbers begin with a digit.
pub fn is_plain_value(text: &str) -> bool {
    consists_of(text, is_value) && !text.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns true for a term that says something beside the event: `name`, `period` and `freq`. A term of a PMU
/// that is called so stands in quotes.
pub fn is_setting(term: &str) -> bool {
    ["name", "period", "freq"].contains(&term)
}

/// Returns true if the last segment of a name is read as modifiers.
pub fn are_modifiers(segment: &str) -> bool {
    consists_of(segment, |c| MODIFIERS.contains(c))
}

/// Returns true if a segment within a name is read as privilege levels.
pub fn are_levels(segment: &str) -> bool {
    consists_of(segment, |c| "ukh".contains(c))
}

/// Returns the key and value of a segment of a name that is one of libpfm4's modifiers and no bits of an event: `u=1`,
/// `pinned`.
pub fn assignment(segment: &str) -> Option<(&str, &str)> {
    const KEYS: [&str; 10] = [
        "u", "k", "h", "mg", "mh", "precise", "excl", "pinned", "period", "freq",
    ];
    match segment.split_once('=') {
        Some((key, value)) => {
            let is_known = KEYS.iter().any(|known| known.eq_ignore_ascii_case(key));
            is_known.then_some((key, value))
        }
        // Other letters without a value are levels, or belong to the name.
        None => matches!(segment, "mg" | "mh" | "excl" | "pinned").then_some((segment, "1")),
    }
}

/// Returns what follows the name of one of libpfm4's PMUs `perf` and `perf_raw` and its two colons, and the name.
pub fn after_perf(word: &str) -> Option<(&str, &str)> {
    let (pmu, rest) = word.split_once(':')?;
    let rest = rest.strip_prefix(':')?;
    let is = |known: &str| pmu.eq_ignore_ascii_case(known);
    (is("perf") || is("perf_raw")).then_some((pmu, rest))
}

/// Returns true if a word begins as the kernel's names of the generalized events do, in any letter case.
pub fn is_kernel_name(word: &str) -> bool {
    const START: &str = "PERF_COUNT_";
    let start = word.get(..START.len());
    start.is_some_and(|start| start.eq_ignore_ascii_case(START))
}

/// Returns true if a word is the name of a tracepoint without `tracepoint:` before it, or a pattern of such names: `a:b`,
/// `a:*`.
pub fn is_tracepoint(word: &str) -> bool {
    let is_identifier =
        |text: &str| consists_of(text, |c| c.is_ascii_alphanumeric() || "_-.*?".contains(c));
    word.split_once(':')
        .is_some_and(|(system, name)| is_identifier(system) && is_identifier(name))
}

/// Returns the hexadecimal digits of raw bits: `01c0` of `r01c0`.
pub fn raw_digits(word: &str) -> Option<&str> {
    let digits = word.strip_prefix('r')?;
    let digits = digits.strip_prefix("0x").unwrap_or(digits);
    consists_of(digits, |c| c.is_ascii_hexdigit()).then_some(digits)
}

/// Returns true if the first segment of a word can begin a name: it is no number, and begins with a letter, a digit, `_`, or
/// the `*` or `?` of a pattern of tracepoints.
pub fn begins_name(word: &str) -> bool {
    let first = word.split(':').next().unwrap_or_default();
    let begins = |c: char| c.is_ascii_alphanumeric() || c == '_';
    (word.starts_with(begins) || is_tracepoint(word) && word.starts_with(['*', '?']))
        && !is_number(first)
}

/// Returns true for digits, decimal or hexadecimal after `0x`.
pub fn is_number(word: &str) -> bool {
    let hexadecimal = word.strip_prefix("0x").unwrap_or_default();
    consists_of(word, |c| c.is_ascii_digit()) || consists_of(hexadecimal, |c| c.is_ascii_hexdigit())
}

/// Returns true if one of the segments after the name of a cache makes it the name of a native event: `L1D:REPLACEMENT`.
pub fn has_mask(word: &str) -> bool {
    let is_mask = |part: &str| {
        part.len() > 1
            && part.starts_with(|c: char| c.is_ascii_alphabetic())
            && !are_modifiers(part)
    };
    let mut parts = word.split(':');
    let is_native = |first: &str| !first.contains('-');
    parts.next().is_some_and(is_native) && parts.any(is_mask)
}

/// Returns true if text without quotes is read as this name, with and without modifiers after it: `kprobe` is a name and
/// `kprobe:u` a probe.
pub(crate) fn is_plain_name(text: &str) -> bool {
    let first = text.split(':').next().unwrap_or_default();
    let is_generalized = match Event::generalized(first) {
        Some(Event::Cache(_)) => !has_mask(text),
        other => other.is_some(),
    };
    let segments = text.split(':').skip(1);
    let ends_otherwise = |last: &str| last.is_empty() || are_modifiers(last);
    consists_of(text, is_word)
        && begins_name(text)
        && !PREFIXES.contains(&first)
        && !is_generalized
        && !is_kernel_name(text)
        && after_perf(text).is_none()
        && !segments
            .clone()
            .any(|segment| assignment(segment).is_some())
        && raw_digits(first).is_none()
        && !segments.clone().any(are_levels)
        && !segments.last().is_some_and(ends_otherwise)
}
