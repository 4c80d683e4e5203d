//! The text form of events: names, terms, modifiers and groups, both ways.
//!
//! It is the language of `perf stat -e` (perf-list(1), `tools/perf/util/parse-events.l` of the
//! kernel), so what people know works here, with a few additions so that every [`Event`] can be
//! written. [`Event`], [`EventSpec`] and [`GroupSpec`] are read with [`str::parse`], a whole list
//! with [`parse_list`]; `Display` writes text that reads back as the same value.
//!
//! ```text
//! list       = item { "," item }
//! item       = event | group
//! group      = "{" event { "," event } "}" [ ":" modifiers ]
//! event      = ( name | raw | breakpoint | tracepoint | probe ) [ ":" modifiers ]
//!            | ( tracepoint | system ":" name ) "/" "filter=" text "/" [ [ ":" ] modifiers ]
//!            | pmu "/" [ term { "," term } ] "/" [ [ ":" ] modifiers ]
//! term       = name [ "=" ( number | text ) ]
//! raw        = "r" hexadecimal digits
//! breakpoint = "mem:" number [ "/" number ] [ ":" ( "r" | "w" | "rw" | "x" ) ]
//! tracepoint = "tracepoint:" system ":" name
//! probe      = ( "kprobe" | "kretprobe" ) ":" place | ( "uprobe" | "uretprobe" ) ":" path ":" place
//! place      = symbol [ "+" number ] | number
//! number     = decimal digits | "0x" hexadecimal digits
//! modifiers  = letters of "ukhGHIpPDeWSb" [ "-" letters of "ukhGH" ]
//! ```
//!
//! | text | event |
//! | --- | --- |
//! | `cycles`, `cs`, `L1-dcache-load-misses` | a generalized event: [`Hardware`], [`Software`] or [`CacheEvent`] |
//! | `r01c0` | [`RawEvent`], one word |
//! | `raw/config=0x1c0,config1=0x3ff/` | [`RawEvent`], several words |
//! | `cpu/event=0xc0,umask=1/`, `msr/tsc/` | [`PmuEvent`] |
//! | `mem:0x400000/4:rw` | [`Breakpoint`]; without a length 4 bytes, for `x` [`Breakpoint::EXECUTE_LEN`]; without an access `rw` |
//! | `tracepoint:sched:sched_switch` | [`Event::Tracepoint`] and nothing else |
//! | `syscalls:sys_enter_write/filter='fd == 1'/` | a tracepoint with a [condition](EventSpec::condition) |
//! | `kprobe:do_exit+4`, `uretprobe:/bin/sh:main` | [`Probe`](crate::Probe), with `ret` of returns |
//! | `sched:sched_switch`, `INST_RETIRED.ANY`, `EVENT:UMASK:c=2` | [`Event::Named`]: a native event, a preset or a tracepoint, whoever knows the name |
//! | `'cycles'`, `'two words'` | [`Event::Named`], whatever the text is |
//!
//! # Names and quotes
//!
//! The names of hardware and software events are read in their own letter case, the parts of cache
//! events in any ([`CacheEvent::from_name`]). A word consists of ASCII letters, digits and
//! `_.-+:=@#~*?[]`; a name starts with a letter, a digit or `_`, and no number is one. Any other
//! text is a name when it stands in single quotes, where `\'`, `\\` and `\u{7f}` stand for one
//! character. The names of PMUs and terms, the parts of a tracepoint and the text of a term may be
//! quoted too. Space is allowed around events and terms, not within them.
//!
//! # Modifiers
//!
//! | letters | meaning |
//! | --- | --- |
//! | `u` `k` `h` | count in user, kernel, hypervisor mode only |
//! | `G` `H` | count in guests, on the host only |
//! | `I` | do not count while idle |
//! | `-` and letters of `ukhGH` | do not count there: `:-k` is `:uh`, `:-ukh` counts in no mode |
//! | `p` `pp` `ppp` `P` | [`Precision`](crate::Precision) |
//! | `D` `e` `W` `S` | the group is [pinned, exclusive, weak, sampled by its leader](crate::Attributes); on its first member or after its brace |
//! | `b` | nothing: perf shares such a counter with other users by BPF |
//!
//! Modifiers stand together: `cycles:ukp`. Without letters an event counts everywhere; `perf` takes
//! a bare level to leave guests out, Quipu leaves out only what is said. The modifiers of a group
//! add to those of each member, as for `perf`: `{a:k,b}:u` is `{a:uk,b:u}`.
//!
//! After a generalized event or raw bits, `:` is followed by modifiers; a word after the name of a cache
//! makes it a native event's (`L1D:REPLACEMENT`). After another name, the last segment is modifiers when
//! it consists of letters of `ukhGHIpPDe-` alone (`X:Y:u`), and part of the name otherwise (`X:Y`); quotes decide
//! where a name ends (`'X:I'`, `'X:I':u`). So libpfm4's edge detection is `X:Y:e=1` here, as `X:Y:e` is an
//! exclusive group.
//!
//! Some events have unit masks of these letters: `L2_LD:I` of the P6 counts lines in the invalid state.
//! [`parse_list_with`] and [`parse_event_with`] read them so, where an event map knows them
//! ([`EventMap::ends_in_mask`](crate::EventMap::ends_in_mask)).
//!
//! # Examples
//!
//! Left what may be written, right how the same is displayed:
//!
//! ```
//! use quipu_hal::text::parse_list;
//!
//! for (text, displayed) in [
//!     ("cycles", "cycles"),
//!     ("cpu-cycles:u", "cycles:u"),
//!     ("cs", "context-switches"),
//!     ("l1d-read-miss", "L1-dcache-load-misses"),
//!     ("LLC", "LLC-loads"),
//!     ("r01c0:k", "r01c0:k"),
//!     ("raw/config=0x1c0,config1=0x3ff/u", "raw/config=0x1c0,config1=0x3ff/u"),
//!     ("cpu/event=192,umask=0x1/:kp", "cpu/event=0xc0,umask=1/kp"),
//!     ("msr/tsc/", "msr/tsc/"),
//!     ("mem:0x400000", "mem:0x400000/4:rw"),
//!     ("mem:4194304/8:w:u", "mem:0x400000/8:w:u"),
//!     ("sched:sched_switch", "sched:sched_switch"),
//!     ("sched:sched_switch/filter='prev_pid == 0'/u", "sched:sched_switch/filter='prev_pid == 0'/u"),
//!     ("kprobe:do_exit:k", "kprobe:do_exit:k"),
//!     ("uprobe:/bin/sh:main+16:u", "uprobe:/bin/sh:main+0x10:u"),
//!     ("tracepoint:sched:sched_switch", "tracepoint:sched:sched_switch"),
//!     ("L2_RQSTS.MISS:uk", "L2_RQSTS.MISS:uk"),
//!     ("'L2_RQSTS.MISS'", "L2_RQSTS.MISS"),
//!     ("'two words':-h", "'two words':uk"),
//!     ("cycles:-ukh", "cycles:-ukh"),
//!     ("{ cycles:k, instructions }:uD", "{cycles:uk,instructions:u}:D"),
//!     ("{cycles:b,instructions}:SW", "{cycles,instructions}:WS"),
//!     ("'t':kW", "{t:k}:W"),
//!     ("cycles:De", "cycles:De"),
//! ] {
//!     let groups = parse_list(text)?;
//!     assert_eq!(groups.len(), 1);
//!     assert_eq!(groups[0].to_string(), displayed);
//!     assert_eq!(parse_list(displayed)?, groups);
//! }
//! # Ok::<(), quipu_hal::Error>(())
//! ```

