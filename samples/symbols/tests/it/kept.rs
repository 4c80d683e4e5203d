//! Names that are kept with a recording, for a time when the files are gone.

use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};

use quipu_symbols::{
    AddressOwner, Doubt, FileIdentity, Function, KeptNames, KernelSymbols, Mapped, NoNames,
    Processes, RecordedAddresses, RecordedSymbols, Symbolizer,
};

use crate::built::Built;
use crate::compiler::{self, MEMORY};
use crate::mapped::{self, PID, START};

const SOURCE: &str = "\
static inline __attribute__((always_inline)) int inner(int n) { return n * n + 7; }
int outer(int n) { return inner(n) / 3; }
";

/// Returns what a symbolizer has kept, as a recording gives it back.
fn kept(recorder: &mut Symbolizer) -> KeptNames {
    let bytes = recorder.take_kept().to_bytes().expect("few names");
    KeptNames::read(&bytes).expect("its own form")
}

/// Returns a symbolizer with what another one has kept.
fn reader(kept: KeptNames) -> Symbolizer {
    Symbolizer::new().with_kept(Some(kept))
}

/// Returns the functions at each address of a symbol.
fn all(
    symbolizer: &mut Symbolizer,
    processes: &Processes,
    place: (u64, u64),
) -> Vec<Vec<Function>> {
    let (start, len) = place;
    let at = |address| mapped::functions(symbolizer, processes, address);
    (start..start + len).map(at).collect()
}

#[test]
fn what_was_kept_is_found_when_the_file_is_gone() {
    const TEST: &str = "what_was_kept_is_found_when_the_file_is_gone";
    let Some(built) = Built::library(TEST, SOURCE, &["-O2", "-g"]) else {
        return;
    };
    let library = built.path("a.so");
    let (processes, place) = (
        mapped::with_file(&library),
        mapped::place_of(&library, "outer"),
    );
    let (start, len) = place;
    let mut recorder = Symbolizer::new().with_lines(true).keeping();
    let then = all(&mut recorder, &processes, place);
    let with_inlined = then.iter().filter(|functions| functions.len() == 2);
    assert!(with_inlined.count() > 0, "{then:?}");
    let kept = || {
        let mut recorder = Symbolizer::new().with_lines(true).keeping();
        all(&mut recorder, &processes, place);
        let kept = kept(&mut recorder);
        // Nothing that comes later is noted.
        all(&mut recorder, &processes, place);
        assert!(recorder.take_kept().is_empty());
        kept
    };
    let [names, other, forgotten] = [kept(), kept(), kept()];
    assert_eq!(names.len() as u64, len);
    let files: Vec<_> = names.files().map(|file| file.path.to_vec()).collect();
    assert_eq!(files, [library.as_os_str().as_encoded_bytes()]);
    fs::remove_file(&library).expect("there");

    let mut with_lines = reader(names).with_lines(true);
    assert_eq!(all(&mut with_lines, &processes, place), then);
    assert_eq!(with_lines.function_id(&processes, PID, start), None);
    assert!(
        with_lines
            .kept()
            .is_some_and(|kept| kept.len() as u64 == len)
    );

    let mut without = reader(other);
    for (into, functions) in all(&mut without, &processes, place).iter().enumerate() {
        let mut outermost = then[into].last().expect("a function").clone();
        outermost.source = None;
        assert_eq!(functions[..], [outermost]);
    }
    let ids = [start, start + len - 1].map(|at| without.function_id(&processes, PID, at));
    assert!(ids[0].is_some() && ids[0] == ids[1], "{ids:?}");
    assert_eq!(without.function_id(&processes, PID, START), None);
    assert_eq!(mapped::name(&mut without, &processes, START), None);
    assert_eq!(
        without.why_no_names(&library.to_string_lossy()),
        Some(NoNames::Gone)
    );

    let mut files_elsewhere = forgotten;
    files_elsewhere.forget_files();
    assert!(files_elsewhere.is_empty());
    let mut nothing = reader(files_elsewhere);
    assert_eq!(mapped::name(&mut nothing, &processes, start), None);
    assert!(Symbolizer::new().kept().is_none());
}

