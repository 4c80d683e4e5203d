//! Presets in groups: the events that are counted for what was asked for.

use std::iter;

use quipu_hal::{Attributes, Error, EventSpec, GroupSpec, Result};

use crate::SetEvent;
use crate::open::OpenGroup;
use crate::preset::{SharedFormula, term_refused};
use crate::set_event::OpenEvent;

/// A group with each preset of several events replaced by the terms of its formula.
pub(crate) struct ExpandedGroup<'a> {
    asked: &'a [EventSpec],
    /// For each member asked for.
    formulas: Vec<Option<SharedFormula>>,
    spec: GroupSpec,
}

impl<'a> ExpandedGroup<'a> {
    /// Expands a group whose members stand for these formulas; `attributes` are those of the set.
    pub(crate) fn new(
        asked: &'a GroupSpec,
        formulas: Vec<Option<SharedFormula>>,
        attributes: Attributes,
    ) -> Self {
        let mut members = Vec::new();
        for (spec, formula) in asked.members.iter().zip(&formulas) {
            match formula {
                Some(formula) => {
                    for term in formula.terms() {
                        members.push(spec.clone().with_event(term));
                    }
                }
                None => members.push(spec.clone()),
            }
        }
        let mut spec = GroupSpec::default();
        spec.members = members;
        spec.attributes = either(attributes, asked.attributes);
        Self {
            spec,
            asked: &asked.members,
            formulas,
        }
    }

    /// Returns the group of all events to count.
    pub(crate) fn spec(&self) -> &GroupSpec {
        &self.spec
    }

    /// Returns true if it is a single preset, whose terms may be counted in several groups.
    pub(crate) fn is_one_preset(&self) -> bool {
        matches!(self.formulas[..], [Some(_)])
    }

    /// Returns the events asked for, with what became of each. The open groups will be at `first` in the
    /// set.
    pub(crate) fn events(
        &self,
        request: usize,
        first: usize,
        outcome: Result<&[OpenGroup], &Error>,
    ) -> Vec<SetEvent> {
        let fell_back = outcome.is_ok_and(|groups| groups.iter().any(|open| open.in_user_mode));
        let mut next = 0;
        let mut events = Vec::with_capacity(self.asked.len());
        for (spec, formula) in iter::zip(self.asked, &self.formulas) {
            let at = next..next + formula.as_ref().map_or(1, terms_of);
            next = at.end;
            let state = match (formula, outcome) {
                (None, Ok(groups)) => Ok(OpenEvent::of_member(groups, first, at.start)),
                (Some(formula), Ok(groups)) => {
                    let terms = iter::zip(at.clone(), formula.names()).map(|(at, name)| {
                        let state = Ok(OpenEvent::of_member(groups, first, at));
                        SetEvent::new(&self.spec.members[at], request, fell_back, state)
                            .with_name(name)
                    });
                    let in_one_group = groups.len() == 1;
                    let first = OpenEvent::of_member(groups, first, at.start);
                    Ok(formula.open(first, terms.collect(), in_one_group))
                }
                (_, Err(error)) => Err(self.error_of(spec, formula.as_ref(), at.start, error)),
            };
            events.push(SetEvent::new(spec, request, fell_back, state));
        }
        events
    }

    /// Returns the error of the group for an event asked for, whose first member is at `first_member`.
    fn error_of(
        &self,
        spec: &EventSpec,
        formula: Option<&SharedFormula>,
        first_member: usize,
        error: &Error,
    ) -> Error {
        let at = error.member().and_then(|at| at.checked_sub(first_member));
        let term = formula.and_then(|formula| formula.names().get(at?));
        if let Some(term) = term {
            return term_refused(&spec.to_string(), term, error);
        }
        match error.member().and_then(|member| self.asked_at(member)) {
            Some(member) => error.clone().with_member(member),
            None => error.clone(),
        }
    }

    /// Returns the position among the events asked for of the one that a member is counted for.
    fn asked_at(&self, mut member: usize) -> Option<usize> {
        self.formulas.iter().position(|formula| {
            let members = formula.as_ref().map_or(1, terms_of);
            let is_here = member < members;
            member = member.saturating_sub(members);
            is_here
        })
    }
}

fn terms_of(formula: &SharedFormula) -> usize {
    formula.names().len()
}

/// Returns attributes that have each flag that either of two has.
fn either(set: Attributes, group: Attributes) -> Attributes {
    Attributes::default()
        .with_inherit(set.inherit || group.inherit)
        .with_pinned(set.pinned || group.pinned)
        .with_exclusive(set.exclusive || group.exclusive)
        .with_enable_on_exec(set.enable_on_exec || group.enable_on_exec)
        .with_disabled(set.disabled || group.disabled)
}
