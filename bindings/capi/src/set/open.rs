//! Open event sets: their counts, and the positions of the readings of each event.

use std::ffi::CString;
use std::ops::Range;
use std::slice;

use quipu::{Counts, EventCount, EventSet, MemberIndex, Part, SetEvent};
use quipu_hal::ValueKind;

use crate::failure::{Failure, text};
use crate::quipu_status;

/// A set that counts, what it was last read into, and what C asks of its events.
pub(crate) struct OpenSet {
    pub(crate) set: EventSet,
    pub(crate) counts: Counts,
    pub(crate) events: Box<[OpenEvent]>,
    /// The sources of the totals, in the order of the events.
    pub(crate) runs: Box<[Run]>,
    /// The sources of the readings: a list for each group that is read.
    pub(crate) spans: Box<[Vec<Span>]>,
    /// The number of readings: one for each part of each event.
    pub(crate) readings: usize,
}

/// Events in a row that are members in a row of one group, each with one reading; or one event of another form.
pub(crate) struct Run {
    /// The group, and the members there; none of an event of another form.
    pub(crate) group: usize,
    pub(crate) members: Range<usize>,
    pub(crate) events: Range<usize>,
}

/// The readings of one thing that is counted: an event, or a term of a preset.
pub(crate) struct Span {
    /// The position in its group.
    pub(crate) member: usize,
    pub(crate) form: Form,
    /// The position of the first among the set's, and how many there are: one for each part.
    pub(crate) first: usize,
    pub(crate) parts: usize,
}

/// An event of an open set: where its readings are, and its texts as C reads them.
pub(crate) struct OpenEvent {
    /// Why it was refused, or [`QUIPU_OK`](quipu_status::QUIPU_OK).
    pub(crate) status: quipu_status,
    pub(crate) form: Form,
    pub(crate) first_reading: usize,
    /// The parts of each thing that is counted for it: itself, or the terms of a preset.
    pub(crate) terms: Vec<Vec<Part>>,
    /// The number of all these parts.
    pub(crate) readings: usize,
    pub(super) name: CString,
    pub(super) opened_as: Option<CString>,
    pub(super) backend: Option<CString>,
    pub(super) unit: Option<CString>,
    pub(super) errata: Option<CString>,
    pub(super) term_names: Vec<CString>,
    /// For each reading.
    pub(super) cores: Vec<Option<CString>>,
}

/// The way in which the total of an event is computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// It could not be opened.
    Refused,
    /// One part, whose reading is the total.
    OnePart,
    /// Parts that are scaled and added.
    Parts,
    /// A momentary value.
    Gauge,
    /// A formula over several events.
    Preset,
}

impl OpenSet {
    pub(super) fn new(set: EventSet) -> Self {
        let counts = set.counts();
        let mut events = Vec::new();
        let mut spans: Vec<Vec<Span>> = Vec::new();
        let mut readings = 0;
        for (asked, count) in set.events().iter().zip(counts.events()) {
            let event = OpenEvent::new(asked, readings, &count);
            let counted = match asked.preset() {
                Some(preset) => preset.terms(),
                None => slice::from_ref(asked),
            };
            for (term, parts) in counted.iter().zip(&event.terms) {
                if let Ok(at) = term.index() {
                    if spans.len() <= at.group {
                        spans.resize_with(at.group + 1, Vec::new);
                    }
                    spans[at.group].push(Span {
                        member: at.member,
                        form: event.form,
                        first: readings,
                        parts: parts.len(),
                    });
                    readings += parts.len();
                }
            }
            events.push(event);
        }
        Self {
            runs: runs(&set, &events).into(),
            counts,
            events: events.into(),
            spans: spans.into(),
            readings,
            set,
        }
    }

    pub(super) fn event(&self, index: usize) -> Result<(&OpenEvent, &SetEvent), Failure> {
        let event = self.events.get(index).zip(self.set.events().get(index));
        event.ok_or_else(|| {
            Failure::invalid(
                &format!("look at event {index}"),
                format!("the set has {}, numbered from 0", self.events.len()),
            )
        })
    }
}

/// Returns the runs that the events of a set make.
fn runs(set: &EventSet, events: &[OpenEvent]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (at, (asked, event)) in set.events().iter().zip(events).enumerate() {
        match asked.index().ok().filter(|_| event.form == Form::OnePart) {
            Some(MemberIndex { group, member, .. }) => match runs.last_mut() {
                Some(run) if (run.group, run.members.end) == (group, member) => {
                    run.members.end += 1;
                    run.events.end += 1;
                }
                _ => runs.push(Run {
                    group,
                    members: member..member + 1,
                    events: at..at + 1,
                }),
            },
            None => runs.push(Run {
                group: usize::MAX,
                members: 0..0,
                events: at..at + 1,
            }),
        }
    }
    runs
}

impl OpenEvent {
    fn new(event: &SetEvent, first_reading: usize, count: &EventCount<'_>) -> Self {
        let info = event.info();
        let errata = info.map_or(&[][..], |info| &info.errata);
        let parts_of = |count: &EventCount<'_>| match count.parts() {
            Ok(parts) => parts.map(|(part, _)| part.clone()).collect(),
            Err(_) => Vec::new(),
        };
        let (terms, term_names): (Vec<Vec<Part>>, Vec<CString>) = match event.preset() {
            Some(_) => count
                .terms()
                .map(|t| (parts_of(&t), text(t.name())))
                .unzip(),
            None => (vec![parts_of(count)], vec![text(event.name())]),
        };
        let cores = terms.iter().flatten().map(|part| part.core.as_deref());
        let cores: Vec<_> = cores.map(|core| core.map(text)).collect();
        let form = match (info, event.preset(), &*cores) {
            (None, ..) => Form::Refused,
            (_, Some(_), _) => Form::Preset,
            (Some(info), ..) if info.kind == ValueKind::Gauge => Form::Gauge,
            (_, _, [None]) => Form::OnePart,
            _ => Form::Parts,
        };
        Self {
            status: event
                .error()
                .map_or(quipu_status::QUIPU_OK, |error| error.kind().into()),
            form,
            first_reading,
            readings: cores.len(),
            terms,
            name: text(event.name()),
            opened_as: info.map(|info| text(&info.name)),
            backend: event.backend().map(text),
            unit: info.map(|info| text(&info.unit)),
            errata: (!errata.is_empty()).then(|| text(&errata.join("; "))),
            term_names,
            cores,
        }
    }
}
