//! The text form of events: names, terms, modifiers and groups, both ways.
//!
//! It is the language of `perf stat -e` (perf-list(1), `tools/perf/util/parse-events.l` of the
//! kernel), so what people know works here, with a few additions so that every [`Event`] can be
//! written. [`parse`] returns what was written together with what it means, [`parse_list`], [`parse_spec`] and
//! [`parse_event`] the meaning alone; `Display` of [`Event`], [`EventSpec`] and [`GroupSpec`] writes text that reads back
//! as the same value.
//!
//! ```text
//! list       = item { "," item }
//! item       = event | group
//! group      = "{" event { "," event } "}" [ ":" modifiers ]
//! event      = ( name | raw | breakpoint | tracepoint | probe ) [ ":" modifiers ]
//!            | ( tracepoint | system ":" name ) "/" [ "filter=" text | setting { "," setting } ] "/" [ [ ":" ] modifiers ]
//!            | ( name | raw ) "/" setting { "," setting } "/" [ [ ":" ] modifiers ]
//!            | pmu "/" [ term { "," term } ] "/" [ [ ":" ] modifiers ]
//! term       = name [ "=" ( number | text ) ] | setting
//! setting    = "name=" text | "period=" number | "freq=" number
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
//! | `kprobe:do_exit+4`, `uretprobe:/bin/sh:main` | [`Probe`](quipu_hal::Probe), with `ret` of returns |
//! | `sched:sched_switch`, `INST_RETIRED.ANY`, `EVENT:UMASK:c=2` | [`Event::Named`]: a native event, a preset or a tracepoint, whoever knows the name |
//! | `PERF_COUNT_HW_CPU_CYCLES`, `perf::CYCLES` | a generalized event by a name of [libpfm4's PMU `perf`](libpfm4) |
//! | `skl::INST_RETIRED:c=1` | [`Event::Named`], where the CPU's PMU is called `skl` by libpfm4 |
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
//! | `p` `pp` `ppp` `P` | [`Precision`](quipu_hal::Precision) |
//! | `D` `e` `W` `S` | the group is [pinned, exclusive, weak, sampled by its leader](quipu_hal::Attributes); on its first member or after its brace |
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
//! libpfm4's own modifiers stand anywhere behind the name: `u=1`, `k=1`, `h=1`, `mg=1`, `mh=1` (levels, guest and host; where
//! all that are named are 0, nothing is counted), `precise=1` (as `p`), `pinned=1`, `excl=1` (as `D` and `e`), `period=N`
//! and `freq=N` (settings).
//!
//! Some events have unit masks of these letters: `L2_LD:I` of the P6 counts lines in the invalid state.
//! They are read so where the [`EventNames`] know them.
//!
//! # Settings
//!
//! The terms `name`, `period` and `freq` say how an event is called in reports and sampled, and are no part of the event
//! ([`Settings`]): `cycles/period=1000/u`. A term of a PMU that is called so stands in quotes.
//!
//! # Examples
//!
//! Left what may be written, right how the same is displayed:
//!
//! ```
//! use quipu_text::{NoNames, parse_list};
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
//!     let groups = parse_list(text, &NoNames)?;
//!     assert_eq!(groups.len(), 1);
//!     assert_eq!(groups[0].to_string(), displayed);
//!     assert_eq!(parse_list(displayed, &NoNames)?, groups);
//! }
//! # Ok::<(), quipu_hal::Error>(())
//! ```

#![forbid(unsafe_code)]

#[cfg(doc)]
use quipu_hal::{Breakpoint, CacheEvent, Hardware, PmuEvent, RawEvent, Software};
use quipu_hal::{Event, EventSpec, GroupSpec, Result};

mod cpu_list;
mod cursor;
mod description;
mod event;
mod generalized;
mod group;
mod label;
pub mod libpfm4;
mod modifiers;
mod names;
mod nearest;
mod parsed;
mod probe;
mod quoted;
mod settings;

pub use cpu_list::parse_cpu_list;
pub use description::describe;
pub use generalized::{Generalized, generalized};
pub use label::Label;
pub use names::{EventNames, NoNames};
pub use nearest::{nearest, nearest_of};
pub use parsed::{Parsed, ParsedGroup};
pub use settings::Settings;

use cursor::{Cursor, Fault};
use modifiers::Modifiers;

