//! Reading one event.

use quipu_hal::words::{
    after_perf, are_levels, are_modifiers, assignment, begins_name, consists_of, has_mask,
    is_kernel_name, is_name, is_number, is_part, is_plain_value, is_tracepoint, is_value,
    raw_digits,
};
use quipu_hal::{Breakpoint, BreakpointAccess, Event, PmuEvent, RawEvent, Term, TermValue};

use crate::cursor::{Cursor, Fault};
use crate::libpfm4;
use crate::modifiers::Modifiers;
use crate::settings::Settings;

const QUOTE: &str = "put a name with such a character in single quotes";

/// Length that `perf` and this module assume when none is given.
const DEFAULT_LEN: u8 = 4;

impl Cursor<'_, '_> {
    /// Reads an event and its modifiers.
    pub(crate) fn take_event(&mut self) -> Result<(Event, Modifiers), Fault> {
        if let Some(name) = self.take_quoted()? {
            return if self.eat('/') {
                self.take_pmu(&name, None)
            } else {
                Ok((Event::Named(name), Modifiers::after_colon(self)?))
            };
        }
        let start = *self;
        let at = self.at();
        let word = self.take_word();
        if word.is_empty() {
            return Err(self.unexpected("an event"));
        }
        let colon = word.bytes().position(|byte| byte == b':');
        if let Some(colon) = colon
            && let Some(take) = taker(&word[..colon])
        {
            *self = start.past(colon + 1);
            return take(self);
        }
        if !self.eat('/') {
            return self.take_bare(word, at);
        }
        if is_tracepoint(word) {
            let event = Event::Named(word.to_owned());
            return Ok((event, self.take_condition()?));
        }
        match word.find(|c| !is_name(c)) {
            Some(bad) => Err(Fault::new(
                at + bad,
                "expected the name of a PMU before '/', without ':' and '='",
            )
            .with_hint(QUOTE)),
            None if word == "raw" => self.take_raw(),
            None => {
                let known = match Event::generalized(word) {
                    Some(event) => Some(event),
                    None => raw_bits(word, at)?.map(Event::from),
                };
                self.take_pmu(word, known)
            }
        }
    }

    /// The fault of finding something else than `what`, perhaps because it is part of a name.
    pub(crate) fn unexpected(&self, what: &str) -> Fault {
        let fault = self.expected(what);
        match self.peek() {
            Some(c) if !",{}/'".contains(c) => fault.with_hint(QUOTE),
            _ => fault,
        }
    }

    /// Reads a word that stands alone, with libpfm4's modifiers within it.
    fn take_bare(&self, word: &str, at: usize) -> Result<(Event, Modifiers), Fault> {
        let mut parts = word.split(':').skip(1);
        if parts.all(|part| assignment(part).is_none()) {
            return self.bare(word, at);
        }
        let mut assigned = Modifiers::NONE;
        let mut rest: Vec<&str> = Vec::new();
        let mut part_at = at;
        for part in word.split(':') {
            match assignment(part).filter(|_| part_at > at) {
                Some((key, value)) => assigned.assign(key, value, part_at)?,
                None => rest.push(part),
            }
            part_at += part.len() + 1;
        }
        if !self.takes_settings && assigned.settings != Settings::NONE {
            return Err(Fault::new(
                at,
                "period and freq are for samples, not for an event to count",
            ));
        }
        let (event, letters) = self.bare(&rest.join(":"), at)?;
        Ok((event, assigned.with_letters(letters)))
    }

