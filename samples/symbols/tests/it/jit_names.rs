//! Functions that compilers made as a program ran, by the files in which these list them.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{chown, symlink};

use quipu_symbols::{
    AddressOwner, Architecture, CallerOf, Copies, FileIdentity, LeftOut, Mapped, NoNames,
    Processes, Symbolizer,
};

use crate::compiler::{MEMORY, Map, dump, map, own_number};
use crate::mapped::START;

fn here() -> Symbolizer {
    Symbolizer::new().of_this_machine(true)
}

/// Returns the object and the name of the function at an address of a process.
fn at(
    symbolizer: &mut Symbolizer,
    processes: &Processes,
    (pid, address): (i32, u64),
) -> (String, Option<String>) {
    let mut found = Vec::new();
    let owner = AddressOwner::Process(pid);
    symbolizer.resolve(processes, owner, address, &mut found);
    assert_eq!(found.len(), 1, "{found:?}");
    let function = found.remove(0);
    let name = function.name.map(|name| name.to_string());
    (function.object.to_string(), name)
}

fn made(name: &str) -> (String, Option<String>) {
    ("[jit]".to_owned(), Some(name.to_owned()))
}

fn nameless(object: &str) -> (String, Option<String>) {
    (object.to_owned(), None)
}

#[test]
fn a_map_of_this_machine_names_memory_of_the_process_and_its_children() {
    let [parent, child, other] = [0, 1, 2].map(own_number);
    let file = Map::of(parent);
    fs::write(&file.path, "50000100 20 _ZN1a1bEi\n60000000 10 unmapped\n").expect("writable");
    let mut processes = Processes::new();
    map(&mut processes, parent, None);
    processes.fork(child, child, parent, parent);
    map(&mut processes, other, None);
    let mut symbolizer = here();
    for pid in [parent, child] {
        assert!(symbolizer.may_have_own_functions(&processes, pid));
        let mut name = |address| at(&mut symbolizer, &processes, (pid, address));
        assert_eq!(name(MEMORY + 0x11f), made("a::b(int)"));
        assert_eq!(name(MEMORY + 0x120), nameless("//anon"));
        // The recording may have lost the mapping.
        assert_eq!(name(0x6000_0000), made("unmapped"));
        assert_eq!(name(0x6000_0010), nameless("[unknown]"));
    }
    let of_other = at(&mut symbolizer, &processes, (other, MEMORY + 0x100));
    assert_eq!(of_other, nameless("//anon"));
    assert_eq!(symbolizer.why_no_names("//anon"), Some(NoNames::Memory));
    assert!(!symbolizer.may_have_own_functions(&processes, other));
    assert!(
        symbolizer
            .file_at(&processes, parent, MEMORY + 0x100)
            .is_none()
    );
    let short = here().without_parameters(true);
    for (mut symbolizer, expected) in [
        (short, made("a::b")),
        // Files of this /tmp are of processes of this machine.
        (Symbolizer::new(), nameless("//anon")),
    ] {
        let found = at(&mut symbolizer, &processes, (child, MEMORY + 0x100));
        assert_eq!(found, expected);
    }
    assert!(!Symbolizer::new().may_have_own_functions(&processes, parent));
}

#[test]
fn code_in_a_file_that_was_deleted_may_be_that_of_a_compiler() {
    let pid = own_number(9);
    let file = Map::of(pid);
    fs::write(&file.path, "50000100 20 made\n60000100 20 made\n").expect("writable");
    let mut processes = Processes::new();
    let [deleted, gone] = ["/nowhere/code (deleted)", "/nowhere/code"];
    for (start, path) in [(MEMORY, deleted), (0x6000_0000, gone)] {
        let mapped = Mapped::new(start..start + 0x1000, 0, path.as_bytes());
        processes.map(pid, mapped);
    }
    let mut symbolizer = here();
    let mut name = |address| at(&mut symbolizer, &processes, (pid, address));
    assert_eq!(name(MEMORY + 0x11f), made("made"));
    assert_eq!(name(MEMORY + 0x120), nameless(deleted));
    // Of a file that was there nothing else is believed.
    assert_eq!(name(0x6000_0110), nameless(gone));
    assert_eq!(symbolizer.why_no_names(deleted), Some(NoNames::Deleted));
    assert_eq!(symbolizer.why_no_names(gone), Some(NoNames::Gone));
}

