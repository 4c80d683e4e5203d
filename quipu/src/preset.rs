//! Presets of several events: a formula, and what it is counted with.

use std::fmt;

use quipu_events_format::Formula;
use quipu_hal::{Count, Error, EventInfo, Filter, Part, Reading, Simultaneity, total};

use crate::SetEvent;

/// The factor that makes values of a formula with fractions whole.
const MILLION: f64 = 1e6;

/// A preset of several events while it is counted: its terms, each counted by itself, and the formula
/// over them.
pub struct Preset {
    formula: Formula,
    terms: Box<[SetEvent]>,
    in_one_group: bool,
    keeps_lower_bounds: bool,
}

/// The reason why the formula of a [`Preset`] has no value for what was counted of its terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoValue {
    reason: String,
    jumped: bool,
}

impl Preset {
    /// Returns a preset of terms that are counted, in one group or each by itself.
    pub(crate) fn new(formula: Formula, terms: Box<[SetEvent]>, in_one_group: bool) -> Self {
        Self {
            keeps_lower_bounds: formula.keeps_lower_bounds(),
            formula,
            terms,
            in_one_group,
        }
    }

    /// Returns the formula.
    pub fn formula(&self) -> &Formula {
        &self.formula
    }

    /// Returns the events that are counted, in the order of [`Formula::events`].
    pub fn terms(&self) -> &[SetEvent] {
        &self.terms
    }

    /// Returns true if the terms are members of one group, so that their values are of the same times. If
    /// there are not enough counters for that, they are counted one by one.
    pub fn is_in_one_group(&self) -> bool {
        self.in_one_group
    }

    /// Returns the value of the formula for the readings of each term by its index, part by part.
    ///
    /// The value is exact if that of every term is, an estimate if any of them is one, and else a lower bound if any is one. A part in
    /// which a term was not counted is missing from the value altogether, as the others say nothing by
    /// themselves. A formula that may give fractions has its value in millionths
    /// ([`EventInfo::scale`]), rounded to nearest.
    ///
    /// Allocates nothing where there is a value and the formula has at most 16 terms.
    ///
    /// # Errors
    /// The reason why there is no value: a term was never counted, the formula divides by zero, its value is below zero or
    /// too large for a count, or a term is a lower bound and the formula subtracts or divides by one, so that its value may
    /// be too high or too low.
    pub fn evaluate<'r, R>(&self, readings: impl Fn(usize) -> R) -> Result<Count, NoValue>
    where
        R: Iterator<Item = (&'r Part, &'r Reading)>,
    {
        with_room(self.terms.len(), |sums: &mut [u128]| {
            with_room(sums.len(), |of_part: &mut [u128]| {
                self.evaluate_into(sums, of_part, readings)
            })
        })
    }

