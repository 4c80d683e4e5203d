//! The written form of kept names: columns of numbers, compressed by xz. It is as long as it has to be, so that a recording
//! grows little, and whatever it says is checked when it is read: who gives a file may have written anything.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldhash::HashMap;

use crate::kept::{Frame, KeptFile, KeptNames, MOST_FRAMES, Place, Symbol, Table};
use crate::kept_rules;
use crate::locate::Doubt;
use crate::mapped_file::{FileIdentity, MappedFile};
use crate::no_names::NoNames;
use crate::packed::{self, Input, Output};

/// The version of the form.
const VERSION: u8 = 2;
/// No more is written, or decompressed.
const LONGEST: usize = 64 << 20;

/// The doubts by their numbers.
const DOUBTS: [Doubt; 3] = [Doubt::OtherDevice, Doubt::Changed, Doubt::OtherMachine];

impl KeptNames {
    /// Returns them as bytes, which [`read`](Self::read) reads; `None` if there are more than it takes: 64 MiB before they
    /// are compressed.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        let columns = Renumbered::of(self).columns();
        (columns.len() <= LONGEST).then(|| packed::compress(&columns, vec![VERSION]))
    }

    /// Reads names that were kept; `None` if the bytes make no sense.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (VERSION, compressed) = bytes.split_first().map(|(v, rest)| (*v, rest))? else {
            return None;
        };
        from_columns(&packed::decompress(compressed, LONGEST)?)
    }
}

/// Names in the order of their addresses, in which most numbers follow from those before.
struct Renumbered<'a> {
    names: &'a KeptNames,
    texts: Numbers,
    symbols: Numbers,
    frames: Numbers,
}

/// New numbers by the old ones.
#[derive(Default)]
struct Numbers {
    new: HashMap<u32, u32>,
    old: Vec<u32>,
}

impl Numbers {
    /// Returns the number of one that may be new.
    fn of(&mut self, old: u32) -> u64 {
        let next = self.old.len() as u32;
        let new = *self.new.entry(old).or_insert(next);
        if new == next {
            self.old.push(old);
        }
        new.into()
    }

    /// Returns the number of one that has one.
    fn get(&self, old: u32) -> u64 {
        self.new.get(&old).map_or(0, |new| u64::from(*new))
    }

    /// Returns the number of one that may be missing: 0, or one more.
    fn maybe(&self, old: Option<u32>) -> u64 {
        old.map_or(0, |old| self.get(old) + 1)
    }
}

/// Returns the number of a place.
fn code(place: Place, symbols: &Numbers, frames: &Numbers) -> u64 {
    match place {
        Place::Symbol(symbol) => symbols.get(symbol) << 1,
        Place::Frame(frame) => frames.get(frame) << 1 | 1,
    }
}

impl<'a> Renumbered<'a> {
    /// Gives all names numbers, as they come.
    fn of(names: &'a KeptNames) -> Self {
        let mut renumbered = Self {
            names,
            texts: Numbers::default(),
            symbols: Numbers::default(),
            frames: Numbers::default(),
        };
        let files = names.files.iter().map(|file| &file.places);
        let tables = [&names.kernel].into_iter();
        let tables = tables.chain(names.processes.values()).chain(files);
        for place in tables.flat_map(BTreeMap::values) {
            renumbered.number(*place);
        }
        renumbered
    }

    /// Gives numbers to what is at a place, from the outermost function on.
    fn number(&mut self, mut place: Place) {
        let mut frames = Vec::new();
        while let Place::Frame(number) = place
            && let Some(frame) = self.names.frames.get(number)
        {
            if self.frames.new.contains_key(&number) {
                break;
            }
            frames.push(number);
            place = frame.outer;
        }
        if let Place::Symbol(number) = place
            && let Some(symbol) = self.names.symbols.get(number)
        {
            self.symbols.of(number);
            self.texts.of(symbol.object);
            symbol.name.map(|name| self.texts.of(name));
        }
        for number in frames.into_iter().rev() {
            self.frames.of(number);
            if let Some(frame) = self.names.frames.get(number) {
                frame.name.map(|name| self.texts.of(name));
                frame.file.map(|file| self.texts.of(file));
            }
        }
    }

