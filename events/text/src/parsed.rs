//! Events as they were parsed, with the text that was written.

use std::ops::Range;

use quipu_hal::{Attributes, Event, EventSpec, GroupSpec, Result};

use crate::{EventNames, Label, Settings};

/// A group in braces or a lone event of a list, as [`parse`](crate::parse) returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ParsedGroup<'t> {
    /// The events in order; the first leads.
    pub members: Vec<Parsed<'t>>,
    /// The attributes that are written after the brace or the leader.
    pub attributes: Attributes,
    /// The letters after the brace, without the colon; the members have them too. Empty for none.
    pub modifiers: &'t str,
}

/// An event with the text that it was written as.
///
/// ```
/// use quipu_text::{NoNames, parse};
///
/// let groups = parse("{cycles:u, cpu/event=0xc0,name=retired/}:k", &NoNames)?;
/// let [cycles, retired] = &groups[0].members[..] else {
///     panic!("two events");
/// };
/// assert_eq!(cycles.as_written, "cycles:u");
/// assert_eq!(cycles.spec.to_string(), "cycles:uk");
/// let mut label = cycles.label();
/// label.add(groups[0].modifiers, &cycles.spec);
/// assert_eq!(label.to_string(), "cycles:uk");
/// assert_eq!(retired.as_written, "cpu/event=0xc0,name=retired/");
/// assert_eq!(retired.settings.name.as_deref(), Some("retired"));
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Parsed<'t> {
    /// The event, with its own modifiers and those of its group.
    pub spec: EventSpec,
    /// The settings beside the event.
    pub settings: Settings,
    /// The text of the event, without space around it, and without the modifiers after a group's brace. All
    /// tracepoints of a pattern have the pattern's.
    pub as_written: &'t str,
    /// The place of the modifiers' letters in the text; `None` if it has none.
    pub(crate) letters: Option<Range<usize>>,
    /// True if the event's own modifiers name privilege levels.
    pub(crate) names_levels: bool,
    /// True for a tracepoint that was not written itself, but a pattern for it.
    pub(crate) is_of_pattern: bool,
}

impl Parsed<'_> {
    /// Returns true if modifiers of the event itself name privilege levels, be it all of them.
    pub fn names_levels(&self) -> bool {
        self.names_levels
    }

    /// Returns the text of the event as a label, without the modifiers of its group; for a tracepoint of a pattern the
    /// event as it is displayed.
    pub fn label(&self) -> Label {
        match self.is_of_pattern {
            true => Label::displayed(&self.spec),
            false => Label::new(self.as_written, self.letters.as_ref()),
        }
    }
}

impl From<ParsedGroup<'_>> for GroupSpec {
    /// Takes the events without what was written.
    fn from(parsed: ParsedGroup<'_>) -> Self {
        let specs = parsed.members.into_iter().map(|member| member.spec);
        Self::new(specs).with_attributes(parsed.attributes)
    }
}

impl<'t> ParsedGroup<'t> {
    /// Adds the group, with each pattern of tracepoints replaced by those that it stands for; a lone pattern gives a group
    /// for each.
    pub(crate) fn add_to(self, groups: &mut Vec<Self>, names: &dyn EventNames) -> Result<()> {
        if !self.members.iter().any(|member| pattern(member).is_some()) {
            groups.push(self);
            return Ok(());
        }
        let mut members = Vec::with_capacity(self.members.len());
        let is_lone_pattern = matches!(&self.members[..], [one] if pattern(one).is_some());
        for member in self.members {
            let found = match pattern(&member) {
                Some(pattern) => names.tracepoints(pattern)?,
                None => Vec::new(),
            };
            if found.is_empty() {
                members.push(member);
                continue;
            }
            members.extend(found.into_iter().map(|name| Parsed {
                spec: member.spec.clone().with_event(Event::Named(name)),
                is_of_pattern: true,
                ..member.clone()
            }));
        }
        let of = |members| Self { members, ..self };
        match is_lone_pattern {
            true => groups.extend(members.into_iter().map(|member| of(vec![member]))),
            false => groups.push(of(members)),
        }
        Ok(())
    }
}

/// Returns the pattern of tracepoints that an event is.
fn pattern<'p>(event: &'p Parsed<'_>) -> Option<&'p str> {
    match &event.spec.event {
        Event::Named(name) if name.contains(':') && name.contains(['*', '?']) => Some(name),
        _ => None,
    }
}