    /// Adds up each term by way of its values in a part, and returns the value of the formula for the sums.
    fn evaluate_into<'r, R>(
        &self,
        sums: &mut [u128],
        of_part: &mut [u128],
        readings: impl Fn(usize) -> R,
    ) -> Result<Count, NoValue>
    where
        R: Iterator<Item = (&'r Part, &'r Reading)>,
    {
        let terms = 0..self.terms.len();
        let mut counted = 0;
        let mut missing = 0;
        let mut estimated = false;
        let mut is_lower_bound = false;
        let mut uncounted: Option<(usize, Count)> = None;
        // The CPUs and threads that were watched, each once and in order; core PMUs take turns on them.
        let target_after = |last: Option<Watched>| {
            let all = terms.clone().flat_map(&readings);
            all.map(|(part, _)| watched(part))
                .filter(|target| last.is_none_or(|last| *target > last))
                .min()
        };
        let mut next = target_after(None);
        while let Some(target) = next {
            next = target_after(next);
            let total_of = |term: usize| {
                let mut here = readings(term)
                    .filter(|(part, _)| watched(part) == target)
                    .peekable();
                // The sum of no parts would be an exact 0.
                match here.peek() {
                    Some(_) => total(here),
                    None => Count::NotCounted,
                }
            };
            let mut is_estimate = false;
            let incomplete = terms.clone().find_map(|term| {
                let total = total_of(term);
                of_part[term] = total.value().unwrap_or(0);
                is_estimate |= total.is_estimate();
                is_lower_bound |= total.is_lower_bound();
                (!total.is_complete()).then_some((term, total))
            });
            if let Some(of_term) = incomplete {
                missing += 1;
                uncounted.get_or_insert(of_term);
                continue;
            }
            counted += 1;
            estimated |= is_estimate;
            for (sum, value) in sums.iter_mut().zip(&*of_part) {
                *sum = sum.saturating_add(*value);
            }
        }
        if counted == 0 {
            let term = uncounted.and_then(|(term, count)| Some((self.terms.get(term)?, count)));
            let jumped = matches!(term, Some((_, Count::Jumped)));
            let reason = match term {
                Some((term, Count::Jumped)) => format!(
                    "the counter of its term {} moved further than the event can have occurred in the time",
                    term.name()
                ),
                Some((term, _)) => format!("its term {} never got a hardware counter", term.name()),
                None => "none of its terms was counted".to_owned(),
            };
            return Err(NoValue { reason, jumped });
        }
        if is_lower_bound && !self.keeps_lower_bounds {
            let reason = format!(
                "{} may be too high or too low: a part of the time may not have been counted of each of its terms",
                self.formula
            );
            return Err(NoValue {
                reason,
                jumped: false,
            });
        }
        match self.value(sums) {
            Ok(value) => {
                let count = Count::of_parts(value, estimated, missing, counted + missing);
                Ok(count.bounded(is_lower_bound))
            }
            Err(why) => Err(NoValue {
                reason: self.explained(&why, sums, estimated),
                jumped: false,
            }),
        }
    }

    /// Returns the value for a total of each term, or the reason why there is none.
    fn value(&self, sums: &[u128]) -> Result<u128, String> {
        const TOO_LARGE: &str = "is too large a number";
        if self.formula.is_whole() {
            let value = with_room(sums.len(), |whole: &mut [i128]| {
                for (whole, sum) in whole.iter_mut().zip(sums) {
                    *whole = i128::try_from(*sum).ok()?;
                }
                self.formula.evaluate_whole(whole)
            });
            let value = value.ok_or(TOO_LARGE)?;
            return u128::try_from(value).map_err(|_| format!("is {value}, which no count can be"));
        }
        let value = with_room(sums.len(), |floats: &mut [f64]| {
            for (float, sum) in floats.iter_mut().zip(sums) {
                *float = *sum as f64;
            }
            self.formula.evaluate(floats)
        });
        let value = value.ok_or("divides by zero")?;
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

    /// Returns the unit and scale of the preset as one event.
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
        let unit = self.formula.unit(&units).unwrap_or_default().to_owned();
        let mut info = EventInfo::counter(format!("{}", self.formula)).with_unit(unit);
        if !self.formula.is_whole() {
            info.scale = 1.0 / MILLION;
        }
        info.honours = infos
            .iter()
            .map(|i| i.honours)
            .fold(Filter::all(), intersection);
        info.occurs_in = infos
            .iter()
            .map(|i| i.occurs_in)
            .fold(Filter::empty(), union);
        info.errata = errata;
        info
    }

    /// Returns how simultaneous the values of the terms are.
    pub(crate) fn simultaneity(&self) -> Simultaneity {
        match self.terms.first().and_then(SetEvent::simultaneity) {
            Some(simultaneity) if self.in_one_group => simultaneity,
            _ => Simultaneity::None,
        }
    }
}

impl fmt::Debug for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Preset")
            .field("formula", &self.formula)
            .field("terms", &self.terms)
            .field("in_one_group", &self.in_one_group)
            .finish_non_exhaustive()
    }
}

impl NoValue {
    /// Returns the count that stands for it: [`NotCounted`](Count::NotCounted), or [`Jumped`](Count::Jumped) if
    /// the counter of a term did.
    pub fn count(&self) -> Count {
        match self.jumped {
            true => Count::Jumped,
            false => Count::NotCounted,
        }
    }
}

impl fmt::Display for NoValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for NoValue {}

/// A CPU or thread that was watched.
type Watched = (Option<u32>, Option<i32>);

fn watched(part: &Part) -> Watched {
    (part.cpu, part.thread)
}

/// Runs something with room for a number of each term: on the stack, where they are few.
fn with_room<N: Copy + Default, T>(terms: usize, body: impl FnOnce(&mut [N]) -> T) -> T {
    match [N::default(); 16].get_mut(..terms) {
        Some(few) => body(few),
        None => body(&mut vec![N::default(); terms]),
    }
}

/// Returns the reason why a preset cannot be counted if a term cannot.
pub(crate) fn term_refused(preset: &str, term: &str, error: &Error) -> Error {
    let why = error
        .reason()
        .map_or_else(|| error.kind().as_str().to_owned(), str::to_owned);
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
