//! Writing events, so that reading gives the same event back.

use std::fmt;

use crate::{Breakpoint, Event, EventSpec, GroupSpec, PmuEvent, RawEvent, Term, TermValue};

use crate::words::{is_name, is_part, is_plain_name, is_plain_value, is_setting, is_tracepoint};

use modifiers::{group_letters, letters};
use quoted::MaybeQuoted;

mod modifiers;
mod probe;
mod quoted;

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Hardware(event) => event.fmt(f),
            Self::Software(event) => event.fmt(f),
            Self::Cache(event) => event.fmt(f),
            Self::Raw(event) => event.fmt(f),
            Self::Breakpoint(event) => event.fmt(f),
            Self::Pmu(event) => event.fmt(f),
            Self::Probe(probe) => probe.fmt(f),
            Self::Tracepoint { system, name } => write!(
                f,
                "tracepoint:{}:{}",
                MaybeQuoted::unless_all(system, is_part),
                MaybeQuoted::unless_all(name, is_part)
            ),
            Self::Named(name) => MaybeQuoted {
                text: name,
                plain: is_plain_name(name),
            }
            .fmt(f),
        }
    }
}

/// `r01c0`, or `raw/config=0x1c0,config1=0x3ff/` where extra words are not zero.
impl fmt::Display for RawEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.has_extra_words() {
            return write!(f, "r{:04x}", self.config);
        }
        write!(f, "raw/config={:#x}", self.config)?;
        for (number, word) in (1..).zip([self.config1, self.config2, self.config3]) {
            if word != 0 {
                write!(f, ",config{number}={word:#x}")?;
            }
        }
        f.write_str("/")
    }
}

impl RawEvent {
    fn has_extra_words(&self) -> bool {
        self.config1 | self.config2 | self.config3 != 0
    }
}

/// `mem:0x400000/4:rw`.
impl fmt::Display for Breakpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let access = self.access.letters();
        write!(f, "mem:{:#x}/{}:{access}", self.address, self.len)
    }
}

/// `cpu/event=0xc0,umask=1/`.
impl fmt::Display for PmuEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut pmu = MaybeQuoted::unless_all(&self.pmu, is_name);
        pmu.plain &= self.pmu != "raw";
        write!(f, "{pmu}/")?;
        for (i, term) in self.terms.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{term}")?;
        }
        f.write_str("/")
    }
}

/// `umask=1`; numbers from 10 on are hexadecimal.
impl fmt::Display for Term {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut name = MaybeQuoted::unless_all(&self.name, is_name);
        name.plain &= !is_setting(&self.name);
        name.fmt(f)?;
        match &self.value {
            None => Ok(()),
            Some(TermValue::Number(value @ ..10)) => write!(f, "={value}"),
            Some(TermValue::Number(value)) => write!(f, "={value:#x}"),
            Some(TermValue::Text(text)) => {
                let plain = is_plain_value(text);
                write!(f, "={}", MaybeQuoted { text, plain })
            }
        }
    }
}

impl fmt::Display for EventSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_event(f, self)?;
        write_letters(f, self, &letters(self, None))
    }
}

/// The event with its condition. Before a slash no name is mistaken for one with modifiers.
fn write_event(f: &mut fmt::Formatter<'_>, spec: &EventSpec) -> fmt::Result {
    let Some(text) = spec.condition.as_deref() else {
        return write!(f, "{}", spec.event);
    };
    match &spec.event {
        Event::Named(name) if is_tracepoint(name) => f.write_str(name)?,
        event => write!(f, "{event}")?,
    }
    write!(f, "/filter={}/", MaybeQuoted { text, plain: false })
}

fn write_letters(f: &mut fmt::Formatter<'_>, spec: &EventSpec, letters: &str) -> fmt::Result {
    let ends_in_slash = match &spec.event {
        Event::Pmu(_) => true,
        Event::Raw(raw) => raw.has_extra_words(),
        _ => spec.condition.is_some(),
    };
    if !letters.is_empty() && !ends_in_slash {
        f.write_str(":")?;
    }
    f.write_str(letters)
}

/// Members, and of the attributes those that have letters.
impl fmt::Display for GroupSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // After a name of its own W and S would be a part of it.
        let is_in_braces = self.attributes.weak || self.attributes.sampled_by_leader;
        if let ([only], false) = (self.members.as_slice(), is_in_braces) {
            write_event(f, only)?;
            return write_letters(f, only, &letters(only, Some(&self.attributes)));
        }
        f.write_str("{")?;
        for (i, member) in self.members.iter().enumerate() {
            let comma = if i == 0 { "" } else { "," };
            write!(f, "{comma}{member}")?;
        }
        f.write_str("}")?;
        match group_letters(&self.attributes).as_str() {
            "" => Ok(()),
            letters => write!(f, ":{letters}"),
        }
    }
}
