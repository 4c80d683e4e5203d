//! Functions of just-in-time compilers that write their code to a file, `jit-PID.dump`
//! (`tools/perf/Documentation/jitdump-specification.txt`).

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read};

use crate::table::{Extent, LONGEST_NAME, SymbolTable, TableBuilder};

/// As much of a file is read: its code is in it too.
const LONGEST: u64 = 1 << 30;
/// `JiTD`, in the byte order of the machine that wrote it.
const MAGIC: u32 = 0x4A69_5444;
/// `JIT_CODE_LOAD` and `JIT_CODE_MOVE`.
const LOAD: u32 = 0;
const MOVE: u32 = 1;
/// Bytes before the name in a record of loaded code, behind the header of the record: process and thread, the virtual address,
/// that of the code, its length, its index.
const BEFORE_NAME: usize = 8 + 4 * 8;
/// Bytes of the header of a record: kind, length, time.
const RECORD_HEADER: u64 = 16;

/// Returns the functions in a file; none where it is no such file. What code was put in the place of other code later has its
/// place: the times of records are those of another clock than a recording's as a rule.
pub(crate) fn functions_in(file: impl Read) -> SymbolTable {
    let mut functions = Functions::default();
    // A file that is still written ends anywhere.
    let _ = read(BufReader::new(file.take(LONGEST)), &mut functions);
    let mut builder = TableBuilder::default();
    for (start, (end, name)) in functions.by_start {
        builder.add(start, Extent::Known(end - start), 0, &name);
    }
    builder.build()
}

/// Functions by their first addresses, with the first address behind them and the name.
#[derive(Default)]
struct Functions {
    by_start: BTreeMap<u64, (u64, String)>,
}

impl Functions {
    /// Adds a function, which takes the place of those that lay there.
    fn add(&mut self, start: u64, len: u64, name: String) {
        let end = start.saturating_add(len);
        if start == end {
            return;
        }
        while let Some((&before, (until, _))) = self.by_start.range(..end).next_back()
            && *until > start
        {
            self.by_start.remove(&before);
        }
        self.by_start.insert(start, (end, name));
    }
}

/// Reads records as long as they are whole.
fn read(mut file: impl BufRead, functions: &mut Functions) -> Option<()> {
    let mut word = [0; 4];
    let mut next = |file: &mut dyn Read| {
        file.read_exact(&mut word).ok()?;
        Some(u32::from_ne_bytes(word))
    };
    let swapped = match next(&mut file)? {
        MAGIC => false,
        magic if magic == MAGIC.swap_bytes() => true,
        _ => return None,
    };
    let of_file = |number: u32| if swapped { number.swap_bytes() } else { number };
    let _version = next(&mut file)?;
    let header = of_file(next(&mut file)?);
    skip(&mut file, u64::from(header).checked_sub(12)?)?;
    loop {
        let (kind, len) = (of_file(next(&mut file)?), of_file(next(&mut file)?));
        skip(&mut file, 8)?;
        let mut rest = u64::from(len).checked_sub(RECORD_HEADER)?;
        if matches!(kind, LOAD | MOVE) && rest >= BEFORE_NAME as u64 {
            let mut fields = [0; BEFORE_NAME];
            file.read_exact(&mut fields).ok()?;
            rest -= BEFORE_NAME as u64;
            let number = |at: usize| {
                let bytes = fields.get(8 + 8 * at..)?.first_chunk()?;
                let number = u64::from_ne_bytes(*bytes);
                Some(if swapped { number.swap_bytes() } else { number })
            };
            if kind == LOAD {
                let mut name = Vec::new();
                let longest = rest.min(LONGEST_NAME as u64);
                rest -= file.by_ref().take(longest).read_until(0, &mut name).ok()? as u64;
                if name.pop() == Some(0) {
                    let name = String::from_utf8_lossy(&name).into_owned();
                    functions.add(number(1)?, number(2)?, name);
                }
            } else {
                // The address before and the one now: there is one more number than of loaded code.
                let mut index = [0; 8];
                file.read_exact(&mut index).ok()?;
                rest = rest.checked_sub(8)?;
                if let Some((_, name)) = functions.by_start.remove(&number(1)?) {
                    functions.add(number(2)?, number(3)?, name);
                }
            }
        }
        skip(&mut file, rest)?;
    }
}

/// Passes over bytes; `None` if there are not so many.
fn skip(file: &mut impl Read, len: u64) -> Option<()> {
    let skipped = std::io::copy(&mut file.take(len), &mut std::io::sink()).ok()?;
    (skipped == len).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    fn record(kind: u32, body: &[u8]) -> Vec<u8> {
        let head = [kind, 16 + body.len() as u32];
        let head: Vec<u8> = head.iter().flat_map(|n| n.to_ne_bytes()).collect();
        [&head, &words(&[0])[..], body].concat()
    }

    fn load(start: u64, name: &[u8], code: &[u8]) -> Vec<u8> {
        let numbers = words(&[7, start, start, code.len() as u64, 1]);
        record(LOAD, &[&numbers, name, &[0], code].concat())
    }

    fn file(records: &[Vec<u8>]) -> Vec<u8> {
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
        let table = functions_in(&whole[..]);
        let name = |address| table.find(address).map(|symbol| symbol.name);
        assert_eq!(
            [0x1000, 0x1010, 0x101f, 0x1020].map(name),
            [None, Some("over it"), Some("over it"), None]
        );
        assert_eq!([0x2000, 0x500f].map(name), [None, Some("moved")]);
        for len in 0..whole.len() {
            assert!(functions_in(&whole[..len]).len() <= 2);
        }
    }

    #[test]
    fn other_files_have_none() {
        let bad = record(LOAD, &[1; 20]);
        let short = [0u32, 3].iter().flat_map(|n| n.to_ne_bytes()).collect();
        for file in [
            vec![],
            b"#!/bin/sh\nexit\n".to_vec(),
            file(&[bad]),
            file(&[short]),
        ] {
            assert_eq!(functions_in(&file[..]).len(), 0);
        }
    }
}
