//! Presets of several events: a formula, and what it is counted with.

use std::borrow::Cow;

use quipu_events::Formula;
use quipu_hal::{Error, EventInfo, Filter, Part, Reading, Simultaneity, Total, ValueKind, total};

use crate::SetEvent;

/// What the values of a formula that may give fractions are multiplied by to be whole.
const MILLION: f64 = 1e6;

/// A preset of several events while it is counted: its terms, each counted by itself, and the formula
/// over them.
#[derive(Debug)]
pub struct Preset {
    formula: Formula,
    terms: Box<[SetEvent]>,
    in_one_group: bool,
}

/// What a formula comes to for what was counted of its terms.
///
/// The value is exact if that of every term is, and an estimate if any of them is one. A formula that
/// may give fractions has its value in millionths ([`EventInfo::scale`]), rounded to nearest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Evaluation {
    /// The value over all parts in which every term was counted.
    pub total: Total,
    /// Why there is no value, where there is none.
    pub reason: Option<String>,
}

impl Preset {
    pub(crate) fn new(formula: Formula, terms: Vec<SetEvent>, in_one_group: bool) -> Self {
        Self {
            formula,
            terms: terms.into(),
            in_one_group,
        }
    }

    /// The formula.
    pub fn formula(&self) -> &Formula {
        &self.formula
    }

    /// What is counted, in the order of [`Formula::events`].
    pub fn terms(&self) -> &[SetEvent] {
        &self.terms
    }

    /// Whether the terms are members of one group, so that their values are of the same times. Where
    /// there are not enough counters for that, they are counted one by one.
    pub fn is_in_one_group(&self) -> bool {
        self.in_one_group
    }

    /// The value of the formula for readings of each term, part by part.
    ///
    /// A part in which a term was not counted is missing from the value altogether, as the others say
    /// nothing by themselves. A value below zero is none: no count can be.
    pub fn evaluate(&self, readings: &[Vec<(&Part, &Reading)>]) -> Evaluation {
        let mut sums = vec![0u128; self.terms.len()];
        let mut counted = 0;
        let mut missing = 0;
        let mut estimated = false;
        let mut uncounted = None;
        for target in targets(readings) {
            let of_target = |term: usize| {
                let readings = readings.get(term).into_iter().flatten().copied();
                let mut here = readings
                    .filter(|(part, _)| (part.cpu, part.thread) == target)
                    .peekable();
                // The sum of no parts would be an exact 0.
                match here.peek() {
                    Some(_) => total(here),
                    None => Total::NotCounted,
                }
            };
            let totals: Vec<Total> = (0..self.terms.len()).map(of_target).collect();
            let not_whole = |t: &Total| matches!(t, Total::NotCounted | Total::Partial { .. });
            if let Some(term) = totals.iter().position(not_whole) {
                missing += 1;
                uncounted.get_or_insert(term);
                continue;
            }
            counted += 1;
            for (sum, total) in sums.iter_mut().zip(totals) {
                *sum = sum.saturating_add(total.value().unwrap_or(0));
                estimated |= total.is_estimate();
            }
        }
        if counted == 0 {
            let term = uncounted.and_then(|term| self.terms.get(term));
            return Evaluation::none(match term {
                Some(term) => format!("its term {} never got a hardware counter", term.name()),
                None => "none of its terms was counted".to_owned(),
            });
        }
        match self.value(&sums) {
            Ok(value) => Evaluation {
                total: match (missing, estimated) {
                    (0, false) => Total::Exact(value),
                    (0, true) => Total::Estimated(value),
                    (missing, estimated) => Total::Partial {
                        value,
                        estimated,
                        missing,
                    },
                },
                reason: None,
            },
            Err(why) => Evaluation::none(self.explained(&why, &sums, estimated)),
        }
    }