    /// Reads a word that stands alone, as a generalized event, raw bits or a name, with modifiers.
    fn bare(&self, word: &str, at: usize) -> Result<(Event, Modifiers), Fault> {
        if let Some((pmu, rest)) = after_perf(word) {
            return self.of_perf(pmu, rest, at + word.len() - rest.len());
        }
        if is_kernel_name(word)
            && let Some(read) = kernel_event(word, at)
        {
            return read;
        }
        let (first, after) = match word.split_once(':') {
            Some((first, after)) => (first, Some(after)),
            None => (word, None),
        };
        let known = match self.generalized(first) {
            // Native events are called L1D and ITLB too, and they have unit masks.
            Some(Event::Cache(_)) if has_mask(word) || self.ends_in_mask(word) => None,
            Some(event) => Some(event),
            None => raw_bits(first, at)?.map(Event::from),
        };
        if let Some(event) = known {
            let modifiers = match after {
                None => Modifiers::NONE,
                Some(letters) => Modifiers::read(letters, at + first.len() + 1)
                    .map_err(|fault| fault.with_hint(quote_hint(word)))?,
            };
            return Ok((event, modifiers));
        }
        let (name, modifiers) = match word.rsplit_once(':') {
            _ if self.ends_in_mask(word) => (word, Modifiers::NONE),
            Some((name, letters)) if letters.is_empty() || are_modifiers(letters) => {
                let letters_at = at + name.len() + 1;
                let modifiers = Modifiers::read(letters, letters_at)
                    .map_err(|fault| fault.with_hint(quote_hint(word)))?;
                if let Some((_, more)) = name.rsplit_once(':')
                    && are_modifiers(more)
                    && !self.ends_in_mask(name)
                {
                    return Err(Fault::new(
                        letters_at - 1,
                        format!("modifiers stand together: \":{more}{letters}\""),
                    )
                    .with_hint(format!(
                        "if {more:?} belongs to the name, write '{name}':{letters}"
                    )));
                }
                (name, modifiers)
            }
            _ => (word, Modifiers::NONE),
        };
        check_name(name, at)?;
        let (name, modifiers) = levels_within(name, modifiers, at)?;
        Ok((Event::Named(name), modifiers))
    }

    /// Reads an event of one of libpfm4's PMUs `perf` and `perf_raw`.
    fn of_perf(&self, pmu: &str, text: &str, at: usize) -> Result<(Event, Modifiers), Fault> {
        let (first, after) = match text.split_once(':') {
            Some((first, after)) => (first, Some(after)),
            None => (text, None),
        };
        let known = match pmu.eq_ignore_ascii_case(libpfm4::PMU) {
            true => libpfm4::in_any_case(first),
            false => raw_bits(first, at)?.map(Event::from),
        };
        if let Some(event) = known {
            return Ok((event, modifiers_of(after, at + first.len() + 1)?));
        }
        let unknown = || {
            let reason = format!("the PMU {pmu} has no event {text}");
            Fault::new(at, reason).with_hint("`quipu list` shows the generalized events")
        };
        if pmu.eq_ignore_ascii_case(libpfm4::PMU) {
            if let Some(read) = kernel_event(text, at) {
                return read;
            }
            // Tracepoints are events of this PMU, too.
            let (system, name) = text.split_once(':').ok_or_else(unknown)?;
            let (name, letters) = match name.split_once(':') {
                Some((name, letters)) => (name, Some(letters)),
                None => (name, None),
            };
            if is_tracepoint(&format!("{system}:{name}")) {
                let letters_at = at + system.len() + name.len() + 2;
                let event = Event::tracepoint(system, name);
                return Ok((event, modifiers_of(letters, letters_at)?));
            }
        }
        Err(unknown())
    }

    /// Reads a tracepoint after its prefix.
    fn take_tracepoint(&mut self) -> Result<(Event, Modifiers), Fault> {
        let system = self.take_text(is_part, "the system of a tracepoint")?;
        if !self.eat(':') {
            return Err(self.expected("':' and the name of the tracepoint"));
        }
        let name = self.take_text(is_part, "the name of a tracepoint")?;
        let modifiers = match self.eat('/') {
            true => self.take_condition()?,
            false => Modifiers::after_colon(self)?,
        };
        Ok((Event::Tracepoint { system, name }, modifiers))
    }

