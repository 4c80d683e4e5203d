//! perf's event text beside the event: its name in reports (`name=`), how to sample it (`period=`,
//! `freq=`), and tracepoints by pattern (`sched:*`).
//!
//! The rest is text of [`quipu_hal::text`].

use std::borrow::Cow;

use quipu_hal::text;

/// Settings that the text of one event holds beside the event.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The name in reports.
    pub name: Option<String>,
    /// The number of events from sample to sample.
    pub period: Option<u64>,
    /// The number of samples in a second.
    pub frequency: Option<u64>,
}

/// A list of events as the library reads it, and what was said beside each event, in their order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventText {
    /// The list of events.
    pub list: String,
    /// Settings of each event.
    pub said: Vec<Said>,
}

impl EventText {
    /// Reads a list of events and groups. `tracepoints` returns the tracepoints that a pattern stands for.
    pub fn read(
        text: &str,
        tracepoints: &dyn Fn(&str) -> Result<Vec<String>, String>,
    ) -> Result<Self, String> {
        let mut read = Self {
            list: String::with_capacity(text.len()),
            said: Vec::new(),
        };
        let mut rest = text;
        while !rest.is_empty() {
            // Braces, commas, spaces, and the modifiers of a group.
            let start = rest
                .find(|c: char| !"{},: \t\n".contains(c))
                .unwrap_or(rest.len());
            let closes_group = rest[..start].contains('}') && rest[..start].ends_with(':');
            read.list.push_str(&rest[..start]);
            rest = &rest[start..];
            let end = end_of_event(rest);
            let (event, after) = rest.split_at(end);
            match event {
                "" => {}
                modifiers if closes_group => read.list.push_str(modifiers),
                event => read.event(event, tracepoints)?,
            }
            rest = after;
        }
        Ok(read)
    }

    fn event(
        &mut self,
        event: &str,
        tracepoints: &dyn Fn(&str) -> Result<Vec<String>, String>,
    ) -> Result<(), String> {
        let (name, after) = pattern(event);
        if name.contains(['*', '?']) && name.contains(':') {
            let found = tracepoints(name)?;
            let named = found
                .iter()
                .map(|tracepoint| format!("{tracepoint}{after}"));
            self.list.push_str(&named.collect::<Vec<_>>().join(","));
            self.said.extend(found.iter().map(|_| Said::default()));
            return Ok(());
        }
        let (event, said) = without_settings(event)?;
        self.list.push_str(&event);
        self.said.push(said);
        Ok(())
    }
}

/// Returns the length of the event at the start of a text: to the next comma or brace outside of slashes and quotes.
fn end_of_event(text: &str) -> usize {
    // Their slashes stand between other things than terms.
    let others = ["uprobe:", "uretprobe:", "kprobe:", "kretprobe:", "mem:"];
    let has_no_terms = others.iter().any(|prefix| text.starts_with(prefix));
    let (mut quoted, mut between) = (false, false);
    for (at, c) in text.char_indices() {
        match c {
            '\'' => quoted = !quoted,
            '/' if !quoted && !has_no_terms => between = !between,
            ',' | '}' if !quoted && !between => return at,
            _ => {}
        }
    }
    text.len()
}

/// Returns the name of a tracepoint, and the modifiers or condition after it.
fn pattern(event: &str) -> (&str, &str) {
    if let Some(slash) = event.find('/') {
        return event.split_at(slash);
    }
    match event.match_indices(':').nth(1) {
        Some((at, _)) => event.split_at(at),
        None => (event, ""),
    }
}

/// Returns an event without the terms that say something beside it, and what they say.
fn without_settings(event: &str) -> Result<(Cow<'_, str>, Said), String> {
    let mut said = Said::default();
    let Some((word, rest)) = event.split_once('/') else {
        return Ok((event.into(), said));
    };
    let Some((terms, modifiers)) = rest.rsplit_once('/').filter(|_| !word.contains(':')) else {
        return Ok((event.into(), said));
    };
    let mut kept = Vec::new();
    for term in split_terms(terms) {
        let (key, value) = term.split_once('=').unwrap_or((term, ""));
        let number = || {
            value
                .trim()
                .parse::<u64>()
                .ok()
                .filter(|n| *n > 0)
                .ok_or_else(|| format!("{term}: {key} takes a positive number"))
        };
        match key.trim() {
            "name" if !value.is_empty() => {
                said.name = Some(value.trim().trim_matches('\'').to_owned());
            }
            "period" => said.period = Some(number()?),
            "freq" => said.frequency = Some(number()?),
            _ => kept.push(term),
        }
    }
    if said == Said::default() {
        return Ok((event.into(), said));
    }
    let is_event = |word: &str| {
        let groups = text::parse_list(word).unwrap_or_default();
        let mut members = groups.iter().flat_map(|group| &group.members);
        members.all(|member| !matches!(member.event, quipu::Event::Named(_)))
    };
    // `cycles/period=1000/u` is an event whose slashes hold nothing of the event itself.
    let event = match kept.is_empty() && is_event(word) {
        true if modifiers.is_empty() => word.to_owned(),
        true => format!("{word}:{}", modifiers.trim_start_matches(':')),
        false => format!("{word}/{}/{modifiers}", kept.join(",")),
    };
    Ok((event.into(), said))
}

/// Returns the terms between commas outside of quotes.
fn split_terms(terms: &str) -> Vec<&str> {
    let mut quoted = false;
    let is_between = |c: char| {
        quoted ^= c == '\'';
        c == ',' && !quoted
    };
    terms.split(is_between).collect()
}

/// Returns the tracepoints of this system that a pattern with `*` and `?` stands for.
#[cfg(target_os = "linux")]
pub fn tracepoints(pattern: &str) -> Result<Vec<String>, String> {
    let tracefs = quipu_linux::tracefs::Tracefs::find();
    let all = tracefs
        .as_ref()
        .map_err(Clone::clone)
        .and_then(|tracefs| tracefs.tracepoints());
    let all = all.map_err(|e| format!("{e:#}"))?;
    let names = all.map(|(system, name)| format!("{system}:{name}"));
    let mut found: Vec<String> = names
        .filter(|name| matches(name.as_bytes(), pattern.as_bytes()))
        .collect();
    found.sort();
    match found.is_empty() {
        true => Err(format!(
            "no tracepoint is called {pattern}; `quipu list tracepoint` shows them"
        )),
        false => Ok(found),
    }
}

/// Fails.
#[cfg(not(target_os = "linux"))]
pub fn tracepoints(pattern: &str) -> Result<Vec<String>, String> {
    Err(format!("{pattern}: only Linux has tracepoints"))
}

/// Returns true if a name is one that a pattern stands for: `*` is any text, `?` any byte.
pub fn matches(name: &[u8], pattern: &[u8]) -> bool {
    match (pattern.split_first(), name.split_first()) {
        (None, None) => true,
        (Some((b'*', rest)), _) if matches(name, rest) => true,
        (Some((b'*', _)), Some((_, name))) => matches(name, pattern),
        (Some((b'?', rest)), Some((_, name))) => matches(name, rest),
        (Some((wanted, rest)), Some((c, name))) => wanted == c && matches(name, rest),
        _ => false,
    }
}
