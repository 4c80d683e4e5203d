//! The interface against PAPI's own header and library, where they are installed: sizes, offsets, constants, names.

mod c_programs;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use c_programs::{Library, is_there, printed, root, skip};

/// The header of PAPI that ours has to be like.
const INSTALLED: &str = "/usr/include/papi.h";

fn installed() -> Option<String> {
    let header = fs::read_to_string(INSTALLED).ok();
    match header.filter(|text| text.contains("PAPI_VERSION_NUMBER(7,0,0,0)")) {
        Some(header) => Some(header),
        None => {
            skip("PAPI's header", "libpapi-dev 7.0 is not installed");
            None
        }
    }
}

/// Returns a header of ours without what it has for programs of later versions.
fn own(name: &str) -> String {
    let header = fs::read_to_string(root().join("include").join(name)).expect("the header");
    let mut of_later = false;
    let mut is_of_7_0 = |line: &&str| match line.split(' ').next() {
        Some("#if") => {
            of_later = line.starts_with("#if QUIPU_PAPI_MINOR >= ");
            false
        }
        Some("#else" | "#endif") => {
            of_later = false;
            false
        }
        _ => !of_later,
    };
    let lines: Vec<_> = header.lines().filter(|line| is_of_7_0(line)).collect();
    lines.join("\n")
}

fn ours() -> String {
    own("papi.h")
}

/// The names that a header defines as macros without arguments, and the constants of its enumerations.
fn constants(header: &str) -> BTreeSet<&str> {
    let words = header.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
    let is_constant = |word: &&str| {
        let lower = word.chars().any(|c| c.is_ascii_lowercase());
        (word.starts_with("PAPI_") || word.starts_with("PAPIF_")) && !lower && !word.ends_with('_')
    };
    let known = words.filter(is_constant).collect::<BTreeSet<_>>();
    let with_value = |name: &&str| {
        // Macros that take arguments, name a type or call a function, and words of comments.
        let macro_line = format!("#define {name}(");
        let defined = header.lines().any(|line| {
            let line = line.trim_start();
            let rest = line.strip_prefix("#define ").unwrap_or(line).trim_start();
            rest.strip_prefix(name)
                .is_some_and(|rest| rest.starts_with([' ', '\t', ',', '=']) || rest.is_empty())
        });
        defined && !header.contains(&macro_line)
    };
    known.into_iter().filter(with_value).collect()
}

/// The types of our header, each with its members.
fn structs(header: &str) -> Vec<(String, Vec<String>)> {
    let mut all = Vec::new();
    let mut members: Option<Vec<String>> = None;
    for line in header.lines() {
        if line.starts_with("typedef struct") || line.starts_with("typedef union") {
            members = line.ends_with('{').then(Vec::new);
        } else if let (Some(end), Some(_)) = (line.strip_prefix("} "), &members) {
            all.push((
                end.trim_end_matches(';').to_owned(),
                members.take().unwrap_or_default(),
            ));
        } else if let Some(members) = &mut members
            && !line.contains(':')
        {
            let declared = line.trim().trim_end_matches(';');
            let name = declared
                .split('[')
                .next()
                .and_then(|word| word.rsplit([' ', '*']).next());
            members.push(name.unwrap_or_default().to_owned());
        }
    }
    all
}

/// Prints what a header says of the interface, by a program that is compiled against it.
fn told_by(include: &Path, dir: &Path, source: &str) -> String {
    let (file, program) = (dir.join("interface.c"), dir.join("interface"));
    fs::write(&file, source).expect("a source");
    printed(
        Command::new("cc")
            .args(["-w", "-I"])
            .arg(include)
            .arg(&file)
            .arg("-o")
            .arg(&program),
    );
    printed(&mut Command::new(program))
}

#[test]
fn layouts_and_constants_are_those_of_the_installed_header() {
    let Some(installed) = installed() else { return };
    let ours = ours();
    let mut source =
        "#include <papi.h>\n#include <stdio.h>\n#include <stddef.h>\nint main(void) {\n".to_owned();
    let structs = structs(&ours);
    assert!(structs.len() > 20, "{structs:?}");
    for (name, members) in &structs {
        source += &format!("printf(\"{name} %zu\\n\", sizeof({name}));\n");
        for member in members {
            source += &format!(
                "printf(\"{name}.{member} %zu %zu\\n\", offsetof({name}, {member}), sizeof((({name} *)0)->{member}));\n"
            );
        }
    }
    let own_events = own("papiStdEventDefs.h");
    let wanted = constants(&installed);
    let known = constants(&ours);
    let missing: Vec<_> = wanted.difference(&known).collect();
    assert!(missing.is_empty(), "the header has no {missing:?}");
    assert!(wanted.len() > 250, "{}", wanted.len());
    for name in known.iter().chain(&constants(&own_events)) {
        source += &format!("printf(\"{name} %lld\\n\", (long long)({name}));\n");
    }
    source += "return 0; }\n";
    let dir = tempfile::tempdir().expect("a directory");
    let of_ours = told_by(&root().join("include"), dir.path(), &source);
    let of_theirs = told_by(Path::new("/usr/include"), dir.path(), &source);
    assert!(of_ours.lines().count() > 600);
    for (ours, theirs) in of_ours.lines().zip(of_theirs.lines()) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(of_ours.lines().count(), of_theirs.lines().count());
}

