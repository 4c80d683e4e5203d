//! Reading groups, and lists of them.

use crate::{Attributes, EventSpec, GroupSpec};

use super::cursor::{Cursor, Fault};
use super::event::{take_event, unexpected};
use super::modifiers::Modifiers;

/// Reads a list of groups and lone events, up to the end of the text.
pub(super) fn take_list(cursor: &mut Cursor<'_>) -> Result<Vec<GroupSpec>, Fault> {
    // Most lists are of one.
    let mut groups = Vec::with_capacity(1);
    loop {
        groups.push(take_group(cursor)?);
        if cursor.peek().is_none() {
            return Ok(groups);
        }
        if !cursor.eat(',') {
            return Err(unexpected(cursor, "',' and another event"));
        }
    }
}

/// Reads a group in braces or a lone event, with the space around it.
pub(super) fn take_group(cursor: &mut Cursor<'_>) -> Result<GroupSpec, Fault> {
    cursor.skip_space();
    let mut group = GroupSpec::default();
    if cursor.eat('{') {
        loop {
            take_member(cursor, &mut group)?;
            if cursor.eat('}') {
                break;
            }
            if !cursor.eat(',') {
                return Err(unexpected(cursor, "',' and another event, or '}'"));
            }
        }
        let modifiers = Modifiers::after_colon(cursor)?;
        for member in &mut group.members {
            modifiers.apply(member)?;
        }
        set_attributes(&mut group.attributes, &modifiers);
        cursor.skip_space();
    } else {
        group.members.reserve_exact(1);
        take_member(cursor, &mut group)?;
    }
    Ok(group)
}

/// Reads a member with the space around it.
fn take_member(cursor: &mut Cursor<'_>, group: &mut GroupSpec) -> Result<(), Fault> {
    cursor.skip_space();
    if cursor.peek() == Some('{') {
        return Err(Fault::new(cursor.at(), "a group cannot hold a group"));
    }
    let (event, modifiers) = take_event(cursor)?;
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
    cursor.skip_space();
    Ok(())
}

fn set_attributes(attributes: &mut Attributes, modifiers: &Modifiers) {
    attributes.pinned |= modifiers.pinned;
    attributes.exclusive |= modifiers.exclusive;
    attributes.weak |= modifiers.weak;
    attributes.sampled_by_leader |= modifiers.sampled_by_leader;
}