#[test]
fn a_map_that_cannot_be_read_is_said() {
    const TEST: &str = "a_map_that_cannot_be_read_is_said";
    let [pid, of_other] = [3, 4].map(own_number);
    let link = Map::of(pid);
    symlink(&link.path, &link.path).expect("a link to itself");
    let mut processes = Processes::new();
    map(&mut processes, pid, None);
    map(&mut processes, of_other, None);
    let mut symbolizer = here();
    let found = at(&mut symbolizer, &processes, (pid, MEMORY));
    assert_eq!(found, nameless("//anon"));
    let left_out: Vec<_> = symbolizer.left_out().collect();
    let [(path, LeftOut::Unreadable(_))] = left_out[..] else {
        panic!("{left_out:?}");
    };
    assert_eq!(path, link.path.to_string_lossy());
    let file = Map::of(of_other);
    fs::write(&file.path, "50000000 20 function\n").expect("writable");
    if let Err(error) = chown(&file.path, Some(12_345), None) {
        let _ = writeln!(std::io::stderr(), "SKIP {TEST}: {error}");
        return;
    }
    for (is_asked_for, expected) in [(false, nameless("//anon")), (true, made("function"))] {
        let mut symbolizer = here().with_maps_of_others(is_asked_for);
        let found = at(&mut symbolizer, &processes, (of_other, MEMORY));
        assert_eq!(found, expected);
        let mut left_out = symbolizer.left_out().map(|(_, why)| why);
        let why = left_out.next();
        let is_said = matches!(why, Some(LeftOut::OfAnotherUser { uid: 12_345 }));
        assert_eq!(is_said, !is_asked_for, "{why:?}");
    }
}

#[test]
fn copies_of_compilers_files_come_first() {
    let folder = tempfile::tempdir().expect("writable");
    let [copied_map, copied_dump] = ["map", "dump"].map(|name| folder.path().join(name));
    fs::write(&copied_map, "50000000 20 of_map\n50000080 20 of_map\n").expect("writable");
    fs::write(&copied_dump, dump(&[(MEMORY + 0x80, "of_dump", &[])])).expect("writable");
    let pid = own_number(5);
    let identity = FileIdentity::Inode {
        device: (1, 2),
        inode: u64::MAX,
        generation: 0,
    };
    let mut processes = Processes::new();
    map(&mut processes, pid, None);
    let mapped = Mapped::new(START..START + 0x1000, 0, &b"/nowhere/jit-1.dump"[..]);
    processes.map(pid, mapped.of(identity.clone()));
    let mut copies = Copies::default();
    copies.files.push((identity, copied_dump.clone()));
    copies.maps.push((pid, copied_map));
    let mut symbolizer = Symbolizer::new().with_copies(&copies);
    assert!(symbolizer.may_have_own_functions(&processes, pid));
    let mut name = |address| at(&mut symbolizer, &processes, (pid, address));
    assert_eq!(name(MEMORY + 0x1f), made("of_map"));
    assert_eq!(name(MEMORY + 0x9f), made("of_dump"));
    let read = symbolizer.file_at(&processes, pid, MEMORY + 0x80);
    assert_eq!(read.expect("a copy").path, copied_dump);
    assert!(symbolizer.file_at(&processes, pid, MEMORY).is_none());
}

#[test]
fn a_dump_that_cannot_be_read_is_said() {
    let folder = tempfile::tempdir().expect("writable");
    let path = folder.path().join("jit-1.dump");
    let pid = own_number(6);
    let mut processes = Processes::new();
    map(&mut processes, pid, Some(&path));
    let mut gone = here();
    let expected = nameless("//anon");
    assert_eq!(at(&mut gone, &processes, (pid, MEMORY)), expected);
    assert_eq!(gone.left_out().count(), 0);
    symlink(&path, &path).expect("a link to itself");
    let mut unreadable = here();
    assert_eq!(at(&mut unreadable, &processes, (pid, MEMORY)), expected);
    let left_out: Vec<_> = unreadable.left_out().collect();
    let [(said, LeftOut::Unreadable(_))] = left_out[..] else {
        panic!("{left_out:?}");
    };
    assert_eq!(said, path.to_string_lossy());
}

