//! The events of a set: added and removed.

use std::ffi::c_int;
use std::sync::Arc;

use crate::code::{ECMP_DISABLED, ECNFLCT, EINVAL, ENOCMP, ENOEVNT, Outcome};
use crate::component::CPU;
use crate::component::disabled::disabled;
use crate::event::native::{Together, is_native, native};
use crate::event::{preset, user_events};
use crate::event_set::set::Set;

impl Set {
    /// Adds an event, if it can be counted with the others.
    pub(crate) fn add(&mut self, code: c_int) -> Outcome {
        self.join(code)?;
        if let Err(code) = self.open_added() {
            self.events.pop();
            // What was there before counts again; it did so before.
            let _ = self.open();
            return Err(code);
        }
        Ok(())
    }

    /// Adds events in the order given, up to the first that cannot be added: returns how many, and why not more.
    pub(crate) fn add_all(&mut self, mut codes: impl Iterator<Item = c_int>) -> (usize, Outcome) {
        let before = self.events.len();
        let joined = codes.try_for_each(|code| self.join(code));
        let added = self.events.len() - before;
        // Opened at once they cost less; where that fails, adding one by one shows which of them is in the way.
        if added > 1 && self.open_added().is_ok() {
            return (added, joined);
        }
        let added = self.events.split_off(before);
        for (at, code) in added.iter().enumerate() {
            if let Err(code) = self.add(*code) {
                return (at, Err(code));
            }
        }
        (added.len(), joined)
    }

    /// Puts an event behind the others, not opened yet.
    fn join(&mut self, code: c_int) -> Outcome {
        let component = match is_native(code) {
            true => native(code, |native| native.component).ok(),
            false => (preset::is_preset(code) || preset::is_user_defined(code)).then_some(CPU),
        };
        if component.is_none() && !is_native(code) {
            return Err(EINVAL);
        }
        self.require_stopped()?;
        let component = component.ok_or(ENOCMP)?;
        let own = user_events::by_code(code);
        if preset::is_user_defined(code) && own.is_none() {
            return Err(EINVAL);
        }
        if disabled(component).is_some() {
            return Err(ECMP_DISABLED);
        }
        match self.component {
            None => self.assign(component),
            Some(assigned) if assigned != component => return Err(EINVAL),
            Some(_) => {}
        }
        if self.events.contains(&code) {
            return Err(ECNFLCT);
        }
        // Events of one set are counted in one place.
        let of_one = |code: c_int| Together::of(&[code]).cpu;
        if self
            .events
            .first()
            .is_some_and(|first| of_one(*first) != of_one(code))
        {
            return Err(EINVAL);
        }
        // A code that no preset has is here one that cannot be counted.
        let known = match is_native(code) {
            true => native(code, |_| ()),
            // Its terms were found when it was defined.
            false if own.is_some() => Ok(()),
            false => {
                preset::by_code(code).and_then(|(index, _)| preset::query_on(index, &self.target()))
            }
        };
        known.map_err(|_| ENOEVNT)?;
        self.events.push(code);
        Ok(())
    }

    /// Removes an event.
    pub(crate) fn remove(&mut self, code: c_int) -> Outcome {
        let is_event = is_native(code) || preset::is_preset(code);
        if !is_event && user_events::by_code(code).is_none() {
            return Err(EINVAL);
        }
        self.require_stopped()?;
        let at = self.index(code).ok_or(EINVAL)?;
        self.overflow.forget(code);
        self.profile.forget(code);
        self.note_overflow();
        self.events.remove(at);
        self.open()
    }

    /// Removes events in the order given, up to the first that cannot be removed: returns how many, and why not more.
    pub(crate) fn remove_all(&mut self, codes: impl Iterator<Item = c_int>) -> (usize, Outcome) {
        let mut removed = 0;
        for code in codes {
            if let Err(code) = self.remove(code) {
                return (removed, Err(code));
            }
            removed += 1;
        }
        (removed, Ok(()))
    }

    /// Removes all events; the component stays unassigned from then on, and so do options.
    pub(crate) fn clean_up(&mut self) -> Outcome {
        if self.component.is_none() {
            return Ok(());
        }
        self.require_stopped()?;
        let master = Arc::clone(&self.master);
        *self = Self::new(master);
        Ok(())
    }
}
