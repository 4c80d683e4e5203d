//! Reading groups, and lists of them.

use quipu_hal::{Attributes, EventSpec};

use crate::cursor::{Cursor, Fault};
use crate::modifiers::Modifiers;
use crate::{Parsed, ParsedGroup};

impl<'t> Cursor<'t, '_> {
    /// Reads a list of groups and lone events, up to the end of the text.
    pub(crate) fn take_list(&mut self) -> Result<Vec<ParsedGroup<'t>>, Fault> {
        let mut groups = Vec::new();
        loop {
            groups.push(self.take_group()?);
            if self.peek().is_none() {
                return Ok(groups);
            }
            if !self.eat(',') {
                return Err(self.unexpected("',' and another event"));
            }
        }
    }

    /// Reads a group in braces or a lone event, with the space around it.
    pub(crate) fn take_group(&mut self) -> Result<ParsedGroup<'t>, Fault> {
        self.skip_space();
        let mut group = ParsedGroup {
            members: Vec::new(),
            attributes: Attributes::default(),
            modifiers: "",
        };
        if self.eat('{') {
            loop {
                self.take_member(&mut group)?;
                if self.eat('}') {
                    break;
                }
                if !self.eat(',') {
                    return Err(self.unexpected("',' and another event, or '}'"));
                }
            }
            let brace = *self;
            let modifiers = Modifiers::after_colon(self)?;
            for member in &mut group.members {
                modifiers.apply(&mut member.spec)?;
            }
            group.modifiers = self.since(&brace).trim_start_matches(':');
            set_attributes(&mut group.attributes, &modifiers);
            self.skip_space();
        } else {
            self.take_member(&mut group)?;
        }
        Ok(group)
    }

    /// Reads a member with the space around it.
    fn take_member(&mut self, group: &mut ParsedGroup<'t>) -> Result<(), Fault> {
        self.skip_space();
        if self.peek() == Some('{') {
            return Err(Fault::new(self.at(), "a group cannot hold a group"));
        }
        let start = *self;
        let (event, modifiers) = self.take_event()?;
        let mut spec = EventSpec::new(event);
        modifiers.apply(&mut spec)?;
        if group.members.is_empty() {
            set_attributes(&mut group.attributes, &modifiers);
        } else if let Some(at) = modifiers.at
            && modifiers.are_of_group()
        {
            return Err(Fault::new(
                at,
                "D, e, W and S belong to a whole group, not to a later member",
            )
            .with_hint("put them after the closing brace, as in {a,b}:D, or on the first member"));
        }
        group.members.push(Parsed {
            spec,
            as_written: self.since(&start),
            names_levels: modifiers.name_levels(),
            letters: modifiers
                .letters
                .map(|letters| letters.start - start.at()..letters.end - start.at()),
            settings: modifiers.settings,
            is_of_pattern: false,
        });
        self.skip_space();
        Ok(())
    }
}

fn set_attributes(attributes: &mut Attributes, modifiers: &Modifiers) {
    attributes.pinned |= modifiers.pinned;
    attributes.exclusive |= modifiers.exclusive;
    attributes.weak |= modifiers.weak;
    attributes.sampled_by_leader |= modifiers.sampled_by_leader;
}
