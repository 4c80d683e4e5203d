//! Reading groups, and lists of them.

use crate::{Attributes, EventSpec, GroupSpec};

use super::cursor::{Cursor, Fault};
use super::modifiers::Modifiers;

impl Cursor<'_> {
    /// Reads a list of groups and lone events, up to the end of the text.
    pub(super) fn take_list(&mut self) -> Result<Vec<GroupSpec>, Fault> {
        // Most lists are of one.
        let mut groups = Vec::with_capacity(1);
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
    pub(super) fn take_group(&mut self) -> Result<GroupSpec, Fault> {
        self.skip_space();
        let mut group = GroupSpec::default();
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
            let modifiers = Modifiers::after_colon(self)?;
            for member in &mut group.members {
                modifiers.apply(member)?;
            }
            set_attributes(&mut group.attributes, &modifiers);
            self.skip_space();
        } else {
            group.members.reserve_exact(1);
            self.take_member(&mut group)?;
        }
        Ok(group)
    }

    /// Reads a member with the space around it.
    fn take_member(&mut self, group: &mut GroupSpec) -> Result<(), Fault> {
        self.skip_space();
        if self.peek() == Some('{') {
            return Err(Fault::new(self.at(), "a group cannot hold a group"));
        }
        let (event, modifiers) = self.take_event()?;
        let mut spec = EventSpec::new(event);
        modifiers.apply(&mut spec)?;
        if group.members.is_empty() {
            set_attributes(&mut group.attributes, &modifiers);
        } else if let Some(at) = modifiers.at
            && (modifiers.pinned
                || modifiers.exclusive
                || modifiers.weak
                || modifiers.sampled_by_leader)
        {
            return Err(Fault::new(
                at,
                "D, e, W and S belong to a whole group, not to a later member",
            )
            .with_hint("put them after the closing brace, as in {a,b}:D, or on the first member"));
        }
        group.members.push(spec);
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