#[test]
fn a_dump_of_another_inode_or_machine_is_not_read() {
    let folder = tempfile::tempdir().expect("writable");
    let path = folder.path().join("jit-1.dump");
    fs::write(&path, dump(&[(MEMORY, "function", &[])])).expect("writable");
    let FileIdentity::Inode { device, inode, .. } = quipu_symbols::identity_of_file(&path) else {
        panic!("it is no program with a build ID");
    };
    let place = |inode| FileIdentity::Inode {
        // Layers of a file system have devices of their own.
        device: (device.0, device.1 + 1),
        inode,
        generation: 0,
    };
    for (identity, this_machine, is_read) in [
        (FileIdentity::Unknown, true, true),
        (FileIdentity::Unknown, false, false),
        (place(inode), true, true),
        (place(inode), false, true),
        (place(inode + 1), true, false),
        (place(0), true, true),
    ] {
        let pid = own_number(7);
        let mut processes = Processes::new();
        map(&mut processes, pid, None);
        let bytes = path.as_os_str().as_encoded_bytes();
        let mapped = Mapped::new(START..START + 0x1000, 0, bytes);
        processes.map(pid, mapped.of(identity.clone()));
        let mut symbolizer = Symbolizer::new().of_this_machine(this_machine);
        let (_, name) = at(&mut symbolizer, &processes, (pid, MEMORY));
        let case = (identity, this_machine);
        assert_eq!(name.is_some(), is_read, "{case:?}");
    }
}

/// Returns the `.eh_frame` behind a function of 32 bytes, which pushes a register at its fourth byte.
fn frames() -> Vec<u8> {
    let common = [
        14, 0, 0, 0, 0, 0, 0, 0, 1, b'z', b'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c,
    ];
    let common = [&common[..], &[7, 8, 0x90, 1]].concat();
    let begin = -32 - (common.len() as i32 + 8);
    let own = [
        17u32.to_le_bytes(),
        (common.len() as u32 + 4).to_le_bytes(),
        begin.to_le_bytes(),
        32u32.to_le_bytes(),
    ];
    let rest = [0, 0x44, 0x0e, 16, 0];
    let mut frames = [&common[..], &own.concat(), &rest, &[0; 4]].concat();
    frames[0] = common.len() as u8 - 4;
    frames
}

#[test]
fn frames_of_code_that_was_made_lead_to_their_callers() {
    let folder = tempfile::tempdir().expect("writable");
    let path = folder.path().join("jit-1.dump");
    let functions = [
        (MEMORY, "with", &frames()[..]),
        (MEMORY + 0x80, "without", &[]),
    ];
    fs::write(&path, dump(&functions)).expect("writable");
    let pid = own_number(8);
    let mut processes = Processes::new();
    map(&mut processes, pid, Some(&path));
    let mut symbolizer = here();
    let mut caller = |address| {
        let machine = Architecture::X86_64;
        symbolizer.caller_of(&processes, pid, address, machine)
    };
    assert_eq!(caller(MEMORY), Some(CallerOf::Otherwise));
    assert_eq!(caller(MEMORY + 0x1f), Some(CallerOf::Otherwise));
    assert_eq!(caller(MEMORY + 0x20), None);
    assert_eq!(caller(MEMORY + 0x80), None);
    // The stack has the return address above what was pushed, as the rules say from there on.
    let stack: Vec<u8> = [MEMORY + 0x90, MEMORY + 0x10, MEMORY + 0x98]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    for (into, chain) in [
        (3, vec![MEMORY + 3, MEMORY + 0x8f]),
        (4, vec![MEMORY + 4, MEMORY + 0xf]),
    ] {
        let registers = |register| match register {
            8 => Some(MEMORY + into),
            _ => Some(0x7000),
        };
        let thread = quipu_symbols::ThreadState::new(Architecture::X86_64, registers, &stack);
        let mut found = Vec::new();
        symbolizer.unwind(&processes, pid, thread, 2, &mut found);
        assert_eq!(found, chain);
    }
}
