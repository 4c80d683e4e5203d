//! Sections of call frame information, byte by byte, in files of both machines.

use std::path::PathBuf;

use super::*;

const X86_64: u16 = 62;
const AARCH64: u16 = 183;
/// Address of `.eh_frame`.
const FRAMES: u64 = 0x9000;
/// A function.
const START: u64 = 0x1000;
const LEN: u32 = 0x100;

/// Returns a file of so many bits with these sections, by their names and addresses.
fn elf(machine: u16, sections: &[(&str, u64, &[u8])]) -> Vec<u8> {
    let mut names = vec![0];
    let mut content = Vec::new();
    // Kind, name, address, offset, length.
    let mut headers = vec![[0; 5]];
    let mut all: Vec<_> = sections.to_vec();
    let empty: &[u8] = &[];
    all.push((".shstrtab", 0, empty));
    let texts: Vec<u8> = all
        .iter()
        .flat_map(|(name, ..)| [name.as_bytes(), &[0]].concat())
        .collect();
    let texts = [&[0], &texts[..]].concat();
    for (name, address, bytes) in all {
        let bytes = if name == ".shstrtab" { &texts } else { bytes };
        let kind = if name == ".shstrtab" { 3 } else { 1 };
        let at = 64 + content.len() as u64;
        headers.push([kind, names.len() as u64, address, at, bytes.len() as u64]);
        names.extend(name.bytes().chain([0]));
        content.extend_from_slice(bytes);
    }
    let mut elf = b"\x7fELF\x02\x01\x01".to_vec();
    elf.resize(16, 0);
    elf.extend([3, 0]);
    elf.extend(machine.to_le_bytes());
    elf.extend([1, 0, 0, 0]);
    let behind = 64 + content.len() as u64;
    elf.extend([0, 0, behind].iter().flat_map(|n| n.to_le_bytes()));
    elf.extend([0; 4]);
    let count = headers.len() as u16;
    let sizes = [64, 56, 0, 64, count, count - 1];
    elf.extend(sizes.iter().flat_map(|n| n.to_le_bytes()));
    elf.extend(content);
    for [kind, name, address, offset, len] in headers {
        elf.extend((name | kind << 32).to_le_bytes());
        let rest = [2, address, offset, len, 0, 1, 0];
        elf.extend(rest.iter().flat_map(|n: &u64| n.to_le_bytes()));
    }
    elf
}

/// Returns the part that descriptions have in common, with letters beside those of where functions begin.
fn common(letters: &str) -> Vec<u8> {
    let letters = ["zR", letters, "\0"].concat();
    // Alignments of 1 and -8, the return address in register 16, addresses relative to where they are.
    let body = [
        &[0, 0, 0, 0, 1],
        letters.as_bytes(),
        &[1, 0x78, 16, 1, 0x1b],
        // DW_CFA_def_cfa: register 7 and 8.
        &[0x0c, 7, 8],
    ]
    .concat();
    [&(body.len() as u32).to_le_bytes(), &body[..]].concat()
}

/// Returns the description of a function, which lies at an offset in the section, as does what it has in common.
fn function(at: usize, common: usize, (start, len): (u64, u32), rules: &[u8]) -> Vec<u8> {
    let begin = (start as i64 - (FRAMES as i64 + at as i64 + 8)) as i32;
    let body = [
        &(at as u32 + 4 - common as u32).to_le_bytes(),
        &begin.to_le_bytes(),
        &len.to_le_bytes(),
        &[0][..],
        rules,
    ]
    .concat();
    [&(body.len() as u32).to_le_bytes(), &body[..]].concat()
}

/// Returns an `.eh_frame` of one function with these rules.
fn of_one(letters: &str, rules: &[u8]) -> Vec<u8> {
    let common = common(letters);
    let own = function(common.len(), 0, (START, LEN), rules);
    [common, own, vec![0; 4]].concat()
}

fn opened(machine: u16, sections: &[(&str, u64, &[u8])]) -> Option<CallFrames> {
    CallFrames::of_bytes(elf(machine, sections))
}

