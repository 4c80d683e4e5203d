//! Presets in groups: the events that are counted for what was asked for.

use std::borrow::Cow;
use std::sync::Arc;

use quipu_events_format::Formula;
use quipu_hal::{Error, EventSpec, GroupSpec, Result};

use crate::SetEvent;
use crate::open::OpenGroup;
use crate::preset::{Preset, term_refused};
use crate::set_event::OpenEvent;

/// A group with each preset of several events replaced by the terms of its formula.
pub(crate) struct ExpandedGroup<'a> {
    asked: &'a [EventSpec],
    /// For each member asked for; none if no member is a preset.
    formulas: Vec<Option<Arc<Formula>>>,
    spec: Cow<'a, GroupSpec>,
}

/// A request that was opened: the events to count, and the groups that count them, of which the first has that number
/// in the set.
#[derive(Clone, Copy)]
struct CountedGroup<'a> {
    spec: &'a GroupSpec,
    groups: &'a [OpenGroup],
    first: usize,
    request: usize,
    fell_back: bool,
}

impl CountedGroup<'_> {
    /// Returns the member at a position as it is counted.
    fn open(&self, at: usize) -> OpenEvent {
        OpenEvent::of_member(self.groups, self.first, at)
    }

    /// Returns the event of a formula over its terms, the first of which is the member at a position.
    fn open_preset(&self, formula: &Formula, first: usize) -> OpenEvent {
        let terms = (first..).zip(formula.events());
        let terms = terms.map(|(at, name)| self.member(at).with_name(name));
        let preset = Preset::new(formula.clone(), terms.collect(), self.groups.len() == 1);
        OpenEvent {
            info: preset.info(),
            simultaneity: preset.simultaneity(),
            preset: Some(Box::new(preset)),
            ..self.open(first)
        }
    }

    /// Returns the member at a position as an event of the set.
    fn member(&self, at: usize) -> SetEvent {
        let spec = &self.spec.members[at];
        SetEvent::new(spec, self.request, self.fell_back, Ok(self.open(at)))
    }
}

impl<'a> ExpandedGroup<'a> {
    /// Expands a group whose members stand for these formulas; there are none if no member does.
    pub(crate) fn new(asked: &'a GroupSpec, formulas: Vec<Option<Arc<Formula>>>) -> Self {
        let mut spec = Cow::Borrowed(asked);
        if !formulas.is_empty() {
            let mut expanded = GroupSpec::default();
            for (member, formula) in asked.members.iter().zip(&formulas) {
                match formula {
                    Some(formula) => {
                        let terms = formula.terms();
                        let terms = terms.map(|term| member.clone().with_event(term));
                        expanded.members.extend(terms);
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
    pub(crate) fn formulas_of(&self, member: usize) -> Vec<Option<Arc<Formula>>> {
        let formula = self.formula(member);
        formula.map_or_else(Vec::new, |formula| vec![Some(formula.clone())])
    }

    fn formula(&self, member: usize) -> Option<&Arc<Formula>> {
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
        let outcome = self.outcome(request, opened);
        let mut next = 0;
        self.asked.iter().enumerate().map(move |(member, _)| {
            let at = next;
            next += self.formula(member).map_or(1, terms_of);
            self.event(member, at, request, outcome)
        })
    }

    /// Returns what counts the events, as [`events`](Self::events) is told of it.
    fn outcome<'o>(
        &'o self,
        request: usize,
        (first, outcome, groups): (usize, &'o Result<()>, &'o [OpenGroup]),
    ) -> Result<CountedGroup<'o>, &'o Error> {
        let groups = &groups[first..];
        outcome.as_ref().map(|()| CountedGroup {
            spec: &self.spec,
            groups,
            first,
            request,
            fell_back: groups.iter().any(|open| open.in_user_mode),
        })
    }

    /// Returns an event asked for, whose first member is at a position.
    fn event(
        &self,
        asked: usize,
        at: usize,
        request: usize,
        outcome: Result<CountedGroup<'_>, &Error>,
    ) -> SetEvent {
        let (spec, formula) = (&self.asked[asked], self.formula(asked));
        match outcome {
            Ok(group) => {
                let open = match formula {
                    None => group.open(at),
                    Some(formula) => group.open_preset(formula, at),
                };
                SetEvent::new(spec, request, group.fell_back, Ok(open))
            }
            Err(error) => {
                let error = self.error_of(spec, formula, at, error);
                SetEvent::new(spec, request, false, Err(error))
            }
        }
    }

    /// Returns the error of the group for an event asked for, whose first member is at `first_member`.
    fn error_of(
        &self,
        spec: &EventSpec,
        formula: Option<&Arc<Formula>>,
        first_member: usize,
        error: &Error,
    ) -> Error {
        let at = error.member().and_then(|at| at.checked_sub(first_member));
        if let (Some(formula), Some(at)) = (formula, at)
            && let Some(term) = formula.events().get(at)
        {
            return term_refused(&spec.to_string(), term, error);
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

fn terms_of(formula: &Arc<Formula>) -> usize {
    formula.events().len()
}