    fn columns(&self) -> Vec<u8> {
        let (names, texts) = (self.names, &self.texts);
        let mut out = Output::default();
        let all = texts.old.iter();
        let all = all.filter_map(|text| names.texts.get(*text));
        out.number(texts.old.len() as u64);
        all.for_each(|text| out.text(text.as_bytes()));

        let symbols = self.symbols.old.iter();
        let symbols: Vec<_> = symbols.filter_map(|s| names.symbols.get(*s)).collect();
        out.number(symbols.len() as u64);
        out.distances(symbols.iter().map(|symbol| texts.get(symbol.object)));
        out.distances(symbols.iter().map(|symbol| texts.maybe(symbol.name)));
        let has_start = |symbol: &&Symbol| u64::from(symbol.start.is_some());
        symbols.iter().for_each(|s| out.number(has_start(s)));
        out.distances(symbols.iter().filter_map(|symbol| symbol.start));

        let frames = self.frames.old.iter();
        let frames: Vec<_> = frames.filter_map(|f| names.frames.get(*f)).collect();
        out.number(frames.len() as u64);
        out.distances(frames.iter().map(|frame| texts.maybe(frame.name)));
        frames.iter().for_each(|f| out.number(f.inlined.into()));
        out.distances(frames.iter().map(|frame| texts.maybe(frame.file)));
        out.distances(frames.iter().map(|frame| frame.line.into()));
        let outer = |frame: &&Frame| code(frame.outer, &self.symbols, &self.frames);
        out.distances(frames.iter().map(outer));

        self.table(&names.kernel, &mut out);
        out.number(names.processes.len() as u64);
        for (pid, places) in &names.processes {
            out.signed((*pid).into());
            self.table(places, &mut out);
        }
        out.number(names.rules.all.len() as u64);
        names.rules.all.iter().for_each(|rules| out.text(rules));
        out.number(names.files.len() as u64);
        for file in &names.files {
            out.text(&file.file.path);
            push_identity(&mut out, &file.file.identity);
            self.table(&file.places, &mut out);
            out.number(file.rules.len() as u64);
            out.distances(file.rules.keys().copied());
            let distances = file.rules.iter();
            out.distances(distances.map(|(offset, (address, _))| address.wrapping_sub(*offset)));
            out.distances(file.rules.values().map(|(_, rules)| u64::from(*rules)));
        }
        out.number(names.doubtful.len() as u64);
        for (path, doubt) in &names.doubtful {
            out.text(path.as_bytes());
            let number = DOUBTS.iter().position(|known| known == doubt);
            out.number(number.unwrap_or(0) as u64);
        }
        out.number(names.no_names.len() as u64);
        for (object, why) in &names.no_names {
            out.text(object.as_bytes());
            let number = NoNames::ALL.iter().position(|known| known == why);
            out.number(number.unwrap_or(0) as u64);
        }
        out.bytes
    }

    fn table(&self, places: &BTreeMap<u64, Place>, out: &mut Output) {
        out.number(places.len() as u64);
        out.distances(places.keys().copied());
        let codes = places.values();
        out.distances(codes.map(|place| code(*place, &self.symbols, &self.frames)));
    }
}

fn push_identity(out: &mut Output, identity: &FileIdentity) {
    match identity {
        FileIdentity::Unknown => out.number(0),
        FileIdentity::Inode {
            device: (major, minor),
            inode,
            generation,
        } => {
            out.number(1);
            [(*major).into(), (*minor).into(), *inode, *generation]
                .into_iter()
                .for_each(|number| out.number(number));
        }
        FileIdentity::BuildId(id) => {
            out.number(2);
            out.text(id);
        }
    }
}

fn identity(input: &mut Input<'_>) -> Option<FileIdentity> {
    Some(match input.number()? {
        0 => FileIdentity::Unknown,
        1 => FileIdentity::Inode {
            device: (input.small()?, input.small()?),
            inode: input.number()?,
            generation: input.number()?,
        },
        2 => FileIdentity::BuildId(input.text()?.into()),
        _ => return None,
    })
}

/// Checks the numbers of what was read before.
#[derive(Clone, Copy)]
struct Known {
    texts: usize,
    symbols: usize,
    frames: usize,
    rules: usize,
}

impl Known {
    fn text(self, number: u64) -> Option<u32> {
        within(number, self.texts)
    }