#[test]
fn what_was_kept_is_of_the_file_with_the_same_identity() {
    const TEST: &str = "what_was_kept_is_of_the_file_with_the_same_identity";
    let Some(built) = Built::library(TEST, SOURCE, &["-Wl,--build-id=none"]) else {
        return;
    };
    let library = built.path("a.so");
    let (start, _) = mapped::place_of(&library, "outer");
    let place = |device, inode, generation| FileIdentity::Inode {
        device,
        inode,
        generation,
    };
    let identities = [
        FileIdentity::Unknown,
        place((8, 1), 1 << 40, 3),
        place((8, 2), 1 << 40, 3),
        place((9, 1), 1 << 40, 3),
        place((8, 1), 1, 3),
        place((8, 1), 1 << 40, 4),
        FileIdentity::BuildId([1, 2].as_slice().into()),
        FileIdentity::BuildId([1, 3].as_slice().into()),
    ];
    let with = |identity: &FileIdentity| {
        let mut processes = Processes::new();
        let path = library.as_os_str().as_encoded_bytes();
        let mapped = Mapped::new(START..START + 0x10_0000, 0, path);
        processes.map(PID, mapped.of(identity.clone()));
        processes
    };
    // The functions of one are listed by the recording, as no file is the one of most of these.
    let bytes = identities.each_ref().map(|identity| {
        let mut symbols = RecordedSymbols::new(RecordedAddresses::Memory);
        symbols.add(start, 8, "listed");
        let path = library.as_os_str().as_encoded_bytes().to_vec();
        let recorder = Symbolizer::new().with_recorded_symbols([(path, symbols)]);
        let mut recorder = recorder.under(Some(built.path("nowhere"))).keeping();
        let found = mapped::name(&mut recorder, &with(identity), start);
        assert_eq!(found, Some(("listed".to_owned(), 0)));
        recorder.take_kept().to_bytes().expect("few names")
    });
    fs::remove_file(&library).expect("there");
    for (kept, of) in bytes.iter().zip(&identities) {
        for identity in &identities {
            let mut reader = reader(KeptNames::read(kept).expect("its own form"));
            let found = mapped::name(&mut reader, &with(identity), start);
            assert_eq!(found.is_some(), identity == of, "{of:?} {identity:?}");
        }
    }
}

#[test]
fn a_file_that_is_there_has_the_lines_that_were_not_kept() {
    const TEST: &str = "a_file_that_is_there_has_the_lines_that_were_not_kept";
    let Some(built) = Built::library(TEST, SOURCE, &["-O2"]) else {
        return;
    };
    let library = built.path("a.so");
    let (start, _) = mapped::place_of(&library, "outer");
    let processes = mapped::with_file(&library);
    let mut recorder = Symbolizer::new().keeping();
    mapped::functions(&mut recorder, &processes, start);
    let bytes = recorder.take_kept().to_bytes().expect("few names");
    let name_with = |lines: bool| {
        let kept = KeptNames::read(&bytes);
        let mut symbolizer = Symbolizer::new().with_lines(lines).with_kept(kept);
        let functions = mapped::functions(&mut symbolizer, &processes, start);
        let outermost = functions.last().expect("a function");
        let name = outermost.name.as_deref().map(str::to_owned);
        (name, outermost.source.as_ref().map(|(_, line)| *line))
    };
    let before = (Some("outer".to_owned()), None);
    assert_eq!(
        [false, true].map(name_with),
        [before.clone(), before.clone()]
    );
    // Another build is there: of its lines the name is known by that.
    for (option, with_lines) in [
        ("-g0", before.clone()),
        ("-g", (Some("newer".to_owned()), Some(2))),
    ] {
        let compile = ["cc", "-shared", "-fPIC", "-o", "a.so", "a.c", "-O2"];
        assert!(built.run(&[&compile[..], &["-Douter=newer", option]].concat()));
        assert_eq!(mapped::place_of(&library, "newer").0, start);
        assert_eq!(name_with(false), before, "{option}");
        assert_eq!(name_with(true), with_lines, "{option}");
    }
    fs::remove_file(&library).expect("there");
    assert_eq!(name_with(true), before);
}