/// Returns the offset of the frame from the stack pointer at each address.
fn offsets<const N: usize>(frames: &mut CallFrames, addresses: [u64; N]) -> [Option<i64>; N] {
    addresses.map(|address| match frames.at(address)?.cfa {
        Rule::Register(Register(7), offset) => Some(offset),
        ref other => panic!("{other:?}"),
    })
}

/// DW_CFA_advance_loc 4, DW_CFA_def_cfa_offset 16: the frame is larger from the fourth byte on.
const PUSHES: [u8; 3] = [0x44, 0x0e, 16];

#[test]
fn rules_are_those_of_the_function_from_its_first_to_its_last_byte() {
    let section = of_one("", &PUSHES);
    for machine in [X86_64, AARCH64] {
        let file = [(".eh_frame", FRAMES, &section[..])];
        let mut frames = opened(machine, &file).expect("a section of frames");
        let end = START + u64::from(LEN);
        let addresses = [START - 1, START, START + 3, START + 4, end - 1, end];
        let expected = [None, Some(8), Some(8), Some(16), Some(16), None];
        for _ in 0..2 {
            assert_eq!(offsets(&mut frames, addresses), expected);
        }
        let twice = [START, START].map(|at| frames.at(at).expect("rules"));
        assert!(Arc::ptr_eq(&twice[0], &twice[1]), "they are kept");
        let rules = &twice[0];
        assert_eq!(rules.return_address, Register(16));
        assert!(!rules.is_signal && !rules.is_of_go);
        assert_eq!(
            (rules.encoding.address_size, rules.encoding.version),
            (8, 1)
        );
    }
}

#[test]
fn every_rule_of_a_register_is_taken_over() {
    let rules = [
        // DW_CFA_same_value, DW_CFA_offset, DW_CFA_val_offset, DW_CFA_register, DW_CFA_undefined.
        &[0x08, 3, 0x86, 2, 0x14, 12, 1, 0x09, 13, 5, 0x07, 14][..],
        // DW_CFA_expression and DW_CFA_val_expression, with what they have.
        &[0x10, 15, 2, 0x77, 1, 0x16, 0, 2, 0x77, 2],
        // DW_CFA_advance_loc and DW_CFA_def_cfa_expression.
        &[0x41, 0x0f, 2, 0x77, 3],
    ];
    let section = of_one("S", &rules.concat());
    let file = [(".eh_frame", FRAMES, &section[..])];
    let mut frames = opened(X86_64, &file).expect("a section of frames");
    let rules = frames.at(START).expect("rules");
    assert!(rules.is_signal);
    let bytes = |expression: &Expression<Bytes>| expression.0.bytes().to_vec();
    let mut found: Vec<_> = rules
        .registers
        .iter()
        .map(|(register, rule)| {
            let rule = match rule {
                Rule::Expression(it) => format!("Expression({:x?})", bytes(it)),
                Rule::ValueExpression(it) => format!("ValueExpression({:x?})", bytes(it)),
                other => format!("{other:?}"),
            };
            (register.0, rule)
        })
        .collect();
    found.sort();
    let expected = [
        (0, "ValueExpression([77, 2])"),
        (3, "SameValue"),
        (6, "Offset(-16)"),
        (12, "ValueOffset(-8)"),
        (13, "Register(Register(5), 0)"),
        (14, "Undefined"),
        (15, "Expression([77, 1])"),
    ];
    assert_eq!(
        found,
        expected.map(|(register, rule)| (register, rule.to_owned()))
    );
    let cfa = &frames.at(START + 1).expect("rules").cfa;
    let is_expression = matches!(cfa, Rule::ValueExpression(it) if bytes(it) == [0x77, 3]);
    assert!(is_expression, "{cfa:?}");
}

#[test]
fn what_only_one_machine_has_is_read_for_that_alone() {
    // DW_CFA_AARCH64_negate_ra_state.
    let section = of_one("", &[0x2d, 0x0e, 32]);
    let file = [(".eh_frame", FRAMES, &section[..])];
    let debug = debug_frame(32, &[0x2d]);
    let debug_file = [(".debug_frame", 0, &debug[..])];
    for (machine, expected) in [(AARCH64, Some(32)), (X86_64, None)] {
        for file in [file, debug_file] {
            let mut frames = opened(machine, &file).expect("a section of frames");
            assert_eq!(offsets(&mut frames, [START]), [expected], "{machine}");
        }
        let mut frames = CallFrames::of_code(&section, FRAMES, machine).expect("a known machine");
        assert_eq!(offsets(&mut frames, [START]), [expected], "{machine}");
    }
    assert!(CallFrames::of_code(&section, FRAMES, 40).is_none());
}

