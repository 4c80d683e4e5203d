//! Functions of just-in-time compilers that write their code to a file, `jit-PID.dump`
//! (`tools/perf/Documentation/jitdump-specification.txt`).

use std::collections::{BTreeMap, HashMap};
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

use crate::call_frames::{CallFrames, Rules};
use crate::table::{Extent, LONGEST_NAME, Symbol, SymbolTable, TableBuilder};

/// As much of a file is read: its code is in it too.
const LONGEST: u64 = 1 << 30;
/// `JiTD`, in the byte order of the machine that wrote it.
const MAGIC: u32 = 0x4A69_5444;
/// `JIT_CODE_LOAD`, `JIT_CODE_MOVE`, `JIT_CODE_DEBUG_INFO` and `JIT_CODE_UNWINDING_INFO`.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
const DEBUG_INFO: u32 = 2;
const UNWINDING_INFO: u32 = 4;
/// Bytes of the header of a record: kind, length, time.
const RECORD_HEADER: u64 = 16;
/// The name of a source file that is that of the line before.
const SAME_FILE: &[u8] = b"\xff";
/// V8 counts addresses of lines from the ELF header that `perf inject` puts before the code, and so the first is there.
const V8_HEADER: u64 = 0x40;
/// No call frame information of one function is longer.
const LONGEST_FRAMES: u64 = 64 << 10;

/// Code that a compiler made, as far as a file has it.
#[derive(Debug, Default)]
pub(crate) struct JitDump {
    /// Number of the architecture, as in the header of an ELF file; `None` if it is no such file.
    machine: Option<u16>,
    table: SymbolTable,
    /// In the order of the table.
    functions: Vec<Function>,
    /// Names of source files.
    files: Vec<Arc<str>>,
    rules: HashMap<u64, Option<Arc<Rules>>>,
}

/// A function that was compiled.
#[derive(Debug, Default)]
struct Function {
    /// The first address behind it.
    end: u64,
    name: String,
    /// Offset of its code in the file.
    code: u64,
    /// Its source lines, by the bytes from its start.
    lines: Vec<Line>,
    /// Its `.eh_frame`, which lies behind its code.
    frames: Box<[u8]>,
}

/// A source line, from an instruction on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    from: u32,
    file: u32,
    line: u32,
}

impl JitDump {
    /// Reads a file; nothing is in it where it is no such file. What code was put in the place of other code later has its
    /// place: the times of records are those of another clock than a recording's as a rule.
    pub(crate) fn read(file: impl Read) -> Self {
        let mut records = Records::new(BufReader::new(file.take(LONGEST)));
        // A file that is still written ends anywhere.
        let _ = records.read();
        let mut builder = TableBuilder::default();
        for (start, function) in &records.by_start {
            let extent = Extent::Known(function.end - start);
            builder.add(*start, extent, 0, &function.name);
        }
        Self {
            machine: records.machine,
            table: builder.build(),
            functions: records.by_start.into_values().collect(),
            files: records.files,
            rules: HashMap::new(),
        }
    }

    /// Returns the number of the architecture, as in the header of an ELF file; `None` if this is no such file.
    pub(crate) fn machine(&self) -> Option<u16> {
        self.machine
    }

    /// Returns the function at an address.
    pub(crate) fn find(&self, address: u64) -> Option<Symbol<'_>> {
        self.table.find(address)
    }

    /// Returns the source file and line of an address.
    pub(crate) fn source_at(&self, address: u64) -> Option<(&Arc<str>, u32)> {
        let symbol = self.find(address)?;
        let lines = &self.functions.get(symbol.index)?.lines;
        let behind = lines.partition_point(|line| u64::from(line.from) <= address - symbol.start);
        let line = lines.get(behind.checked_sub(1)?)?;
        Some((self.files.get(line.file as usize)?, line.line))
    }

    /// Returns where the code of the function at an address begins in the file.
    pub(crate) fn code_of(&self, symbol: &Symbol<'_>) -> Option<u64> {
        Some(self.functions.get(symbol.index)?.code)
    }

    /// Returns the rules that restore the registers of a caller at an address.
    pub(crate) fn rules_at(&mut self, address: u64) -> Option<Arc<Rules>> {
        if let Some(known) = self.rules.get(&address) {
            return known.clone();
        }
        let rules = self.table.find(address).and_then(|symbol| {
            let frames = &self.functions.get(symbol.index)?.frames;
            let behind = symbol.start + (symbol.end - symbol.start).checked_next_multiple_of(8)?;
            CallFrames::of_code(frames, behind, self.machine?)?.at(address)
        });
        self.rules.insert(address, rules.clone());
        rules
    }
}