#[test]
fn names_are_kept_as_files_have_them_and_read_in_a_style() {
    const TEST: &str = "names_are_kept_as_files_have_them_and_read_in_a_style";
    let source = "int f(int n) __asm__(\"_ZN1a1bEi\");\nint f(int n) { return n; }\n";
    let Some(built) = Built::library(TEST, source, &[]) else {
        return;
    };
    let library = built.path("a.so");
    let (start, _) = mapped::place_of(&library, "_ZN1a1bEi");
    let processes = mapped::with_file(&library);
    let mut recorder = Symbolizer::new().keeping();
    let name = |symbolizer: &mut Symbolizer| mapped::name(symbolizer, &processes, start);
    let named = |name: &str| Some((name.to_owned(), 0));
    assert_eq!(name(&mut recorder), named("_ZN1a1bEi"));
    let bytes = recorder.take_kept().to_bytes().expect("few names");
    for (short, expected) in [(true, "a::b"), (false, "a::b(int)")] {
        let styled = || Symbolizer::new().without_parameters(short);
        assert_eq!(name(&mut styled()), named(expected));
        let mut reader = styled().with_kept(KeptNames::read(&bytes));
        assert_eq!(name(&mut reader), named(expected));
    }
}

#[test]
fn functions_of_the_kernel_are_kept_without_programs_that_come_and_go() {
    const PROGRAM: u64 = 0xffff_ffff_c000_0000;
    let text = "ffffffff81000000 T _text\nffffffff81000100 T a_function\n";
    let mut recorder = Symbolizer::new()
        .with_kernel(KernelSymbols::parse(text))
        .keeping();
    recorder.add_kernel_symbol(PROGRAM, 0x40, b"bpf_prog_1_f");
    let processes = Processes::new();
    let name = |symbolizer: &mut Symbolizer, owner, address| {
        let mut found = Vec::new();
        symbolizer.resolve(&processes, owner, address, &mut found);
        found[0].name.as_deref().map(str::to_owned)
    };
    let kernel = AddressOwner::Kernel;
    let addresses = [0xffff_ffff_8100_0110, PROGRAM + 0x3f];
    let function = Some("a_function".to_owned());
    let found = addresses.map(|address| name(&mut recorder, kernel, address));
    assert_eq!(found, [function.clone(), Some("bpf_prog_1_f".to_owned())]);
    for owner in [
        AddressOwner::GuestKernel,
        AddressOwner::Guest,
        AddressOwner::Hypervisor,
        AddressOwner::Other,
    ] {
        assert_eq!(name(&mut recorder, owner, addresses[0]), None);
    }
    let mut kept = kept(&mut recorder);
    assert_eq!((kept.len(), kept.has_rules()), (1, false));
    let bytes = kept.to_bytes().expect("few names");
    let mut reader = reader(KeptNames::read(&bytes).expect("its own form"));
    let found = addresses.map(|address| name(&mut reader, kernel, address));
    assert_eq!(found, [function, None]);
    assert_eq!(name(&mut reader, AddressOwner::Guest, addresses[0]), None);
    kept.forget_kernel();
    assert!(kept.is_empty());
}

#[test]
fn functions_of_compilers_are_kept_by_their_processes() {
    let folder = tempfile::tempdir().expect("writable");
    let dump = folder.path().join("jit-1.dump");
    fs::write(&dump, compiler::dump(&[(MEMORY + 0x100, "made", &[])])).expect("writable");
    let mut processes = Processes::new();
    compiler::map(&mut processes, PID, Some(&dump));
    compiler::map(&mut processes, PID + 1, Some(&dump));
    let mut recorder = Symbolizer::new().of_this_machine(true).keeping();
    let name = |symbolizer: &mut Symbolizer| {
        let functions = mapped::functions(symbolizer, &processes, MEMORY + 0x110);
        let [function] = &functions[..] else {
            panic!("{functions:?}");
        };
        let name = function.name.as_deref().map(str::to_owned);
        (function.object.to_string(), name)
    };
    let made = ("[jit]".to_owned(), Some("made".to_owned()));
    assert_eq!(name(&mut recorder), made);
    let kept = kept(&mut recorder);
    assert_eq!((kept.len(), kept.files().count()), (1, 0));
    fs::remove_file(&dump).expect("there");
    let mut reader = reader(kept);
    assert_eq!(name(&mut reader), made);
    let have = [PID, PID + 1].map(|pid| reader.may_have_own_functions(&processes, pid));
    assert_eq!(have, [true, false]);
    let mut without = Symbolizer::new().of_this_machine(true);
    assert_eq!(name(&mut without), ("//anon".to_owned(), None));
    assert!(!without.may_have_own_functions(&processes, PID));
}