use std::str::FromStr;

#[cfg(doc)]
use crate::{Breakpoint, CacheEvent, Hardware, PmuEvent, RawEvent, Software};
use crate::{Error, Event, EventSpec, GroupSpec, Result};

mod cpu_list;
mod cursor;
mod display;
mod event;
mod group;
mod modifiers;
mod names;
mod nearest;
mod probe;
mod quoted;

pub use cpu_list::parse_cpu_list;
pub use names::{Generalized, generalized};
pub use nearest::{nearest, nearest_of};

use cursor::{Cursor, Fault};
use modifiers::Modifiers;

/// Reads a list of events and groups, separated by commas: what follows `-e`.
///
/// A lone event gives a group of one. Commas within slashes, braces and quotes do not separate.
///
/// ```
/// let groups = quipu_hal::text::parse_list("cycles:D,{branches,branch-misses}:u,cs")?;
/// let sizes: Vec<_> = groups.iter().map(|group| group.members.len()).collect();
/// assert_eq!(sizes, [1, 2, 1]);
/// assert!(groups[0].attributes.pinned);
/// # Ok::<(), quipu_hal::Error>(())
/// ```
///
/// # Errors
/// [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) for malformed text: the
/// [reason](Error::reason) says at which character, and what was expected there.
pub fn parse_list(text: &str) -> Result<Vec<GroupSpec>> {
    parse_list_with(text, &|_| false)
}