/// The records of a file, and what was found in them.
struct Records<R> {
    file: R,
    /// Bytes that were read.
    at: u64,
    is_swapped: bool,
    machine: Option<u16>,
    /// Functions by their first addresses.
    by_start: BTreeMap<u64, Function>,
    files: Vec<Arc<str>>,
    numbers: HashMap<Arc<str>, u32>,
    /// Lines of code that comes in a record behind theirs, by its address.
    lines: (u64, Vec<Line>),
    /// The `.eh_frame` of the code of the next record.
    frames: Box<[u8]>,
}

impl<R: BufRead> Records<R> {
    fn new(file: R) -> Self {
        Self {
            file,
            at: 0,
            is_swapped: false,
            machine: None,
            by_start: BTreeMap::new(),
            files: Vec::new(),
            numbers: HashMap::new(),
            lines: (0, Vec::new()),
            frames: Box::default(),
        }
    }

    /// Reads records as long as they are whole.
    fn read(&mut self) -> Option<()> {
        self.is_swapped = match self.half()? {
            MAGIC => false,
            magic if magic == MAGIC.swap_bytes() => true,
            _ => return None,
        };
        let _version = self.half()?;
        let header = self.half()?;
        self.machine = Some(self.half()?.try_into().ok()?);
        self.skip_to(u64::from(header))?;
        loop {
            let begin = self.at;
            let (kind, len) = (self.half()?, self.half()?);
            let _time = self.word()?;
            let end = begin.checked_add(u64::from(len))?;
            // Of a record that is shorter than what it should hold, nothing is taken.
            let _ = match kind {
                LOAD => self.load(end),
                MOVE => self.moved(end),
                DEBUG_INFO => self.debug_info(end),
                UNWINDING_INFO => self.unwinding_info(end),
                _ => Some(()),
            };
            if len < RECORD_HEADER as u32 {
                return None;
            }
            self.skip_to(end)?;
        }
    }

    /// Loaded code: process, thread, virtual address, address, length, index, name, code.
    fn load(&mut self, end: u64) -> Option<()> {
        let lines = std::mem::take(&mut self.lines);
        let frames = std::mem::take(&mut self.frames);
        let [_, start, _, len, _] = self.words(end)?;
        let name = self.text(end)?;
        let function = Function {
            end: start.saturating_add(len),
            name: String::from_utf8_lossy(&name).into_owned(),
            code: self.at,
            lines: if lines.0 == start {
                lines.1
            } else {
                Vec::new()
            },
            frames,
        };
        self.add(start, function);
        Some(())
    }

    /// Code that was moved: process, thread, virtual address, the address before and the one now, length, index.
    fn moved(&mut self, end: u64) -> Option<()> {
        let [_, _, before, now, len, _] = self.words(end)?;
        let mut function = self.by_start.remove(&before)?;
        function.end = now.saturating_add(len);
        self.add(now, function);
        Some(())
    }

    /// Lines of code that is loaded next: its address, the number of lines; of each address, line, discriminator, file.
    fn debug_info(&mut self, end: u64) -> Option<()> {
        let [start, _count] = self.words(end)?;
        let mut lines = Vec::new();
        let mut file = None;
        while self.at < end {
            let [address, place] = self.words(end)?;
            let line = if self.is_swapped { place >> 32 } else { place } as u32;
            let name = self.text(end)?;
            if name != SAME_FILE {
                file = Some(self.number_of(&name)?);
            }
            let from = address
                .checked_sub(start)
                .and_then(|from| from.try_into().ok());
            if let (Some(from), Some(file)) = (from, file) {
                lines.push(Line { from, file, line });
            }
        }
        // Stable: of several lines for one address the last one counts, as in DWARF.
        lines.sort_by_key(|line| line.from);
        if lines
            .first()
            .is_some_and(|line| u64::from(line.from) == V8_HEADER)
        {
            lines
                .iter_mut()
                .for_each(|line| line.from -= V8_HEADER as u32);
        }
        self.lines = (start, lines);
        Some(())
    }

    /// Call frame information of code that is loaded next: its length, that of its index, which comes behind it, and as much of
    /// both as is in memory.
    fn unwinding_info(&mut self, end: u64) -> Option<()> {
        let [len, of_index, _in_memory] = self.words(end)?;
        let len = len.checked_sub(of_index)?;
        if len > LONGEST_FRAMES || len > end.saturating_sub(self.at) || self.is_swapped {
            return None;
        }
        let mut frames = vec![0; len as usize].into_boxed_slice();
        self.fill(&mut frames)?;
        self.frames = frames;
        Some(())
    }