    /// Returns the text of a number that says if there is one.
    fn maybe_text(self, number: u64) -> Option<Option<u32>> {
        match number.checked_sub(1) {
            None => Some(None),
            Some(number) => self.text(number).map(Some),
        }
    }

    fn place(self, number: u64) -> Option<Place> {
        match number & 1 {
            0 => within(number >> 1, self.symbols).map(Place::Symbol),
            _ => within(number >> 1, self.frames).map(Place::Frame),
        }
    }

    fn table(self, input: &mut Input<'_>) -> Option<BTreeMap<u64, Place>> {
        let count = input.count()?;
        let (addresses, codes) = (input.distances(count)?, input.distances(count)?);
        let mut places = Vec::with_capacity(count);
        for (address, code) in addresses.zip(codes) {
            places.push((address, self.place(code)?));
        }
        Some(places.into_iter().collect())
    }

    /// Takes the rules of a file.
    fn rules(self, input: &mut Input<'_>) -> Option<BTreeMap<u64, (u64, u32)>> {
        let count = input.count()?;
        let [offsets, distances, rules] = [(); 3].map(|()| input.distances(count));
        let all = offsets?.zip(distances?).zip(rules?);
        all.map(|((offset, distance), rules)| {
            let rules = within(rules, self.rules)?;
            Some((offset, (offset.wrapping_add(distance), rules)))
        })
        .collect()
    }
}

fn within(number: u64, count: usize) -> Option<u32> {
    let number = u32::try_from(number).ok()?;
    ((number as usize) < count).then_some(number)
}

fn text(input: &mut Input<'_>) -> Option<String> {
    String::from_utf8(input.text()?.to_owned()).ok()
}

fn from_columns(columns: &[u8]) -> Option<KeptNames> {
    let mut input = Input(columns);
    let texts = (0..input.count()?).map(|_| Some(text(&mut input)?.into()));
    let texts: Vec<Arc<str>> = texts.collect::<Option<_>>()?;
    let mut known = Known {
        texts: texts.len(),
        symbols: 0,
        frames: 0,
        rules: 0,
    };
    let symbols = symbols(&mut input, known)?;
    known.symbols = symbols.len();
    let frames = frames(&mut input, known)?;
    known.frames = frames.len();
    let mut names = KeptNames::default();
    names.texts = Table::of(texts);
    names.symbols = Table::of(symbols);
    names.frames = Table::of(frames);
    names.kernel = known.table(&mut input)?;
    for _ in 0..input.count()? {
        let pid = input.signed()?.try_into().ok()?;
        names.processes.insert(pid, known.table(&mut input)?);
    }
    let rules = (0..input.count()?).map(|_| Some(input.text()?.to_owned()));
    names.rules = Table::of(rules.collect::<Option<Vec<_>>>()?);
    let rules = names.rules.all.iter();
    let rules = rules.map(|rules| Some(Arc::new(kept_rules::read(rules)?)));
    names.read_rules = rules.collect::<Option<_>>()?;
    known.rules = names.read_rules.len();
    for _ in 0..input.count()? {
        let path = input.text()?.into();
        let identity = identity(&mut input)?;
        names.push_file(KeptFile {
            file: Arc::new(MappedFile { path, identity }),
            places: known.table(&mut input)?,
            rules: known.rules(&mut input)?,
        });
    }
    for _ in 0..input.count()? {
        let path = text(&mut input)?;
        let doubt = *DOUBTS.get(input.small::<usize>()?)?;
        names.doubtful.insert(path, doubt);
    }
    for _ in 0..input.count()? {
        let object = text(&mut input)?;
        let why = *NoNames::ALL.get(input.small::<usize>()?)?;
        names.no_names.insert(object, why);
    }
    input.0.is_empty().then_some(names)
}

fn symbols(input: &mut Input<'_>, known: Known) -> Option<Vec<Symbol>> {
    let count = input.count()?;
    let (objects, names) = (input.distances(count)?, input.distances(count)?);
    let has_start = (0..count).map(|_| Some(input.number()? != 0));
    let has_start: Vec<bool> = has_start.collect::<Option<_>>()?;
    let starts = has_start.iter().filter(|has| **has).count();
    let mut starts = input.distances(starts)?;
    let all = objects.zip(names).zip(has_start);
    all.map(|((object, name), has_start)| {
        Some(Symbol {
            object: known.text(object)?,
            name: known.maybe_text(name)?,
            start: has_start.then(|| starts.next()).flatten(),
        })
    })
    .collect()
}

