//! Presets in groups: the events that are counted for what was asked for.

use std::borrow::Cow;
use std::sync::Arc;

use quipu_hal::{Error, EventSpec, GroupSpec, Result};

use crate::SetEvent;
use crate::builder::ExpandedGroup;
use crate::open::OpenGroup;
use crate::preset::{SharedFormula, term_refused};
use crate::set_event::OpenEvent;

/// The outcome of opening a request: its groups, of which the first has that number in the set.
#[derive(Clone, Copy)]
struct Outcome<'a> {
    request: usize,
    first: usize,
    groups: Result<&'a [OpenGroup], &'a Error>,
    fell_back: bool,
}

impl<'a> Outcome<'a> {
    fn new(
        request: usize,
        (first, outcome, groups): (usize, &'a Result<()>, &'a [OpenGroup]),
    ) -> Self {
        let groups = &groups[first..];
        Self {
            request,
            first,
            groups: outcome.as_ref().map(|()| groups),
            fell_back: groups.iter().any(|open| open.in_user_mode),
        }
    }
}

impl<'a> ExpandedGroup<'a> {
    /// Expands a group whose members stand for these formulas; there are none if no member does.
    pub(crate) fn new(asked: &'a GroupSpec, formulas: Vec<Option<SharedFormula>>) -> Self {
        let mut spec = Cow::Borrowed(asked);
        if !formulas.is_empty() {
            let mut expanded = GroupSpec::default();
            for (member, formula) in asked.members.iter().zip(&formulas) {
                match formula {
                    Some(formula) => {
                        for term in formula.terms() {
                            expanded.members.push(member.clone().with_event(term));
                        }
                    }
                    None => expanded.members.push(member.clone()),
                }
            }
            expanded.attributes = asked.attributes;
            spec = Cow::Owned(expanded);
        }
        Self {
            spec,
            asked: &asked.members,
            formulas,
        }
    }

    /// Returns the formula of one member, as [`new`](Self::new) takes those of a group of it alone.
    pub(crate) fn formulas_of(&self, member: usize) -> Vec<Option<SharedFormula>> {
        let formula = self.formula(member);
        formula.map_or_else(Vec::new, |formula| vec![Some(formula.clone())])
    }

    fn formula(&self, member: usize) -> Option<&SharedFormula> {
        self.formulas.get(member)?.as_ref()
    }

    /// Returns the group of all events to count.
    pub(crate) fn spec(&self) -> &GroupSpec {
        &self.spec
    }

    /// Returns true if it is a single preset, whose terms may be counted in several groups.
    pub(crate) fn is_one_preset(&self) -> bool {
        matches!(self.formulas[..], [Some(_)])
    }

    /// Returns the events asked for, with what became of each: the groups of the set, of which those from the first number
    /// on are this one's, and the outcome of opening it.
    pub(crate) fn events<'o>(
        &'o self,
        request: usize,
        opened: (usize, &'o Result<()>, &'o [OpenGroup]),
    ) -> impl ExactSizeIterator<Item = SetEvent> {
        let outcome = Outcome::new(request, opened);
        let mut next = 0;
        self.asked.iter().enumerate().map(move |(member, _)| {
            let at = next;
            next += self.formula(member).map_or(1, terms_of);
            self.event(member, at, outcome)
        })
    }

    /// Returns the same for a set and its buffers. One alone, as there is most often, takes no way through an iterator.
    pub(crate) fn shared_events(
        &self,
        request: usize,
        opened: (usize, &Result<()>, &[OpenGroup]),
    ) -> Arc<[SetEvent]> {
        match self.asked {
            [_] => Arc::new([self.event(0, 0, Outcome::new(request, opened))]),
            _ => self.events(request, opened).collect(),
        }
    }

    /// Returns an event asked for, whose first member is at a position.
    #[inline(never)]
    fn event(&self, asked: usize, at: usize, outcome: Outcome<'_>) -> SetEvent {
        let Outcome {
            request,
            first,
            groups,
            fell_back,
        } = outcome;
        let (spec, formula) = (&self.asked[asked], self.formula(asked));
        let state = match (formula, groups) {
            (None, Ok(groups)) => Ok(OpenEvent::of_member(groups, first, at)),
            (Some(formula), Ok(groups)) => {
                let mut terms = Vec::with_capacity(terms_of(formula));
                for (at, name) in (at..).zip(formula.names()) {
                    let state = Ok(OpenEvent::of_member(groups, first, at));
                    let term = SetEvent::new(&self.spec.members[at], request, fell_back, state);
                    terms.push(term.with_name(name));
                }
                let in_one_group = groups.len() == 1;
                let first = OpenEvent::of_member(groups, first, at);
                Ok(formula.open(first, terms, in_one_group))
            }
            (_, Err(error)) => Err(self.error_of(spec, formula, at, error)),
        };
        SetEvent::new(spec, request, fell_back, state)
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
            return term_refused(&format!("{spec}"), term, error);
        }
        match error.member().and_then(|member| self.asked_at(member)) {
            Some(member) => error.clone().with_member(member),
            None => error.clone(),
        }
    }

    /// Returns the position among the events asked for of the one that a member is counted for.
    fn asked_at(&self, mut member: usize) -> Option<usize> {
        (0..self.asked.len()).find(|asked| {
            let members = self.formula(*asked).map_or(1, terms_of);
            let is_here = member < members;
            member = member.saturating_sub(members);
            is_here
        })
    }
}

fn terms_of(formula: &SharedFormula) -> usize {
    formula.names().len()
}
