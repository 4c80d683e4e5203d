//! Reads an event file piece by piece, and puts the pieces of each CPU entry together.

use std::cell::RefCell;
use std::mem;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::cpu::{read_aliases, read_allowed, read_cpu, read_mapping};
use crate::diagnostics::{Findings, Source};
use crate::events::read_events;
use crate::fields::Reading;
use crate::model::{Aliases, Cpu, EventEntry, Mapping};
use crate::pieces::{Piece, PieceKind, Pieces};
use crate::printable::shortened;
use crate::strings::Strings;

/// The most bytes of a piece: as a tree of values it takes up to a hundred times as much.
const LARGEST_PIECE: usize = 256 << 10;

/// The most events, unit masks, generalized events, presets and rules of a file.
const MOST_ENTRIES: usize = 1 << 17;

/// The most CPU entries and tables of aliases of a file.
const MOST_CPUS: usize = 4096;

/// The contents of one file.
#[derive(Default)]
pub(crate) struct Contents {
    /// The backends that the file consents to.
    pub(crate) allowed: Vec<String>,
    pub(crate) cpus: Vec<Cpu>,
    pub(crate) aliases: Vec<Aliases>,
}

/// Reads one file, which is the file `file` of its layer.
pub(crate) fn read_file(
    source: &Source<'_>,
    file: u32,
    strings: &mut Strings,
    findings: &mut Findings,
) -> Contents {
    let reading = Reading {
        source,
        file,
        findings: RefCell::new(mem::take(findings)),
        strings: RefCell::new(mem::replace(strings, Strings::new())),
    };
    let mut document = Document::new(&reading);
    for piece in Pieces::new(source.text) {
        let start = piece.at.start;
        document.add(piece);
        if let Some(most) = document.excess() {
            reading.note(&(start..start), format!("up to here the file has {most}"));
            break;
        }
    }
    document.finish_head();
    let contents = document.contents;
    *strings = reading.strings.into_inner();
    *findings = reading.findings.into_inner();
    contents
}

/// A table with the locations of its keys and values in the whole file.
type Table<'t> = DeTable<'t>;

struct Document<'r> {
    reading: &'r Reading<'r>,
    contents: Contents,
    open: Option<Head<'r>>,
    /// The entries and rules of what is finished.
    entries: usize,
}

/// A CPU entry or a table of aliases that may go on.
struct Head<'r> {
    name: &'static str,
    value: Spanned<DeValue<'r>>,
    /// The lists that have had a header of their own.
    lists: Vec<&'static str>,
    events: Vec<EventEntry>,
    generalized: Vec<Mapping>,
    presets: Vec<Mapping>,
}

impl Head<'_> {
    fn entries(&self) -> usize {
        self.events.len() + self.generalized.len() + self.presets.len()
    }
}

impl<'r> Document<'r> {
    fn new(reading: &'r Reading<'r>) -> Self {
        Self {
            reading,
            contents: Contents::default(),
            open: None,
            entries: 0,
        }
    }

    /// Returns what there is too much of, if there is.
    fn excess(&self) -> Option<String> {
        let open = self.open.as_ref().map_or(0, Head::entries);
        if self.entries + open > MOST_ENTRIES {
            return Some(format!(
                "more than {MOST_ENTRIES} events, unit masks, presets and rules, which is the most that are read"
            ));
        }
        (self.contents.cpus.len() + self.contents.aliases.len() > MOST_CPUS)
            .then(|| format!("more than {MOST_CPUS} CPU entries, which is the most that are read"))
    }

    /// Reads one piece.
    fn add(&mut self, piece: Piece) {
        if let Some(opens) = piece.opens {
            // A fault in the line of the header is one of the file.
            self.parse(opens..piece.at.start);
            if let (PieceKind::Entries(list), Some(head)) = (&piece.kind, &mut self.open) {
                if head.lists.contains(list) {
                    self.reading.note_duplicate(opens);
                }
                head.lists.push(list);
            }
        }
        if piece.at.len() > LARGEST_PIECE {
            let message = format!(
                "what begins here goes on for more than {} KiB, which is the most of one event or one head of a CPU",
                LARGEST_PIECE >> 10
            );
            self.reading
                .note(&(piece.at.start..piece.at.start), message);
            return;
        }
        let mut table = self.parse(piece.at);
        match piece.kind {
            PieceKind::Tables => self.add_tables(&table),
            PieceKind::Head(name) => {
                self.finish_head();
                let head = table.remove(name).map(Spanned::into_inner);
                let Some(DeValue::Array(heads)) = head else {
                    return;
                };
                self.open = heads.into_iter().next().map(|value| Head {
                    name,
                    value,
                    lists: Vec::new(),
                    events: Vec::new(),
                    generalized: Vec::new(),
                    presets: Vec::new(),
                });
            }
            PieceKind::More => self.add_more(table),
            PieceKind::Entries(list) => self.add_entries(list, &table),
            PieceKind::Tabled(list) => {
                let name = self.open.as_ref().map_or("", |head| head.name);
                let inside = table.get(name).and_then(|head| head.get_ref().get(list));
                if let Some(table) = inside.and_then(|list| list.get_ref().as_table()) {
                    self.add_entries(list, table);
                }
            }
        }
    }