    /// Reads the condition of a tracepoint, the second slash, and modifiers.
    fn take_condition(&mut self) -> Result<Modifiers, Fault> {
        let at = self.at();
        let mut condition = None;
        let settings = self.take_terms(&mut |at, Term { name, value }| match value {
            Some(TermValue::Text(text)) if name == "filter" => {
                condition = Some(text);
                Ok(())
            }
            _ => Err(Fault::new(
                at,
                "a tracepoint takes filter='CONDITION' between slashes, name, period and freq",
            )),
        })?;
        let mut modifiers = Modifiers::after_slash(self)?;
        modifiers.condition = condition;
        modifiers.settings = settings;
        modifiers.at = modifiers.at.or(Some(at));
        Ok(modifiers)
    }

    /// Reads a breakpoint after its prefix.
    fn take_breakpoint(&mut self) -> Result<(Event, Modifiers), Fault> {
        let address = self.take_number("an address")?;
        let len = if self.eat('/') {
            let at = self.at();
            let len = self.take_number("a length in bytes")?;
            Some(u8::try_from(len).map_err(|_| Fault::new(at, "length of more than 255 bytes"))?)
        } else {
            None
        };
        let mut access = BreakpointAccess::ReadWrite;
        let mut modifiers = Modifiers::NONE;
        if self.eat(':') {
            let at = self.at();
            let word = self.take_while(is_part);
            if word.starts_with(['r', 'w', 'x']) {
                access = access_from_letters(word)
                    .ok_or_else(|| Fault::new(at, "expected r, w, rw or x as the access"))?;
                modifiers = Modifiers::after_colon(self)?;
            } else {
                modifiers = Modifiers::read(word, at).map_err(|fault| {
                    fault.with_hint("an access, r, w, rw or x, comes before the modifiers")
                })?;
            }
        }
        let len = len.unwrap_or(match access {
            BreakpointAccess::Execute => Breakpoint::EXECUTE_LEN,
            _ => DEFAULT_LEN,
        });
        let breakpoint = Breakpoint {
            address,
            len,
            access,
        };
        Ok((breakpoint.into(), modifiers))
    }

    /// Reads the terms of a PMU's event, the second slash, and modifiers. An event that is `known` by the word before the
    /// slashes is meant where these hold settings alone.
    fn take_pmu(&mut self, word: &str, known: Option<Event>) -> Result<(Event, Modifiers), Fault> {
        let mut terms = Vec::new();
        let settings = self.take_terms(&mut |_, term| {
            terms.push(term);
            Ok(())
        })?;
        let mut modifiers = Modifiers::after_slash(self)?;
        let has_settings = settings != Settings::NONE;
        modifiers.settings = settings;
        match known {
            Some(event) if terms.is_empty() && has_settings => Ok((event, modifiers)),
            _ => {
                let pmu = word.to_owned();
                Ok((PmuEvent { pmu, terms }.into(), modifiers))
            }
        }
    }

    /// Reads the words of a raw event, the second slash, and modifiers.
    fn take_raw(&mut self) -> Result<(Event, Modifiers), Fault> {
        let mut words = [None; 4];
        let settings = self.take_terms(&mut |at, Term { name, value }| {
            let index = match name.as_str() {
                "config" => 0,
                "config1" => 1,
                "config2" => 2,
                "config3" => 3,
                _ => {
                    let reason = "expected config, config1, config2 or config3";
                    return Err(Fault::new(at, reason)
                        .with_hint("fields are the terms of a PMU: cpu/event=0xc0/"));
                }
            };
            let Some(TermValue::Number(value)) = value else {
                return Err(Fault::new(at, format!("{name} needs a number")));
            };
            match words[index].replace(value) {
                Some(_) => Err(Fault::new(at, format!("{name} for the second time"))),
                None => Ok(()),
            }
        })?;
        let mut modifiers = Modifiers::after_slash(self)?;
        modifiers.settings = settings;
        let [config, extra @ ..] = words.map(Option::unwrap_or_default);
        let raw = RawEvent::new(config).with_extra(extra);
        Ok((raw.into(), modifiers))
    }

