//! The binary interface is the one that is written down in `abi`. Its own executable because it compiles C.

mod c_build;
mod commands;

use std::fs;
use std::process::Command;

use c_build::{Language, Library};
use commands::{is_there, printed, root, skip};

#[test]
fn sizes_offsets_and_values_are_as_written_down() {
    if cfg!(not(target_pointer_width = "64")) {
        let test = "sizes_offsets_and_values_are_as_written_down";
        return skip(test, "they are written down for 64 bits");
    }
    Library::lay_out().build(&root().join("abi/layout.c"), Language::C11);
}

/// A struct, a field or a number that the list leaves out could change unseen.
#[test]
fn everything_in_the_header_is_written_down() {
    let header = fs::read_to_string(root().join("include/quipu.h")).expect("the header");
    let layout = fs::read_to_string(root().join("abi/layout.c")).expect("the layout");
    let mut inside = None;
    for line in header.lines() {
        let text = line.trim_start();
        let wanted = if text.starts_with('*') {
            continue; // a comment
        } else if let Some(name) = opened_struct(line) {
            inside = Some(name);
            format!("SIZE({name}, ")
        } else if line.starts_with('}') {
            inside = None;
            continue;
        } else if let (Some(name), Some(field)) = (inside, text.strip_suffix(';')) {
            let field = field.rsplit([' ', '*']).next().unwrap_or(field);
            format!("FIELD({name}, {field}, ")
        } else if let Some((name, number)) = text
            .split_once(" = ")
            .filter(|_| text.starts_with("QUIPU_"))
        {
            format!("VALUE({name}, {});", number.trim_end_matches(','))
        } else {
            continue;
        };
        assert!(
            layout.contains(&wanted),
            "{wanted} is missing in abi/layout.c"
        );
    }
}

fn opened_struct(line: &str) -> Option<&str> {
    line.strip_prefix("typedef struct ")?.strip_suffix(" {")
}

#[test]
fn exported_names_are_as_written_down() {
    let listed = fs::read_to_string(root().join("abi/symbols.txt")).expect("the list");
    let header = fs::read_to_string(root().join("include/quipu.h")).expect("the header");
    for name in listed.lines() {
        let declared = format!("{name}(");
        assert!(header.contains(&declared), "{name} is not in the header");
    }
    if !is_there("nm") {
        return skip("exported names", "there is no nm");
    }
    let library = Library::lay_out();
    let names = printed(
        Command::new("nm")
            .args(["--dynamic", "--defined-only", "--format=just-symbols"])
            .arg(library.dir().join("libquipu.so")),
    );
    let mut names: Vec<&str> = names.lines().collect();
    names.sort_unstable();
    assert_eq!(names, listed.lines().collect::<Vec<_>>());
}

#[test]
fn the_soname_has_the_version() {
    if !is_there("readelf") {
        return skip("soname", "there is no readelf");
    }
    let library = Library::lay_out();
    let dynamic = printed(
        Command::new("readelf")
            .arg("--dynamic")
            .arg(library.dir().join("libquipu.so")),
    );
    assert!(
        dynamic.contains("Library soname: [libquipu.so.0.1]"),
        "{dynamic}"
    );
}