    /// Parses a part of the file, and notes its faults.
    fn parse(&self, at: Range<usize>) -> Table<'r> {
        let Some(text) = self.reading.source.text.get(at.clone()) else {
            return Table::new();
        };
        let (table, errors) = DeTable::parse_recoverable(text);
        for error in errors {
            let span = error.span().unwrap_or(0..0);
            let message = shortened(&error.message().replace('\n', ", "));
            let span = at.start + span.start..at.start + span.end;
            self.reading
                .note(&span, format!("not valid TOML: {message}"));
        }
        moved_table(table.into_inner(), at.start)
    }

    /// Reads tables that are whole.
    fn add_tables(&mut self, table: &Table<'_>) {
        let reading = self.reading;
        reading.check_keys(table, &["allow", "aliases", "cpu"]);
        if let Some(names) = table.get("allow") {
            self.contents.allowed = read_allowed(reading, ("allow", names));
        }
        let array = |key| {
            let value = table.get(key)?;
            reading.array((key, value))
        };
        for cpu in array("cpu").into_iter().flatten() {
            let cpu = read_cpu(reading, ("cpu", cpu));
            self.take_cpu(cpu);
        }
        for table in array("aliases").into_iter().flatten() {
            let aliases = read_aliases(reading, ("aliases", table));
            self.take_aliases(aliases);
        }
    }

    /// Adds tables under the open CPU entry to it.
    fn add_more(&mut self, mut table: Table<'r>) {
        let Some(head) = &mut self.open else { return };
        let more = table.remove(head.name).map(Spanned::into_inner);
        let (Some(DeValue::Table(more)), DeValue::Table(known)) = (more, head.value.as_mut())
        else {
            return;
        };
        for (key, value) in more {
            if known.contains_key(&key) {
                self.reading.note_duplicate(key.span().start);
            } else {
                known.insert(key, value);
            }
        }
    }

    /// Reads entries of a list of the open CPU entry.
    fn add_entries(&mut self, list: &'static str, table: &Table<'_>) {
        let Some(head) = &mut self.open else { return };
        if list == "events" {
            head.events.extend(read_events(self.reading, table));
            return;
        }
        let entries = table.iter();
        let mappings = entries
            .filter_map(|(key, value)| read_mapping(self.reading, (key.get_ref().as_ref(), value)));
        match list {
            "generalized" => head.generalized.extend(mappings),
            _ => head.presets.extend(mappings),
        }
    }

    /// Ends the open CPU entry.
    fn finish_head(&mut self) {
        let Some(head) = self.open.take() else { return };
        for list in &head.lists {
            if let Some(twice) = head.value.get_ref().get(list) {
                self.reading.note_duplicate(twice.span().start);
            }
        }
        let node = (head.name, &head.value);
        if head.name == "cpu" {
            let cpu = read_cpu(self.reading, node).map(|mut cpu| {
                cpu.entries.extend(head.events);
                cpu.generalized.extend(head.generalized);
                cpu.presets.extend(head.presets);
                cpu
            });
            self.take_cpu(cpu);
        } else {
            let aliases = read_aliases(self.reading, node).map(|mut aliases| {
                aliases.entries.extend(head.events);
                aliases
            });
            self.take_aliases(aliases);
        }
    }

    fn take_cpu(&mut self, cpu: Option<Cpu>) {
        let Some(cpu) = cpu else { return };
        self.entries += cpu.entries.len() + cpu.generalized.len() + cpu.presets.len();
        self.entries += cpu.rules.len();
        self.contents.cpus.push(cpu);
    }

    fn take_aliases(&mut self, aliases: Option<Aliases>) {
        let Some(aliases) = aliases else { return };
        self.entries += aliases.entries.len() + aliases.cpus.len();
        self.contents.aliases.push(aliases);
    }
}

/// Returns a table of a piece that begins at `by`, with locations in the whole file.
fn moved_table(table: DeTable<'_>, by: usize) -> Table<'_> {
    let moved = table.into_iter().map(|(key, value)| {
        let at = key.span();
        let key = Spanned::new(at.start + by..at.end + by, key.into_inner());
        (key, moved_value(value, by))
    });
    moved.collect()
}

fn moved_value(value: Spanned<DeValue<'_>>, by: usize) -> Spanned<DeValue<'_>> {
    let at = value.span();
    let moved = match value.into_inner() {
        DeValue::Array(items) => DeValue::Array(
            items
                .into_iter()
                .map(|item| moved_value(item, by))
                .collect(),
        ),
        DeValue::Table(table) => DeValue::Table(moved_table(table, by)),
        other => other,
    };
    Spanned::new(at.start + by..at.end + by, moved)
}