/// Returns a `.debug_frame` that says of the function how large its frame is, after other rules.
fn debug_frame(len: u8, before: &[u8]) -> Vec<u8> {
    let common = [
        &[0xff; 4][..],
        // Version, no letters, bytes of addresses and of segments, alignments, the return address.
        &[4, 0, 8, 0, 1, 0x78, 16],
        &[0x0c, 7, 8],
    ]
    .concat();
    let own = [
        &[0; 4][..],
        &START.to_le_bytes(),
        &u64::from(LEN).to_le_bytes(),
        before,
        &[0x0e, len],
    ]
    .concat();
    let entries =
        [common, own].map(|entry| [&(entry.len() as u32).to_le_bytes(), &entry[..]].concat());
    entries.concat()
}

#[test]
fn debug_information_says_what_no_exception_needs_to_know() {
    const OTHER: u64 = 0x5000;
    let common = common("");
    let own = function(common.len(), 0, (OTHER, LEN), &[0x0e, 64]);
    let eh_frame = [common, own].concat();
    let [debug, other_debug] = [32, 48].map(|len| debug_frame(len, &[]));
    let eh = (".eh_frame", FRAMES, &eh_frame[..]);
    let folder = tempfile::tempdir().expect("writable");
    let write = |name: &str, sections: &[(&str, u64, &[u8])]| {
        let path = folder.path().join(name);
        std::fs::write(&path, elf(X86_64, sections)).expect("writable");
        path
    };
    let both = write("both", &[eh, (".debug_frame", 0, &debug)]);
    let of_eh = write("eh", &[eh]);
    let apart = write("apart", &[(".debug_frame", 0, &other_debug)]);
    let neither = write("neither", &[(".text", 0, &[0; 8])]);
    let gone = folder.path().join("gone");
    for (path, debug_file, expected) in [
        (&both, None, [Some(32), Some(64)]),
        (&both, Some(&apart), [Some(32), Some(64)]),
        (&of_eh, None, [None, Some(64)]),
        (&of_eh, Some(&apart), [Some(48), Some(64)]),
        (&of_eh, Some(&neither), [None, Some(64)]),
        (&of_eh, Some(&gone), [None, Some(64)]),
        (&neither, Some(&apart), [Some(48), None]),
        (&gone, Some(&apart), [Some(48), None]),
    ] {
        let frames = CallFrames::open(path, debug_file.map(PathBuf::as_path));
        let mut frames = frames.expect("a section of frames");
        let found = offsets(&mut frames, [START, OTHER]);
        assert_eq!(found, expected, "{} {debug_file:?}", path.display());
    }
    assert!(CallFrames::open(&neither, None).is_none());
    assert!(CallFrames::open(&gone, None).is_none());
    let mut rules = CallFrames::open(&both, None).expect("sections of frames");
    let encoding = rules.at(START).expect("rules").encoding;
    assert_eq!((encoding.address_size, encoding.version), (8, 4));
}

#[test]
fn programs_of_go_are_known_by_their_table() {
    let section = of_one("", &PUSHES);
    for (table, is_of_go) in [
        (".gopclntab", true),
        (".data.rel.ro.gopclntab", true),
        (".data.rel.ro", false),
    ] {
        let file = [(".eh_frame", FRAMES, &section[..]), (table, 0, &[1])];
        let mut frames = opened(X86_64, &file).expect("a section of frames");
        assert_eq!(
            frames.at(START).expect("rules").is_of_go,
            is_of_go,
            "{table}"
        );
    }
}