    /// Adds a function, which takes the place of those that lay there.
    fn add(&mut self, start: u64, function: Function) {
        let end = function.end;
        if start >= end {
            return;
        }
        while let Some((&before, earlier)) = self.by_start.range(..end).next_back()
            && earlier.end > start
        {
            self.by_start.remove(&before);
        }
        self.by_start.insert(start, function);
    }

    /// Returns the number of a source file.
    fn number_of(&mut self, name: &[u8]) -> Option<u32> {
        let name = String::from_utf8_lossy(name);
        if let Some(number) = self.numbers.get(&*name) {
            return Some(*number);
        }
        let (number, name) = (u32::try_from(self.files.len()).ok()?, Arc::from(name));
        self.files.push(Arc::clone(&name));
        self.numbers.insert(name, number);
        Some(number)
    }

    /// Reads numbers of 64 bits, if the record has so many.
    fn words<const N: usize>(&mut self, end: u64) -> Option<[u64; N]> {
        if end.saturating_sub(self.at) < 8 * N as u64 {
            return None;
        }
        let mut words = [0; N];
        for word in &mut words {
            *word = self.word()?;
        }
        Some(words)
    }

    /// Reads a text that ends with NUL in the record.
    fn text(&mut self, end: u64) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        let longest = end.saturating_sub(self.at).min(LONGEST_NAME as u64);
        let read = self.file.by_ref().take(longest).read_until(0, &mut text);
        self.at += read.ok()? as u64;
        (text.pop() == Some(0)).then_some(text)
    }

    fn half(&mut self) -> Option<u32> {
        let mut bytes = [0; 4];
        self.fill(&mut bytes)?;
        let number = u32::from_ne_bytes(bytes);
        Some(if self.is_swapped {
            number.swap_bytes()
        } else {
            number
        })
    }

    fn word(&mut self) -> Option<u64> {
        let mut bytes = [0; 8];
        self.fill(&mut bytes)?;
        let number = u64::from_ne_bytes(bytes);
        Some(if self.is_swapped {
            number.swap_bytes()
        } else {
            number
        })
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Option<()> {
        self.file.read_exact(bytes).ok()?;
        self.at += bytes.len() as u64;
        Some(())
    }

    /// Passes over bytes up to a place; `None` if it was passed, or there are not so many.
    fn skip_to(&mut self, end: u64) -> Option<()> {
        let len = end.checked_sub(self.at)?;
        let skipped =
            std::io::copy(&mut self.file.by_ref().take(len), &mut std::io::sink()).ok()?;
        self.at += skipped;
        (skipped == len).then_some(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::call_frames::Rule;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let head = [kind, 16 + body.len() as u32];
        let head: Vec<u8> = head.iter().flat_map(|n| n.to_ne_bytes()).collect();
        [&head, &words(&[0])[..], body].concat()
    }

    pub(crate) fn load(start: u64, name: &[u8], code: &[u8]) -> Vec<u8> {
        let numbers = words(&[7, start, start, code.len() as u64, 1]);
        record(LOAD, &[&numbers, name, &[0], code].concat())
    }

    pub(crate) fn file(records: &[Vec<u8>]) -> Vec<u8> {
        let head: Vec<u8> = [MAGIC, 1, 40, 62, 0, 7]
            .iter()
            .flat_map(|n| n.to_ne_bytes())
            .collect();
        [head, words(&[0, 0]), records.concat()].concat()
    }

    #[test]
    fn functions_are_where_they_were_last() {
        let moved = record(MOVE, &words(&[7, 0x2000, 0x2000, 0x5000, 16, 2]));
        let records = [
            load(0x1000, b"first", &[0x90; 32]),
            record(2, &[0; 20]),
            load(0x2000, b"moved", &[0x90; 16]),
            load(0x1010, b"over it", &[0x90; 16]),
            moved,
        ];
        let whole = file(&records);
        let table = JitDump::read(&whole[..]);
        let name = |address| table.find(address).map(|symbol| symbol.name);
        assert_eq!(
            [0x1000, 0x1010, 0x101f, 0x1020].map(name),
            [None, Some("over it"), Some("over it"), None]
        );
        assert_eq!([0x2000, 0x500f].map(name), [None, Some("moved")]);
        for len in 0..whole.len() {
            assert!(JitDump::read(&whole[..len]).functions.len() <= 2);
        }
    }

    pub(crate) fn lines(start: u64, lines: &[(u64, u32, &[u8])]) -> Vec<u8> {
        let mut body = words(&[start, lines.len() as u64]);
        for (address, line, file) in lines {
            body.extend(address.to_ne_bytes());
            body.extend([*line, 0].iter().flat_map(|n| n.to_ne_bytes()));
            body.extend_from_slice(file);
            body.push(0);
        }
        record(DEBUG_INFO, &body)
    }

    #[test]
    fn lines_are_those_of_the_code_that_comes_next() {
        let of_first: [(u64, u32, &[u8]); 3] = [
            (0x1008, 3, SAME_FILE),
            (0x1000, 2, b"a.js"),
            (0x1010, 9, b"b.js"),
        ];
        // The order of the file decides whose name is meant by "the same".
        let of_first = [of_first[1], of_first[0], of_first[2]];
        let records = [
            lines(0x1000, &of_first),
            load(0x1000, b"first", &[0x90; 32]),
            lines(0x9000, &of_first),
            load(0x2000, b"without", &[0x90; 16]),
            lines(0x3000, &[(0x3040, 5, b"v8.js"), (0x3044, 6, SAME_FILE)]),
            load(0x3000, b"of V8", &[0x90; 16]),
            record(MOVE, &words(&[7, 0x1000, 0x1000, 0x5000, 32, 1])),
        ];
        let whole = file(&records);
        let dump = JitDump::read(&whole[..]);
        let source = |address| {
            let (file, line) = dump.source_at(address)?;
            Some((&**file, line))
        };
        let moved = [0x5000, 0x5007, 0x5008, 0x501f, 0x5020].map(source);
        let (a, b) = ("a.js", "b.js");
        assert_eq!(
            moved,
            [Some((a, 2)), Some((a, 2)), Some((a, 3)), Some((b, 9)), None]
        );
        assert_eq!([0x2000, 0x1000].map(source), [None, None]);
        assert_eq!(
            [0x3000, 0x3004].map(source),
            [Some(("v8.js", 5)), Some(("v8.js", 6))]
        );
        for len in 0..whole.len() {
            JitDump::read(&whole[..len]);
        }
    }

    /// A function that pushes a register at its fourth byte, as `.eh_frame` says it.
    #[test]
    fn call_frame_information_lies_behind_the_code() {
        // Of pointers to data of the language V8 says that there are none.
        let augmentations: [(&[u8], &[u8]); 2] =
            [(b"zR\0", &[1, 0x1b]), (b"zLR\0", &[2, 0xff, 0x1b])];
        for (augmentation, encodings) in augmentations {
            let common = [
                &[0; 4][..],
                &[1],
                augmentation,
                // Alignments, and the register of the return address.
                &[1, 0x78, 16],
                encodings,
                // The frame begins behind the return address.
                &[0x0c, 7, 8],
            ]
            .concat();
            let len = common.len() as u32;
            // Its code is 32 bytes before the section.
            let begin = -32 - (len as i32 + 12);
            let own = [
                (len + 8).to_le_bytes(),
                begin.to_le_bytes(),
                32u32.to_le_bytes(),
                [0, 0x44, 0x0e, 16],
            ]
            .concat();
            let common = [&len.to_le_bytes(), &common[..]].concat();
            let frames = [common, vec![16, 0, 0, 0], own, vec![0; 4]].concat();
            check(&frames);
        }
    }

    fn check(frames: &[u8]) {
        let index = [0; 20];
        let sizes = words(&[frames.len() as u64 + 20, 20, 0]);
        let info = record(UNWINDING_INFO, &[&sizes[..], frames, &index].concat());
        let whole = file(&[
            info,
            load(0x1000, b"with", &[0x90; 30]),
            load(0x2000, b"without", &[0x90; 30]),
        ]);
        let mut dump = JitDump::read(&whole[..]);
        let mut offset = |address| match dump.rules_at(address)?.cfa {
            Rule::Register(gimli::X86_64::RSP, offset) => Some(offset),
            _ => None,
        };
        let addresses = [0x1000, 0x1003, 0x1004, 0x101d, 0x101e, 0x2000];
        let offsets = [Some(8), Some(8), Some(16), Some(16), None, None];
        assert_eq!(addresses.map(&mut offset), offsets);
    }

    #[test]
    fn other_files_have_none() {
        assert_eq!(JitDump::read(&b"#!/bin/sh"[..]).machine(), None);
        let bad = record(LOAD, &[1; 20]);
        let short = [0u32, 3].iter().flat_map(|n| n.to_ne_bytes()).collect();
        for file in [
            vec![],
            b"#!/bin/sh\nexit\n".to_vec(),
            file(&[bad]),
            file(&[short]),
        ] {
            assert_eq!(JitDump::read(&file[..]).functions.len(), 0);
        }
    }
}
