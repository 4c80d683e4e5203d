//! This program's own functions, found by their addresses in its own mappings.

use std::collections::HashMap;
use std::io::Write as _;

use quipu_symbols::{
    AddressOwner, Function, KernelSymbols, LeftOut, Mapped, MapsLine, Processes, Symbolizer,
    build_id_of,
};

/// This process, as one that runs.
fn own_processes() -> Processes {
    let mut processes = Processes::new();
    processes.read(own_pid());
    processes
}

fn own_pid() -> i32 {
    i32::try_from(std::process::id()).expect("a pid")
}

fn resolve(symbolizer: &mut Symbolizer, place: AddressOwner, address: u64) -> Vec<Function> {
    let mut functions = Vec::new();
    symbolizer.resolve(&own_processes(), place, address, &mut functions);
    functions
}

fn name(function: &Function) -> &str {
    function.name.as_deref().unwrap_or("[unknown]")
}

#[inline(never)]
fn outer() -> u64 {
    std::hint::black_box(inner())
}

#[inline(always)]
fn inner() -> u64 {
    std::hint::black_box(7)
}

#[test]
fn a_function_of_this_program_has_its_name() {
    let functions = resolve(
        &mut Symbolizer::new(),
        AddressOwner::Process(own_pid()),
        outer as fn() -> u64 as usize as u64,
    );
    assert_eq!(functions.len(), 1);
    assert_eq!(name(&functions[0]), "it::own_program::outer");
    let own = std::env::current_exe().expect("it runs");
    assert_eq!(&*functions[0].object, own.to_string_lossy());
    assert_eq!(outer(), 7);
}

#[test]
fn a_function_that_was_inlined_is_told() {
    let mut symbolizer = Symbolizer::new().with_lines(true);
    let start = outer as fn() -> u64 as usize as u64;
    // What std has inlined may be inside of either.
    let chains = (start..start + 64)
        .map(|address| resolve(&mut symbolizer, AddressOwner::Process(own_pid()), address));
    let mut chains = chains.filter_map(|mut functions| Some([functions.pop()?, functions.pop()?]));
    // Line tables alone have no full names.
    let [outer, inner] = chains
        .find(|[_, inner]| name(inner).ends_with("inner"))
        .expect("inner is somewhere in outer");
    assert!(inner.inlined && !outer.inlined);
    assert_eq!(name(&outer), "it::own_program::outer");
    let (file, line) = inner.source.clone().expect("debug information");
    assert!(
        file.ends_with("own_program.rs") && line > 0,
        "{file}:{line}"
    );
}

#[test]
fn a_file_with_another_build_id_is_left_out() {
    let own = std::env::current_exe().expect("it runs");
    let Some(id) = build_id_of(&own) else {
        let reason = "the linker makes no build ids";
        let name = "a_file_with_another_build_id_is_left_out";
        let _ = writeln!(std::io::stderr(), "SKIP {name}: {reason}");
        return;
    };
    let path = own.to_string_lossy().into_owned().into_bytes();
    let address = outer as fn() -> u64 as usize as u64;
    let with = |id: Vec<u8>| {
        let mut symbolizer = Symbolizer::new().with_build_ids([(path.clone(), id)]);
        let functions = resolve(&mut symbolizer, AddressOwner::Process(own_pid()), address);
        (functions[0].name.is_some(), symbolizer.changed().count())
    };
    assert_eq!(with(id.clone()), (true, 0));
    let mut other = id;
    other[0] ^= 1;
    assert_eq!(with(other), (false, 1));
}

#[test]
fn what_is_not_known_has_no_name() {
    let mut symbolizer = Symbolizer::new();
    for (place, address, object) in [
        (AddressOwner::Process(own_pid()), 1, "[unknown]"),
        (AddressOwner::Process(-1), 1, "[unknown]"),
        (AddressOwner::Other, 1, "[unknown]"),
        (AddressOwner::Kernel, u64::MAX, "[kernel.kallsyms]"),
    ] {
        let functions = resolve(&mut symbolizer, place, address);
        assert_eq!((&*functions[0].object, &functions[0].name), (object, &None));
    }
}

#[test]
fn kernel_functions_are_found_where_they_may_be_seen() {
    let text = "ff00 T _text\nff10 T a_function\nff80 t in_module\t[module]\n";
    let kernel = KernelSymbols::parse(text);
    let mut symbolizer = Symbolizer::new().with_kernel(kernel);
    let functions = resolve(&mut symbolizer, AddressOwner::Kernel, 0xff12);
    assert_eq!(name(&functions[0]), "a_function");
    let functions = resolve(&mut symbolizer, AddressOwner::Kernel, 0xff81);
    assert_eq!(
        (name(&functions[0]), &*functions[0].object),
        ("in_module", "[module]")
    );
}

#[test]
fn a_file_that_cannot_be_opened_is_told() {
    let directory = tempfile::tempdir().expect("a directory");
    let link = directory.path().join("program");
    std::os::unix::fs::symlink(&link, &link).expect("a link to itself");
    let mut processes = Processes::new();
    for (start, name) in [(0x1000, "program"), (0x2000, "nowhere")] {
        let path = directory.path().join(name);
        let path = path.as_os_str().as_encoded_bytes();
        processes.map(1, Mapped::new(start..start + 0x1000, 0, path));
    }
    let mut symbolizer = Symbolizer::new();
    for address in [0x1010, 0x2010] {
        let mut functions = Vec::new();
        let owner = AddressOwner::Process(1);
        symbolizer.resolve(&processes, owner, address, &mut functions);
        assert_eq!(functions[0].name, None);
    }
    let left_out: Vec<_> = symbolizer.left_out().collect();
    let [(path, LeftOut::Unreadable(error))] = left_out[..] else {
        panic!("{left_out:?}");
    };
    assert_eq!(path, link.to_string_lossy());
    assert_eq!(error.raw_os_error(), Some(40), "ELOOP: {error}");
}

/// Addresses of this program and of the libraries beside it: those of one identity have one function, and those of one function
/// one identity.
#[test]
fn an_identity_stands_for_one_function() {
    let processes = own_processes();
    let mut symbolizer = Symbolizer::new();
    let program = an_identity_stands_for_one_function as fn() as usize as u64;
    let maps = std::fs::read("/proc/self/maps").expect("proc is mounted");
    let files = maps.split(|byte| *byte == b'\n');
    let files = files.filter_map(MapsLine::parse);
    let files = files.filter(|line| line.is_executable() && line.path.starts_with(b"/"));
    let mut by_id = HashMap::new();
    let mut by_function = HashMap::new();
    for line in files {
        for address in (line.start..line.end).step_by(61).take(4000) {
            let id = symbolizer.function_id(&processes, own_pid(), address);
            let mut found = Vec::new();
            let owner = AddressOwner::Process(own_pid());
            symbolizer.resolve(&processes, owner, address, &mut found);
            assert_eq!(id.is_some(), found[0].offset.is_some());
            let Some(id) = id else {
                continue;
            };
            let start = found[0].offset.map(|offset| address - offset);
            let function = (found[0].object.clone(), found[0].name.clone(), start);
            let known = by_id.entry(id).or_insert(function.clone());
            assert_eq!(*known, function);
            assert_eq!(*by_function.entry(function).or_insert(id), id);
        }
    }
    assert!(by_id.len() > 100, "{}", by_id.len());
    assert_eq!(symbolizer.function_id(&processes, own_pid(), 1), None);
    let mut with_lines = Symbolizer::new().with_lines(true);
    assert_eq!(
        with_lines.function_id(&processes, own_pid(), program),
        None,
        "one of its functions may have others in it"
    );
}