#[test]
fn files_of_other_kinds_have_no_frames() {
    let section = of_one("", &PUSHES);
    let file = [(".eh_frame", FRAMES, &section[..])];
    let good = elf(X86_64, &file);
    assert!(CallFrames::of_bytes(good.clone()).is_some());
    // A file of big-endian numbers, and what is none.
    let mut big = good.clone();
    big[5] = 2;
    assert!(CallFrames::of_bytes(big).is_none());
    assert!(CallFrames::of_bytes(b"#!/bin/sh\n".to_vec()).is_none());
    assert!(opened(X86_64, &[(".eh_frame", FRAMES, &[])]).is_none());
    // Files of 32 bits have headers of their own.
    let mut small = b"\x7fELF\x01\x01\x01".to_vec();
    small.resize(52, 0);
    small[16] = 3;
    small[20] = 1;
    assert!(CallFrames::of_bytes(small).is_none());
}

#[test]
fn descriptions_that_are_too_long_or_refer_ahead_are_left_out() {
    let common = common("");
    let nops = |len: usize| [&PUSHES[..], &vec![0; len]].concat();
    let behind = |parts: &[&[u8]]| parts.iter().map(|part| part.len()).sum::<usize>();
    // The bytes behind its length: where it begins, and the rules.
    let longest = LONGEST_DESCRIPTION - 13 - PUSHES.len();
    for (len, is_read) in [(longest, true), (longest + 1, false)] {
        let own = function(common.len(), 0, (START, LEN), &nops(len));
        let next = behind(&[&common, &own]);
        let second = function(next, 0, (0x5000, LEN), &PUSHES);
        let section = [&common[..], &own, &second].concat();
        let file = [(".eh_frame", FRAMES, &section[..])];
        let mut frames = opened(X86_64, &file).expect("a section of frames");
        let found = offsets(&mut frames, [START, 0x5000]);
        assert_eq!(found, [is_read.then_some(8), Some(8)], "{len}");
    }
    // One refers to no common part, one has no bytes, and the last is good.
    let first = function(common.len(), 4, (START, LEN), &PUSHES);
    let empty = behind(&[&common, &first]);
    let without = function(empty, 0, (0x3000, 0), &PUSHES);
    let last = function(empty + without.len(), 0, (0x5000, LEN), &PUSHES);
    let section = [&common[..], &first, &without, &last].concat();
    let file = [(".eh_frame", FRAMES, &section[..])];
    let mut frames = opened(X86_64, &file).expect("a section of frames");
    let found = offsets(&mut frames, [START, 0x3000, 0x5000]);
    assert_eq!(found, [None, None, Some(8)]);
    // In debug information one may have what it has in common behind it.
    let good = debug_frame(32, &[]);
    let len = 4 + u32::from_le_bytes(*good.first_chunk().expect("a length"));
    let (common, own) = good.split_at(len as usize);
    for (ahead, expected) in [(true, None), (false, Some(32))] {
        let mut own = own.to_vec();
        let at = if ahead { own.len() as u32 } else { 0 };
        own[4..8].copy_from_slice(&at.to_le_bytes());
        let section = match ahead {
            true => [&own, common].concat(),
            false => [common, &own].concat(),
        };
        let file = [(".debug_frame", 0, &section[..])];
        let mut frames = opened(X86_64, &file).expect("a section of frames");
        assert_eq!(offsets(&mut frames, [START]), [expected]);
    }
}

#[test]
fn functions_are_found_in_any_order_and_sections_cut_anywhere() {
    let common = common("");
    let starts = [0x5000, 0x3000, 0x4000, 0x1000];
    let mut section = common.clone();
    for (i, start) in starts.into_iter().enumerate() {
        let rules = [0x0e, 16 + i as u8];
        section.extend(function(section.len(), 0, (start, LEN), &rules));
    }
    let file = [(".eh_frame", FRAMES, &section[..])];
    let mut frames = opened(X86_64, &file).expect("a section of frames");
    let expected = [16, 17, 18, 19].map(Some);
    assert_eq!(offsets(&mut frames, starts), expected);
    for len in 1..section.len() {
        let file = [(".eh_frame", FRAMES, &section[..len])];
        let mut frames = opened(X86_64, &file).expect("a section of frames");
        let found = offsets(&mut frames, starts);
        for (at, (found, expected)) in found.into_iter().zip(expected).enumerate() {
            let own = (section.len() - common.len()) / starts.len();
            let is_whole = len >= common.len() + own * (at + 1);
            assert_eq!(found, expected.filter(|_| is_whole), "{len} {at}");
        }
    }
}