    /// The value for a total of each term, or what is wrong with it.
    fn value(&self, sums: &[u128]) -> Result<u128, String> {
        const TOO_LARGE: &str = "is too large a number";
        if self.formula.is_whole() {
            let sums: Option<Vec<i128>> =
                sums.iter().map(|sum| i128::try_from(*sum).ok()).collect();
            let value = sums.and_then(|sums| self.formula.evaluate_whole(&sums));
            let value = value.ok_or(TOO_LARGE)?;
            return u128::try_from(value).map_err(|_| format!("is {value}, which no count can be"));
        }
        let sums: Vec<f64> = sums.iter().map(|sum| *sum as f64).collect();
        let value = self.formula.evaluate(&sums).ok_or("divides by zero")?;
        let millionths = (value * MILLION).round();
        if millionths < 0.0 {
            Err(format!("is {value}, which no count can be"))
        } else if millionths < u128::MAX as f64 {
            Ok(millionths as u128)
        } else {
            Err(TOO_LARGE.to_owned())
        }
    }

    fn explained(&self, why: &str, sums: &[u128], estimated: bool) -> String {
        let names = self.formula.events().iter();
        let values: Vec<String> = names
            .zip(sums)
            .map(|(name, sum)| format!("{name} {sum}"))
            .collect();
        let because = match (estimated, self.in_one_group) {
            (true, _) => ", estimates among them",
            (false, true) => "",
            (false, false) => ", not counted at the same moments",
        };
        format!("{} {why} for {}{because}", self.formula, values.join(", "))
    }

    /// What is known of the preset as one event.
    pub(crate) fn info(&self) -> EventInfo {
        let infos: Vec<&EventInfo> = self.terms.iter().filter_map(SetEvent::info).collect();
        let units: Vec<&str> = infos.iter().map(|info| info.unit.as_ref()).collect();
        let mut errata: Vec<String> = Vec::new();
        for erratum in infos.iter().flat_map(|info| &info.errata) {
            if !errata.contains(erratum) {
                errata.push(erratum.clone());
            }
        }
        let intersection = |a: Filter, b: Filter| a & b;
        let union = |a: Filter, b: Filter| a | b;
        EventInfo {
            name: self.formula.to_string(),
            unit: Cow::Owned(self.formula.unit(&units).unwrap_or_default().to_owned()),
            scale: if self.formula.is_whole() {
                1.0
            } else {
                1.0 / MILLION
            },
            kind: ValueKind::Counter,
            honours: infos
                .iter()
                .map(|i| i.honours)
                .fold(Filter::all(), intersection),
            occurs_in: infos
                .iter()
                .map(|i| i.occurs_in)
                .fold(Filter::empty(), union),
            max_rate: None,
            errata,
        }
    }

    /// How simultaneous the values of the terms are.
    pub(crate) fn simultaneity(&self) -> Simultaneity {
        match self.terms.first().and_then(SetEvent::simultaneity) {
            Some(simultaneity) if self.in_one_group => simultaneity,
            _ => Simultaneity::None,
        }
    }
}

impl Evaluation {
    fn none(reason: impl Into<String>) -> Self {
        Self {
            total: Total::NotCounted,
            reason: Some(reason.into()),
        }
    }
}

/// The CPUs and threads that were watched, each once; core PMUs take turns on them.
fn targets(readings: &[Vec<(&Part, &Reading)>]) -> Vec<(Option<u32>, Option<i32>)> {
    let mut targets: Vec<_> = readings
        .iter()
        .flatten()
        .map(|(part, _)| (part.cpu, part.thread))
        .collect();
    targets.sort_unstable();
    targets.dedup();
    targets
}

/// Why a preset cannot be counted when a term cannot.
pub(crate) fn term_refused(preset: &str, term: &str, error: &Error) -> Error {
    let why = error
        .reason()
        .map_or_else(|| error.kind().to_string(), str::to_owned);
    let mut refusal = Error::new(error.kind(), format!("count {preset}"))
        .with_reason(format!("its term {term}: {why}"));
    if let Some(hint) = error.hint() {
        refusal = refusal.with_hint(hint);
    }
    if let Some(errno) = error.errno() {
        refusal = refusal.with_errno(errno);
    }
    refusal
}