/// Reads a list as [`parse_list`] does, where unit masks come before modifiers of their letters:
/// `ends_in_mask` returns true for a name whose last part is one.
///
/// ```
/// use quipu_hal::{Event, text};
///
/// let groups = text::parse_list_with("L2_LD:I", &|name| name == "L2_LD:I")?;
/// assert_eq!(groups[0].members[0].event, Event::Named("L2_LD:I".into()));
/// // Without that, I is the modifier: not while the CPU idles.
/// let groups = text::parse_list("L2_LD:I")?;
/// assert_eq!(groups[0].members[0].event, Event::Named("L2_LD".into()));
/// # Ok::<(), quipu_hal::Error>(())
/// ```
///
/// # Errors
/// As [`parse_list`].
pub fn parse_list_with(text: &str, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<Vec<GroupSpec>> {
    Cursor::with_masks(text, ends_in_mask)
        .take_list()
        .map_err(|fault| fault.into_error(text, "a list of events"))
}

/// Reads an event with its modifiers, as [`parse_list_with`] reads a list.
///
/// # Errors
/// [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) for malformed text, and for
/// the modifiers `D` and `e`, which a [`GroupSpec`] holds.
pub fn parse_event_with(text: &str, ends_in_mask: &dyn Fn(&str) -> bool) -> Result<EventSpec> {
    let read = || {
        let (event, modifiers) = take_only_event(&mut Cursor::with_masks(text, ends_in_mask))?;
        if let Some(at) = modifiers.at
            && (modifiers.pinned || modifiers.exclusive)
        {
            return Err(Fault::new(at, "modifiers D and e belong to a group")
                .with_hint("read it as a GroupSpec: a lone event is a group of one"));
        }
        let mut spec = EventSpec::new(event);
        modifiers.apply(&mut spec)?;
        Ok(spec)
    };
    read().map_err(|fault: Fault| fault.into_error(text, "an event"))
}

impl FromStr for Event {
    type Err = Error;

    /// Reads an event without modifiers; see [`text`](crate::text).
    ///
    /// # Errors
    /// [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) for malformed text.
    fn from_str(text: &str) -> Result<Self> {
        let read = || {
            let (event, modifiers) = take_only_event(&mut Cursor::new(text))?;
            match modifiers.at {
                None => Ok(event),
                Some(at) => Err(Fault::new(at, "modifiers, where only an event is expected")
                    .with_hint("an event with modifiers is an EventSpec")),
            }
        };
        read().map_err(|fault| fault.into_error(text, "an event"))
    }
}

impl FromStr for EventSpec {
    type Err = Error;

    /// Reads an event with its modifiers; see [`text`](crate::text).
    ///
    /// # Errors
    /// [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) for malformed text, and for
    /// the modifiers `D` and `e`, which a [`GroupSpec`] holds.
    fn from_str(text: &str) -> Result<Self> {
        parse_event_with(text, &|_| false)
    }
}

impl FromStr for GroupSpec {
    type Err = Error;

    /// Reads a group in braces, or a lone event as a group of one; see [`text`](crate::text).
    ///
    /// # Errors
    /// [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) for malformed text.
    fn from_str(text: &str) -> Result<Self> {
        let mut cursor = Cursor::new(text);
        cursor
            .take_group()
            .and_then(|group| match cursor.peek() {
                None => Ok(group),
                Some(_) => Err(cursor
                    .unexpected("the end of the group")
                    .with_hint("several groups are read by text::parse_list")),
            })
            .map_err(|fault| fault.into_error(text, "a group"))
    }
}

/// Reads one event with nothing but space around it.
fn take_only_event(cursor: &mut Cursor<'_>) -> Result<(Event, Modifiers), Fault> {
    cursor.skip_space();
    if cursor.peek() == Some('{') {
        return Err(cursor
            .expected("an event")
            .with_hint("a group is read as a GroupSpec"));
    }
    let event = cursor.take_event()?;
    cursor.skip_space();
    match cursor.peek() {
        None => Ok(event),
        Some(',') => Err(cursor
            .expected("the end of the event")
            .with_hint("several events are read by text::parse_list")),
        Some(_) => Err(cursor.unexpected("the end of the event")),
    }
}