#[test]
fn doubts_and_reasons_are_kept_for_a_time_when_the_file_is_gone() {
    const TEST: &str = "doubts_and_reasons_are_kept_for_a_time_when_the_file_is_gone";
    let source = "static __attribute__((noinline, used)) int hidden(int n) { return n * n; }\n\
                  int outer(int n) { return hidden(n) + 1; }\n";
    let Some(built) = Built::library(TEST, source, &["-O1", "-Wl,--build-id=none"]) else {
        return;
    };
    let library = built.path("a.so");
    let (hidden, _) = mapped::place_of(&library, "hidden");
    if !built.run(&["objcopy", "--strip-all", "a.so"]) {
        return;
    }
    let (processes, path) = (mapped::with_file(&library), library.to_string_lossy());
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1);
    let mut recorder = Symbolizer::new().recorded_until(Some(end)).keeping();
    assert_eq!(mapped::name(&mut recorder, &processes, hidden), None);
    let said = |symbolizer: &Symbolizer| -> Vec<(String, Doubt)> {
        let all = symbolizer.doubtful();
        all.map(|(path, doubt)| (path.to_owned(), doubt)).collect()
    };
    let changed = [(path.to_string(), Doubt::Changed)];
    assert_eq!(said(&recorder), changed);
    assert_eq!(recorder.why_no_names(&path), Some(NoNames::Stripped));
    let kept = kept(&mut recorder);
    fs::remove_file(&library).expect("there");
    let mut reader = reader(kept);
    assert_eq!(said(&reader), changed);
    assert_eq!(reader.why_no_names(&path), Some(NoNames::Stripped));
    // That it is gone now says less than why it had no names.
    assert_eq!(mapped::name(&mut reader, &processes, hidden), None);
    assert_eq!(reader.why_no_names(&path), Some(NoNames::Stripped));
    let mut without = Symbolizer::new();
    assert_eq!(mapped::name(&mut without, &processes, hidden), None);
    assert_eq!(without.why_no_names(&path), Some(NoNames::Gone));
    assert_eq!(said(&without), []);
}

#[test]
fn a_program_that_was_executed_from_memory_is_kept_as_a_file() {
    const TEST: &str = "a_program_that_was_executed_from_memory_is_kept_as_a_file";
    let Some(built) = Built::library(TEST, SOURCE, &["-O2"]) else {
        return;
    };
    let library = built.path("a.so");
    let (start, _) = mapped::place_of(&library, "outer");
    let len = library.metadata().expect("there").len();
    let name = "memfd:program (deleted)";
    fs::rename(&library, built.path(name)).expect("writable");
    let mut processes = Processes::new();
    let path = format!("/{name}");
    processes.map(PID, Mapped::new(START..START + len, 0, path.as_bytes()));
    // In one that is none a compiler may have made code.
    let other = Mapped::new(MEMORY..MEMORY + 0x1000, 0, &b"/memfd:other (deleted)"[..]);
    processes.map(PID, other);
    let root = built.path("");
    let under = |root: &Path| Symbolizer::new().under(Some(root.to_owned()));
    let mut recorder = under(&root).keeping();
    let outer = Some(("outer".to_owned(), 0));
    assert_eq!(mapped::name(&mut recorder, &processes, start), outer);
    assert_eq!(mapped::name(&mut recorder, &processes, MEMORY), None);
    let kept = kept(&mut recorder);
    let files: Vec<_> = kept.files().map(|file| file.path.to_vec()).collect();
    assert_eq!(files, [path.as_bytes()]);
    fs::remove_file(built.path(name)).expect("there");
    let mut reader = reader(kept);
    assert_eq!(mapped::name(&mut reader, &processes, start), outer);
    assert_eq!(mapped::name(&mut reader, &processes, MEMORY), None);
    assert_eq!(mapped::name(&mut under(&root), &processes, start), None);
}