/// Parses a list of events and groups, separated by commas: what follows `-e`.
///
/// A lone event gives a group of one. Commas within slashes, braces and quotes do not separate.
///
/// ```
/// use quipu_text::{NoNames, parse};
///
/// let groups = parse("cycles/period=1000/u,{branches,branch-misses}:k", &NoNames)?;
/// let cycles = &groups[0].members[0];
/// assert_eq!(cycles.spec.to_string(), "cycles:u");
/// assert_eq!(cycles.settings.period, Some(1000));
/// assert_eq!(cycles.as_written, "cycles/period=1000/u");
/// assert_eq!(groups[1].members[1].as_written, "branch-misses");
/// assert_eq!(groups[1].modifiers, "k");
/// # Ok::<(), quipu_hal::Error>(())
/// ```
///
/// # Errors
/// [`InvalidConfiguration`](quipu_hal::ErrorKind::InvalidConfiguration) for malformed text: the
/// [reason](quipu_hal::Error::reason) says at which character, and what was expected there. That of
/// [`EventNames::tracepoints`] for a pattern.
pub fn parse<'t>(text: &'t str, names: &dyn EventNames) -> Result<Vec<ParsedGroup<'t>>> {
    let mut cursor = Cursor::new(text, names);
    cursor.takes_settings = true;
    list(cursor, text, names)
}

/// Parses a list as [`parse`] does, of events without [`Settings`], and returns the groups alone.
///
/// ```
/// use quipu_text::{NoNames, parse_list};
///
/// let groups = parse_list("cycles:D,{branches,branch-misses}:u,cs", &NoNames)?;
/// let sizes: Vec<_> = groups.iter().map(|group| group.members.len()).collect();
/// assert_eq!(sizes, [1, 2, 1]);
/// assert!(groups[0].attributes.pinned);
/// # Ok::<(), quipu_hal::Error>(())
/// ```
///
/// # Errors
/// As [`parse`], and for settings.
pub fn parse_list(text: &str, names: &dyn EventNames) -> Result<Vec<GroupSpec>> {
    let groups = list(Cursor::new(text, names), text, names)?;
    Ok(groups.into_iter().map(GroupSpec::from).collect())
}

fn list<'t>(
    mut cursor: Cursor<'t, '_>,
    text: &str,
    names: &dyn EventNames,
) -> Result<Vec<ParsedGroup<'t>>> {
    let read = cursor.take_list();
    let read = read.map_err(|fault| fault.into_error(text, "a list of events"))?;
    let mut groups = Vec::with_capacity(read.len());
    for group in read {
        group.add_to(&mut groups, names)?;
    }
    Ok(groups)
}

/// Parses an event with its modifiers.
///
/// # Errors
/// [`InvalidConfiguration`](quipu_hal::ErrorKind::InvalidConfiguration) for malformed text, for settings, and for
/// the modifiers of groups, `D`, `e`, `W` and `S`.
pub fn parse_spec(text: &str, names: &dyn EventNames) -> Result<EventSpec> {
    let read = || {
        let (event, modifiers) = take_only_event(&mut Cursor::new(text, names))?;
        if let Some(at) = modifiers.at
            && modifiers.are_of_group()
        {
            return Err(Fault::new(at, "modifiers D, e, W and S belong to a group")
                .with_hint("read it as a GroupSpec: a lone event is a group of one"));
        }
        let mut spec = EventSpec::new(event);
        modifiers.apply(&mut spec)?;
        Ok(spec)
    };
    read().map_err(|fault: Fault| fault.into_error(text, "an event"))
}

/// Parses an event without modifiers.
///
/// ```
/// use quipu_hal::Hardware;
///
/// assert_eq!(quipu_text::parse_event("cpu-cycles")?, Hardware::Cycles.into());
/// assert!(quipu_text::parse_event("cycles:u").is_err());
/// # Ok::<(), quipu_hal::Error>(())
/// ```
///
/// # Errors
/// [`InvalidConfiguration`](quipu_hal::ErrorKind::InvalidConfiguration) for malformed text, settings and modifiers.
pub fn parse_event(text: &str) -> Result<Event> {
    let read = || {
        let (event, modifiers) = take_only_event(&mut Cursor::new(text, &NoNames))?;
        match modifiers.at {
            None => Ok(event),
            Some(at) => Err(Fault::new(at, "modifiers, where only an event is expected")
                .with_hint("an event with modifiers is an EventSpec: parse_spec")),
        }
    };
    read().map_err(|fault| fault.into_error(text, "an event"))
}

/// Reads one event with nothing but space around it.
fn take_only_event(cursor: &mut Cursor<'_, '_>) -> Result<(Event, Modifiers), Fault> {
    cursor.skip_space();
    if cursor.peek() == Some('{') {
        return Err(cursor
            .expected("an event")
            .with_hint("a group is a GroupSpec: parse_list"));
    }
    let event = cursor.take_event()?;
    cursor.skip_space();
    match cursor.peek() {
        None => Ok(event),
        Some(',') => Err(cursor
            .expected("the end of the event")
            .with_hint("several events are read by parse_list")),
        Some(_) => Err(cursor.unexpected("the end of the event")),
    }
}
