//! Files, copies and lists that a symbolizer knows, and which of them is read.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use quipu_symbols::{
    AddressOwner, Copies, Doubt, FileIdentity, Mapped, MappedFile, NoNames, Processes,
    RecordedAddresses, RecordedSymbols, Symbolizer, build_id_of, identity_of_file, is_file_of,
};

use crate::built::Built;
use crate::mapped::{self, PID, START};

const SOURCE: &str = "int function(int n) { return n * n; }";
const WITHOUT_ID: &[&str] = &["-Wl,--build-id=none"];

fn named(name: &str) -> Option<(String, u64)> {
    Some((name.to_owned(), 0))
}

/// Returns the process that has mapped all of a file under another path, by its identity.
fn mapped_as(path: &str, file: &Path, identity: FileIdentity) -> Processes {
    let mut processes = Processes::new();
    let len = file.metadata().expect("there").len();
    let mapped = Mapped::new(START..START + len, 0, path.as_bytes());
    processes.map(PID, mapped.of(identity));
    processes
}

/// Returns the identity of a file by its place, moved by this, with a generation.
fn moved(file: &Path, (devices, inodes, generation): (u32, u64, u64)) -> FileIdentity {
    match identity_of_file(file) {
        FileIdentity::Inode { device, inode, .. } => FileIdentity::Inode {
            device: (device.0, device.1 + devices),
            inode: inode + inodes,
            generation,
        },
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_file_is_known_by_its_build_id_or_by_its_place() {
    const TEST: &str = "a_file_is_known_by_its_build_id_or_by_its_place";
    let with_id = Built::library(TEST, SOURCE, &["-Wl,--build-id=sha1"]);
    let (Some(with), Some(without)) = (with_id, Built::library(TEST, SOURCE, WITHOUT_ID)) else {
        return;
    };
    let (with, without) = (with.path("a.so"), without.path("a.so"));
    let id = build_id_of(&with).expect("the linker made one");
    assert_eq!(identity_of_file(&with), FileIdentity::BuildId(id.into()));
    let found = without.metadata().expect("there");
    let FileIdentity::Inode { device, inode, .. } = identity_of_file(&without) else {
        panic!("it has no build ID");
    };
    assert_eq!(inode, found.ino());
    if cfg!(target_os = "linux") {
        // makedev(3): small numbers are a byte each, and the rest is above.
        let (major, minor) = (u64::from(device.0), u64::from(device.1));
        let low = major << 8 & 0xf_ff00 | minor & 0xff | minor << 12 & 0xfff0_0000;
        assert_eq!(low, found.dev() & 0xffff_ffff);
    }
    for file in [&with, &without] {
        assert!(is_file_of(file, &identity_of_file(file)));
    }
    assert!(!is_file_of(&with, &identity_of_file(&without)));
    assert!(!is_file_of(&without, &identity_of_file(&with)));
    for other in [(1, 0, 0), (0, 1, 0)] {
        assert!(!is_file_of(&without, &moved(&without, other)));
    }
    assert!(!is_file_of(&with, &FileIdentity::Unknown));
    assert_eq!(
        identity_of_file("/nowhere/a".as_ref()),
        FileIdentity::Unknown
    );
}

#[test]
fn another_file_is_said_and_a_doubtful_one_read() {
    const TEST: &str = "another_file_is_said_and_a_doubtful_one_read";
    let Some(built) = Built::library(TEST, SOURCE, WITHOUT_ID) else {
        return;
    };
    let library = built.path("a.so");
    let path = library.to_string_lossy();
    let (start, _) = mapped::place_of(&library, "function");
    let here = || {
        let symbolizer = Symbolizer::new().of_this_machine(true);
        symbolizer.with_generations(|_| Some(7))
    };
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let in_future = SystemTime::now() + Duration::from_secs(1 << 30);
    type Expected = Result<Option<Doubt>, ()>;
    let cases: [(Symbolizer, (u32, u64, u64), Expected); 9] = [
        (here(), (0, 0, 7), Ok(None)),
        (here(), (0, 0, 0), Ok(None)),
        (here(), (0, 0, 8), Err(())),
        (
            Symbolizer::new().with_generations(|_| Some(7)),
            (0, 0, 8),
            Ok(None),
        ),
        (here(), (0, 1, 0), Err(())),
        (here(), (1, 0, 0), Ok(Some(Doubt::OtherDevice))),
        (Symbolizer::new(), (0, 1, 0), Ok(Some(Doubt::OtherMachine))),
        (
            here().recorded_until(Some(long_ago)),
            (0, 0, 7),
            Ok(Some(Doubt::Changed)),
        ),
        (here().recorded_until(Some(in_future)), (0, 0, 7), Ok(None)),
    ];
    for (at, (mut symbolizer, place, expected)) in cases.into_iter().enumerate() {
        let processes = mapped_as(&path, &library, moved(&library, place));
        let found = mapped::name(&mut symbolizer, &processes, start);
        assert_eq!(found.is_some(), expected.is_ok(), "{at}");
        let doubts: Vec<_> = symbolizer.doubtful().collect();
        let doubt = expected.unwrap_or_default().map(|doubt| (&*path, doubt));
        assert_eq!(doubts, Vec::from_iter(doubt), "{at}");
        let changed: Vec<_> = symbolizer.changed().collect();
        let is_other = expected.is_err().then_some(&*path);
        assert_eq!(changed, Vec::from_iter(is_other), "{at}");
        let why = is_other.map(|_| NoNames::AnotherFile);
        assert_eq!(symbolizer.why_no_names(&path), why, "{at}");
    }
    for (doubt, words) in [
        (
            Doubt::OtherDevice,
            "it has no build ID, and is on another device",
        ),
        (
            Doubt::Changed,
            "it has no build ID, and has changed since the recording",
        ),
        (
            Doubt::OtherMachine,
            "it has no build ID, and the recording is of another machine",
        ),
    ] {
        assert_eq!(doubt.to_string(), words);
    }
}

#[test]
fn files_are_looked_for_under_a_root_alone() {
    const TEST: &str = "files_are_looked_for_under_a_root_alone";
    let Some(built) = Built::library(TEST, SOURCE, WITHOUT_ID) else {
        return;
    };
    let library = built.path("a.so");
    let (start, _) = mapped::place_of(&library, "function");
    fs::create_dir(built.path("root")).expect("writable");
    fs::create_dir(built.path("root/lib")).expect("writable");
    let copy = built.path("root/lib/of-a-test.so");
    fs::copy(&library, &copy).expect("writable");
    // A copy has another inode, on this machine too.
    let identity = moved(&library, (0, 0, 0));
    let processes = mapped_as("/lib/of-a-test.so", &library, identity.clone());
    let root = Some(built.path("root"));
    for this_machine in [false, true] {
        let symbolizer = Symbolizer::new().of_this_machine(this_machine);
        let mut symbolizer = symbolizer.under(root.clone());
        let found = mapped::name(&mut symbolizer, &processes, start);
        assert_eq!(found, named("function"));
        let doubts: Vec<_> = symbolizer.doubtful().map(|(_, doubt)| doubt).collect();
        assert_eq!(doubts, [Doubt::OtherMachine]);
        let read = symbolizer.file_at(&processes, PID, start).expect("a file");
        assert_eq!(read.path, copy);
        let len = copy.metadata().expect("there").len();
        assert_eq!(symbolizer.bytes_of_files(), len);
    }
    let here = mapped_as(&library.to_string_lossy(), &library, identity);
    let mut symbolizer = Symbolizer::new().under(root);
    assert_eq!(mapped::name(&mut symbolizer, &here, start), None);
    assert_eq!(symbolizer.bytes_of_files(), 0);
    assert!(symbolizer.file_at(&here, PID, start).is_none());
    let gone = symbolizer.why_no_names(&library.to_string_lossy());
    assert_eq!(gone, Some(NoNames::Gone));
}

#[test]
fn the_file_that_is_read_is_named_with_its_debug_information() {
    const TEST: &str = "the_file_that_is_read_is_named_with_its_debug_information";
    let Some(built) = Built::library(TEST, SOURCE, &["-g", "-Wl,--build-id"]) else {
        return;
    };
    let link = "--add-gnu-debuglink=a.debug";
    if !built.run(&["objcopy", "--only-keep-debug", "a.so", "a.debug"])
        || !built.run(&["objcopy", "--strip-debug", link, "a.so"])
    {
        return;
    }
    let library = built.path("a.so");
    let (start, _) = mapped::place_of(&library, "function");
    let processes = mapped::with_file(&library);
    let mut symbolizer = Symbolizer::new();
    assert_eq!(symbolizer.bytes_of_files(), 0);
    let read = symbolizer.file_at(&processes, PID, start).expect("a file");
    assert_eq!((&read.path, read.from), (&library, 0));
    assert_eq!(read.build_id, build_id_of(&library));
    assert!(read.build_id.is_some());
    let lens = ["a.so", "a.debug"].map(|name| built.path(name).metadata().expect("there").len());
    assert_eq!(symbolizer.bytes_of_files(), lens.iter().sum());
    assert!(symbolizer.file_at(&processes, PID, START - 1).is_none());
    assert!(symbolizer.file_at(&processes, PID + 1, start).is_none());
}

#[test]
fn a_copy_is_read_where_the_file_is_gone_whatever_its_inode_is() {
    const TEST: &str = "a_copy_is_read_where_the_file_is_gone_whatever_its_inode_is";
    let Some(built) = Built::library(TEST, SOURCE, WITHOUT_ID) else {
        return;
    };
    let library = built.path("a.so");
    let (start, _) = mapped::place_of(&library, "function");
    let identity = moved(&library, (0, 0, 0));
    let path = library.to_string_lossy();
    let processes = mapped_as(&path, &library, identity.clone());
    let copy = built.path("copy");
    fs::rename(&library, &copy).expect("writable");
    // The copy of another file, and the inode is another one by now.
    fs::copy(&copy, built.path("moved")).expect("writable");
    let other = moved(&copy, (0, 1, 0));
    for (of, is_read) in [(identity, true), (other, false)] {
        let mut copies = Copies::default();
        copies.files.push((of, built.path("moved")));
        let mut symbolizer = Symbolizer::new().of_this_machine(true).with_copies(&copies);
        let found = mapped::name(&mut symbolizer, &processes, start);
        assert_eq!(found.is_some(), is_read);
        let read = symbolizer.file_at(&processes, PID, start);
        assert_eq!(
            read.map(|read| read.path == built.path("moved")),
            is_read.then_some(true)
        );
        assert_eq!(symbolizer.doubtful().count(), 0);
    }
}

#[test]
fn functions_that_the_recording_lists_stand_in_for_files_that_are_not_sure() {
    const TEST: &str = "functions_that_the_recording_lists_stand_in_for_files_that_are_not_sure";
    let Some(built) = Built::library(TEST, SOURCE, WITHOUT_ID) else {
        return;
    };
    let library = built.path("a.so");
    let (start, _) = mapped::place_of(&library, "function");
    let path = library.to_string_lossy();
    let in_memory = |path: &str| {
        let mut symbols = RecordedSymbols::new(RecordedAddresses::Memory);
        symbols.add(start, 4, "_ZN1a6listedEi");
        (path.as_bytes().to_vec(), symbols)
    };
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let known = || Symbolizer::new().with_recorded_symbols([in_memory(&path)]);
    let processes = mapped::with_file(&library);
    for (symbolizer, expected) in [
        (known(), "function"),
        (known().recorded_until(Some(long_ago)), "a::listed(int)"),
        (
            known()
                .recorded_until(Some(long_ago))
                .without_parameters(true),
            "a::listed",
        ),
    ] {
        let mut symbolizer = symbolizer;
        let found = mapped::name(&mut symbolizer, &processes, start);
        assert_eq!(found, named(expected));
        let id = symbolizer.function_id(&processes, PID, start);
        assert_eq!(id.is_some(), expected == "function");
    }
    fs::remove_file(&library).expect("there");
    let mut symbolizer = known();
    let at = |symbolizer: &mut Symbolizer, into| {
        mapped::name(symbolizer, &processes, start + into).map(|(_, into)| into)
    };
    assert_eq!(at(&mut symbolizer, 3), Some(3));
    assert_eq!(at(&mut symbolizer, 4), None);
    assert_eq!(symbolizer.function_id(&processes, PID, start), None);
    // Memory and the kernel may be listed as well.
    let mut memory = Processes::new();
    memory.map(
        PID,
        Mapped::new(START..START + (1 << 20), 0, &b"[heap]"[..]),
    );
    let mut symbolizer = Symbolizer::new().with_recorded_symbols([in_memory("[heap]")]);
    assert_eq!(
        mapped::name(&mut symbolizer, &memory, start),
        named("a::listed(int)")
    );
    let mut symbols = RecordedSymbols::new(RecordedAddresses::Memory);
    symbols.add(u64::MAX - 0xfff, 4, "of_the_kernel");
    let of_kernel = (b"[kernel.kallsyms]".to_vec(), symbols);
    let mut symbolizer = Symbolizer::new().with_recorded_symbols([of_kernel]);
    let mut found = Vec::new();
    let owner = AddressOwner::Kernel;
    symbolizer.resolve(&memory, owner, u64::MAX - 0xffd, &mut found);
    assert_eq!(found[0].name.as_deref(), Some("of_the_kernel"));
    assert_eq!(found[0].offset, Some(2));
}

#[test]
fn objects_without_files_say_why_they_have_no_names() {
    let mut symbolizer = Symbolizer::new();
    let processes = Processes::new();
    for (owner, object, why) in [
        (AddressOwner::Guest, "[guest]", Some(NoNames::Guest)),
        (
            AddressOwner::GuestKernel,
            "[guest.kernel]",
            Some(NoNames::Guest),
        ),
        (AddressOwner::Other, "[unknown]", Some(NoNames::NotMapped)),
        (
            AddressOwner::Process(PID),
            "[unknown]",
            Some(NoNames::NotMapped),
        ),
    ] {
        let mut found = Vec::new();
        symbolizer.resolve(&processes, owner, START, &mut found);
        assert_eq!((found.len(), &*found[0].object), (1, object));
        assert_eq!((&found[0].name, found[0].offset), (&None, None));
        assert_eq!(symbolizer.why_no_names(object), why, "{object}");
    }
    let mut found = Vec::new();
    symbolizer.resolve(&processes, AddressOwner::Hypervisor, START, &mut found);
    assert_eq!((&*found[0].object, &found[0].name), ("[hypervisor]", &None));
    for (object, why) in [
        ("[vdso]", Some(NoNames::Vdso)),
        ("[heap]", Some(NoNames::Memory)),
        ("//anon", Some(NoNames::Memory)),
        ("/tmp/perf-7.map", Some(NoNames::Memory)),
        ("/tmp/perf-7.data", None),
        ("/usr/lib/a.map", None),
        ("/a", None),
    ] {
        assert_eq!(symbolizer.why_no_names(object), why, "{object}");
    }
    let ids = [(b"/a".to_vec(), vec![1, 2, 3])];
    let symbolizer = Symbolizer::new().with_build_ids(ids);
    assert_eq!(symbolizer.build_id_of_object("/a"), Some(&[1, 2, 3][..]));
    assert_eq!(symbolizer.build_id_of_object("/b"), None);
}

#[test]
fn files_that_are_no_programs_say_so() {
    let folder = tempfile::tempdir().expect("writable");
    fs::write(folder.path().join("script"), "#!/bin/sh\n").expect("writable");
    for (name, why) in [
        ("script", NoNames::NoElf),
        ("nowhere", NoNames::Gone),
        ("nowhere (deleted)", NoNames::Deleted),
    ] {
        let path = folder.path().join(name);
        let bytes = path.as_os_str().as_encoded_bytes();
        let mut processes = Processes::new();
        processes.map(PID, Mapped::new(START..START + 0x1000, 0, bytes));
        let mut symbolizer = Symbolizer::new();
        assert_eq!(mapped::name(&mut symbolizer, &processes, START), None);
        let path = path.to_string_lossy();
        assert_eq!(symbolizer.why_no_names(&path), Some(why));
        assert_eq!(symbolizer.left_out().count(), 0);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_vdso_has_names_where_this_kernel_was_recorded() {
    const TEST: &str = "the_vdso_has_names_where_this_kernel_was_recorded";
    let mut processes = Processes::new();
    let own = i32::try_from(std::process::id()).expect("a pid");
    processes.read(own);
    let Some((start, end)) = mapped::vdso(TEST) else {
        return;
    };
    let names = |symbolizer: &mut Symbolizer| {
        let mut named = Vec::new();
        for address in start..end {
            let mut found = Vec::new();
            let owner = AddressOwner::Process(own);
            symbolizer.resolve(&processes, owner, address, &mut found);
            assert_eq!(&*found[0].object, "[vdso]");
            named.extend(found[0].name.clone());
        }
        named
    };
    let has_clock =
        |names: &[std::sync::Arc<str>]| names.iter().any(|name| name.ends_with("clock_gettime"));
    let mut here = Symbolizer::new().of_this_machine(true);
    assert!(has_clock(&names(&mut here)));
    let mut of_this_kernel = Symbolizer::new();
    of_this_kernel.set_this_kernel(true);
    assert!(has_clock(&names(&mut of_this_kernel)));
    let mut elsewhere = Symbolizer::new();
    assert_eq!(names(&mut elsewhere).len(), 0);
    assert_eq!(elsewhere.why_no_names("[vdso]"), Some(NoNames::Vdso));
    // It is in memory, and no file.
    assert!(here.file_at(&processes, own, start).is_none());
    let is_memory = |path: &[u8]| {
        let mapped = Mapped::new(0..1, 0, path);
        let file: &MappedFile = &mapped.file;
        file.is_anonymous()
    };
    assert!(!is_memory(b"[vdso]") && is_memory(b"[stack]"));
}