    /// Reads terms up to and past the second slash, giving each with its place to `each`, and returns the settings.
    fn take_terms(
        &mut self,
        each: &mut dyn FnMut(usize, Term) -> Result<(), Fault>,
    ) -> Result<Settings, Fault> {
        let mut settings = Settings::NONE;
        self.skip_space();
        if self.eat('/') {
            return Ok(settings);
        }
        loop {
            self.skip_space();
            let at = self.at();
            if !self.take_setting(&mut settings)? {
                each(at, self.take_term()?)?;
            }
            self.skip_space();
            if self.eat('/') {
                return Ok(settings);
            }
            if !self.eat(',') {
                return Err(self.expected("',' and another term, or '/'"));
            }
        }
    }

    fn take_term(&mut self) -> Result<Term, Fault> {
        let name = self.take_text(is_name, "a term")?;
        if !self.eat('=') {
            return Ok(Term { name, value: None });
        }
        let at = self.at();
        let value = if let Some(text) = self.take_quoted()? {
            TermValue::Text(text)
        } else {
            let word = self.take_while(is_value);
            if word.is_empty() {
                return Err(self.expected("a value"));
            }
            value(word, at)?
        };
        Ok(Term {
            name,
            value: Some(value),
        })
    }

    /// Reads quoted text, or a word of these characters.
    pub(crate) fn take_text(
        &mut self,
        allowed: fn(char) -> bool,
        what: &str,
    ) -> Result<String, Fault> {
        if let Some(text) = self.take_quoted()? {
            return Ok(text);
        }
        match self.take_while(allowed) {
            "" => Err(self.expected(what)),
            word => Ok(word.to_owned()),
        }
    }

    pub(crate) fn take_number(&mut self, what: &str) -> Result<u64, Fault> {
        let at = self.at();
        match self.take_while(|c| c.is_ascii_alphanumeric()) {
            "" => Err(self.expected(what)),
            word => number(word, at),
        }
    }
}

/// Reads what follows a word and its colon.
type Taker = fn(&mut Cursor<'_, '_>) -> Result<(Event, Modifiers), Fault>;

/// Returns the reader of the events that begin with a word and a colon, where these are none of its name.
fn taker(word: &str) -> Option<Taker> {
    Some(match word {
        "tracepoint" => |cursor| cursor.take_tracepoint(),
        "mem" => |cursor| cursor.take_breakpoint(),
        "kprobe" => |cursor| cursor.take_probe(false, false),
        "kretprobe" => |cursor| cursor.take_probe(false, true),
        "uprobe" => |cursor| cursor.take_probe(true, false),
        "uretprobe" => |cursor| cursor.take_probe(true, true),
        _ => return None,
    })
}

/// Reads one of the kernel's names of the generalized events, with modifiers; `None` if it is none.
fn kernel_event(text: &str, at: usize) -> Option<Result<(Event, Modifiers), Fault>> {
    let (event, letters) = libpfm4::kernel_event(text)?;
    let letters_at = at + text.len() - letters.map_or(0, str::len);
    Some(modifiers_of(letters, letters_at).map(|modifiers| (event, modifiers)))
}

/// Reads letters that stand at this place, if there are any.
fn modifiers_of(letters: Option<&str>, at: usize) -> Result<Modifiers, Fault> {
    letters.map_or(Ok(Modifiers::NONE), |letters| Modifiers::read(letters, at))
}