/// Takes frames, each of which is in one before it or in a symbol, and not in too many.
fn frames(input: &mut Input<'_>, mut known: Known) -> Option<Vec<Frame>> {
    let count = input.count()?;
    let names = input.distances(count)?;
    let inlined = (0..count).map(|_| Some(input.number()? != 0));
    let inlined: Vec<bool> = inlined.collect::<Option<_>>()?;
    let [files, lines, outer] = [(); 3].map(|()| input.distances(count));
    let sources = files?.zip(lines?);
    let all = names.zip(inlined).zip(sources).zip(outer?);
    let (mut frames, mut depths) = (Vec::with_capacity(count), Vec::with_capacity(count));
    for (((name, inlined), (file, line)), outer) in all {
        known.frames = frames.len();
        let outer = known.place(outer)?;
        let depth = match outer {
            Place::Symbol(_) => 1,
            Place::Frame(outer) => depths.get(outer as usize)? + 1,
        };
        if depth > MOST_FRAMES {
            return None;
        }
        depths.push(depth);
        frames.push(Frame {
            name: known.maybe_text(name)?,
            file: known.maybe_text(file)?,
            line: line.try_into().ok()?,
            inlined,
            outer,
        });
    }
    Some(frames)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::demangled::Style;
    use crate::kept::CodeOf;
    use crate::symbolizer::Function;

    fn function(name: &str, offset: Option<u64>, line: Option<u32>) -> Function {
        Function {
            object: "/a".into(),
            name: (!name.is_empty()).then(|| name.into()),
            inlined: offset.is_none(),
            source: line.map(|line| ("a.c".into(), line)),
            offset,
        }
    }

    fn file(id: u8) -> Arc<MappedFile> {
        Arc::new(MappedFile {
            path: b"/a"[..].into(),
            identity: FileIdentity::BuildId([id; 20][..].into()),
        })
    }

    /// Notes: the code, the address, and the functions there.
    fn noted(files: &[Arc<MappedFile>; 2]) -> Vec<(CodeOf<'_>, u64, Vec<Function>)> {
        let of_debug_information = Function {
            inlined: false,
            ..function("in_debug_information", None, Some(3))
        };
        let of_lines = vec![
            function("innermost", None, Some(7)),
            function("inlined", None, None),
            function("outer", Some(0x20), Some(40)),
        ];
        vec![
            (
                CodeOf::Kernel,
                u64::MAX - 5,
                vec![function("do_it", Some(5), None)],
            ),
            (
                CodeOf::Process(7),
                0x7000,
                vec![function("jitted", Some(0), None)],
            ),
            (CodeOf::File(&files[0]), 0x1020, of_lines.clone()),
            (CodeOf::File(&files[0]), 0x1021, of_lines[1..].to_vec()),
            (CodeOf::File(&files[0]), 0x1022, vec![of_debug_information]),
            (
                CodeOf::File(&files[1]),
                0x1020,
                vec![function("outer", Some(0x1f), None)],
            ),
        ]
    }

    fn names() -> KeptNames {
        let mut names = KeptNames::default();
        let files = [file(1), file(2)];
        for (of, address, functions) in noted(&files) {
            names.note(of, address, &functions);
        }
        names.doubtful.insert("/a".into(), Doubt::Changed);
        names.no_names.insert("/b".into(), NoNames::Stripped);
        names
    }

    fn found(
        names: &mut KeptNames,
        of: CodeOf<'_>,
        address: u64,
        lines: bool,
    ) -> Option<Vec<Function>> {
        let mut out = Vec::new();
        names
            .find(of, address, (lines, Style::Whole), &mut out)
            .then_some(out)
    }

    #[test]
    fn names_come_back_by_the_code_and_the_address() {
        let mut names = KeptNames::read(&names().to_bytes().expect("few")).expect("good");
        let files = [file(1), file(2)];
        for (of, address, functions) in noted(&files) {
            assert_eq!(
                found(&mut names, of, address, true).as_ref(),
                Some(&functions)
            );
            // Without lines as a symbol table has it.
            let mut symbol = functions.last().expect("one").clone();
            symbol.source = None;
            symbol.name = symbol.name.filter(|_| symbol.offset.is_some());
            assert_eq!(found(&mut names, of, address, false), Some(vec![symbol]));
        }
        // A function that debug information alone knows has no position.
        let [first, second] = &files;
        let positions = [0x1020, 0x1021, 0x1022, 0x1023].map(|at| names.symbol_at(first, at));
        assert!(positions[0].is_some() && positions[1].is_some());
        assert_eq!((positions[2], positions[3]), (None, None));
        assert_ne!(names.symbol_at(second, 0x1020), positions[0]);
        assert_eq!(names.doubtful.get("/a"), Some(&Doubt::Changed));
        assert_eq!(names.no_names.get("/b"), Some(&NoNames::Stripped));
        assert_eq!((names.len(), names.files().count()), (6, 2));
        for (of, address) in [
            (CodeOf::Kernel, 0x1020),
            (CodeOf::Process(8), 0x7000),
            (CodeOf::File(&files[0]), 0x1023),
            (CodeOf::File(&file(3)), 0x1020),
        ] {
            assert_eq!(found(&mut names, of, address, true), None);
        }
    }

    #[test]
    fn what_is_written_is_read() {
        // So regular that it is compressed to almost nothing.
        let mut names = KeptNames::default();
        for at in 0..20_000 {
            let offset = at % 16;
            names.note(CodeOf::Kernel, at, &[function("f", Some(offset), None)]);
        }
        let bytes = names.to_bytes().expect("few");
        let allocated = allocation_counter::measure(|| {
            let read = KeptNames::read(&bytes).map(|read| read.len());
            assert_eq!(read, Some(20_000));
        });
        // An address and a place, of which one copy is sorted.
        assert!(allocated.bytes_max < 45 * 20_000, "{allocated:?}");
        // More than is read is not written.
        let long = "f".repeat(LONGEST);
        names.note(CodeOf::Kernel, 20_000, &[function(&long, Some(0), None)]);
        assert_eq!(names.to_bytes(), None);
    }

    #[test]
    fn what_has_no_name_is_not_kept() {
        let mut names = KeptNames::default();
        names.note(CodeOf::Kernel, 1, &[function("", Some(0), None)]);
        names.note(CodeOf::Kernel, 2, &[]);
        assert!(names.is_empty());
    }

    #[test]
    fn bytes_that_make_no_sense_are_refused() {
        let bytes = names().to_bytes().expect("few");
        for len in 0..bytes.len() {
            assert!(KeptNames::read(&bytes[..len]).is_none(), "{len}");
        }
        let columns = Renumbered::of(&names()).columns();
        assert!(from_columns(&columns).is_some());
        for len in 0..columns.len() {
            assert!(from_columns(&columns[..len]).is_none(), "{len}");
        }
        let files = [file(1), file(2)];
        for at in 0..columns.len() {
            for bit in 0..8 {
                let mut wrong = columns.clone();
                wrong[at] ^= 1 << bit;
                // It may say something else; nothing of it leads to nowhere.
                if let Some(mut names) = from_columns(&wrong) {
                    for (of, address, _) in noted(&files) {
                        let found = found(&mut names, of, address, true).unwrap_or_default();
                        assert!(found.len() <= MOST_FRAMES + 1);
                    }
                }
            }
        }
    }

    #[test]
    fn no_frame_is_in_itself_or_in_too_many() {
        let mut names = KeptNames::default();
        let functions: Vec<_> = (0..MOST_FRAMES as u32 - 1)
            .map(|line| function("f", None, Some(line)))
            .chain([function("g", Some(0), None)])
            .collect();
        names.note(CodeOf::Kernel, 1, &functions);
        let deep = names.to_bytes().expect("few");
        let mut read = KeptNames::read(&deep).expect("good");
        let all = found(&mut read, CodeOf::Kernel, 1, true).expect("kept");
        assert_eq!(all.len(), MOST_FRAMES);
        // Each in the next one, and the last in the first.
        for frame in 0..names.frames.all.len() {
            names.frames.all[frame].outer = Place::Frame(frame as u32);
        }
        let mut out = Output::default();
        for count in [0, 0, 1] {
            out.number(count);
        }
        [0, 0, 0, 0].iter().for_each(|n| out.number(*n));
        out.signed(1);
        assert!(from_columns(&out.bytes).is_none());
    }
}