/// The names that a library exports.
fn exported(library: &Path) -> String {
    printed(
        Command::new("nm")
            .args(["--dynamic", "--defined-only", "--format=just-symbols"])
            .arg(library),
    )
}

#[test]
fn every_function_of_the_header_is_exported() {
    let library = Library::lay_out();
    if !is_there("nm") {
        return skip("exported names", "there is no nm");
    }
    let names = exported(&library.path());
    let exported: BTreeSet<&str> = names.lines().collect();
    let ours = ours();
    let declared: BTreeSet<&str> = ours
        .lines()
        .filter(|line| line.ends_with(");") && !line.starts_with("typedef"))
        .filter_map(|line| line.split('(').next()?.rsplit([' ', '*']).next())
        .collect();
    assert_eq!(declared.len(), 89);
    let is_fortran = |name: &&str| name.to_lowercase().starts_with("papif_");
    let (fortran, c): (BTreeSet<&str>, BTreeSet<&str>) = exported.into_iter().partition(is_fortran);
    assert_eq!(c, declared);
    assert_eq!(fortran.len(), 4 * 73);
    let Some(installed) = installed() else { return };
    let called = |name: &&&str| !installed.contains(&format!("{name}("));
    assert_eq!(declared.iter().filter(called).count(), 0);
}

#[test]
fn every_entry_point_of_papi_for_fortran_is_exported() {
    let library = Library::lay_out();
    if !is_there("nm") || !is_there("cc") {
        return skip(
            "entry points for Fortran",
            "there is no nm, or no C compiler",
        );
    }
    let place = printed(Command::new("cc").arg("-print-file-name=libpapi.so.7.0.0.0"));
    let theirs = Path::new(place.trim());
    if !theirs.is_absolute() {
        return skip("entry points for Fortran", "libpapi 7.0 is not installed");
    }
    let (ours, theirs) = (exported(&library.path()), exported(theirs));
    let of_fortran = |names: &str| -> BTreeSet<String> {
        let names = names.lines().map(str::to_owned);
        let is_fortran = |name: &String| name.to_lowercase().starts_with("papif_");
        names.filter(is_fortran).collect()
    };
    let theirs = of_fortran(&theirs);
    assert!(theirs.len() > 200, "{}", theirs.len());
    assert_eq!(of_fortran(&ours), theirs);
}

/// The lines of a header that define a macro, each as its name and what it stands for.
fn defined(header: &str) -> Vec<(&str, &str)> {
    let lines = header
        .lines()
        .filter_map(|line| line.strip_prefix("#define "));
    lines
        .filter_map(|line| line.split_once(' '))
        .map(|(name, value)| (name, value.trim()))
        .collect()
}

#[test]
fn the_constants_for_fortran_are_those_of_the_header_and_of_papi() {
    let header = fs::read_to_string(root().join("include/fpapi.h")).expect("the header");
    let ours = defined(&header);
    assert_eq!(ours.len(), 305);
    if is_there("cc") {
        let mut source = "#include <papi.h>\n#include <stdio.h>\nint main(void) {\n".to_owned();
        for (name, value) in &ours {
            source += &format!("if ((int)({name}) != ({value})) puts(\"{name}\");\n");
        }
        source += "return 0; }\n";
        let dir = tempfile::tempdir().expect("a directory");
        assert_eq!(told_by(&root().join("include"), dir.path(), &source), "");
    }
    match fs::read_to_string("/usr/include/fpapi.h") {
        Ok(installed) if installed.contains("PAPI_VERSION       117440512") => {
            assert_eq!(ours, defined(&installed));
        }
        _ => skip("fpapi.h", "libpapi-dev 7.0 is not installed"),
    }
}

#[test]
fn the_soname_is_that_of_papi() {
    if !is_there("readelf") {
        return skip("soname", "there is no readelf");
    }
    let library = Library::lay_out();
    let dynamic = printed(Command::new("readelf").arg("--dynamic").arg(library.path()));
    assert!(
        dynamic.contains("Library soname: [libpapi.so.7.0]"),
        "{dynamic}"
    );
}