/// Takes privilege levels out of the middle of a name, where libpfm4 allows them:
/// `EVENT:u:cmask=2` is `EVENT:cmask=2`, counted in user mode.
fn levels_within(name: &str, after: Modifiers, at: usize) -> Result<(String, Modifiers), Fault> {
    let mut found: Option<(&str, usize)> = None;
    let mut part_at = at;
    for (i, part) in name.split(':').enumerate() {
        if i > 0 && are_levels(part) {
            if let Some((levels, _)) = found {
                return Err(together(levels, part, part_at));
            }
            found = Some((part, part_at));
        }
        part_at += part.len() + 1;
    }
    let Some((levels, levels_at)) = found else {
        return Ok((name.to_owned(), after));
    };
    if let Some(after_at) = after.at {
        return Err(Fault::new(
            after_at,
            format!("the name has levels already: \":{levels}\"; modifiers stand together"),
        ));
    }
    let start = levels_at - at;
    let (before, rest) = (&name[..start - 1], &name[start + levels.len()..]);
    Ok((
        format!("{before}{rest}"),
        Modifiers::read(levels, levels_at)?,
    ))
}

fn together(first: &str, second: &str, at: usize) -> Fault {
    Fault::new(
        at,
        format!("modifiers stand together: \":{first}{second}\""),
    )
}

fn quote_hint(word: &str) -> String {
    const LONGEST: usize = 60;
    if word.len() <= LONGEST {
        format!("if all of it is a name, quote it: '{word}'")
    } else {
        "if all of it is a name, put it in single quotes".to_owned()
    }
}

/// Refuses words that cannot be a name.
fn check_name(name: &str, at: usize) -> Result<(), Fault> {
    let first = name.split(':').next().unwrap_or_default();
    if is_number(first) {
        return Err(Fault::new(at, "expected an event, found a number")
            .with_hint("raw bits are written r01c0 or raw/config=0x1c0/"));
    }
    if !begins_name(name) {
        let reason = "expected an event, whose name starts with a letter, a digit or '_'";
        return Err(Fault::new(at, reason));
    }
    Ok(())
}

/// The raw event that `r` and hexadecimal digits mean.
fn raw_bits(word: &str, at: usize) -> Result<Option<RawEvent>, Fault> {
    let Some(digits) = raw_digits(word) else {
        return Ok(None);
    };
    match bits_of(digits, 16) {
        Some(config) => Ok(Some(RawEvent::new(config))),
        None => Err(Fault::new(at, "raw event of more than 64 bits")
            .with_hint("if it is a name, put it in single quotes")),
    }
}

fn access_from_letters(letters: &str) -> Option<BreakpointAccess> {
    BreakpointAccess::ALL
        .iter()
        .copied()
        .find(|access| access.letters() == letters)
        .or((letters == "wr").then_some(BreakpointAccess::ReadWrite))
}

/// The value that an unquoted word means: a number if it starts with a digit.
fn value(word: &str, at: usize) -> Result<TermValue, Fault> {
    if is_plain_value(word) {
        return Ok(TermValue::Text(word.to_owned()));
    }
    number(word, at)
        .map(TermValue::Number)
        .map_err(|fault| fault.with_hint("put a value that is no number in single quotes"))
}

/// A decimal number, or a hexadecimal one after `0x`.
fn number(word: &str, at: usize) -> Result<u64, Fault> {
    let (digits, radix, is_digit): (_, _, fn(char) -> bool) = match word.strip_prefix("0x") {
        Some(digits) => (digits, 16, |c| c.is_ascii_hexdigit()),
        None => (word, 10, |c| c.is_ascii_digit()),
    };
    if !consists_of(digits, is_digit) {
        return Err(Fault::new(
            at,
            "expected a number, decimal or hexadecimal after 0x",
        ));
    }
    bits_of(digits, radix).ok_or_else(|| Fault::new(at, "number of more than 64 bits"))
}

/// Returns the number that digits mean; `None` if it has more than 64 bits.
pub(crate) fn bits_of(digits: &str, radix: u32) -> Option<u64> {
    u64::from_str_radix(digits, radix).ok()
}
