//! Programs written for each version of PAPI 7: the header against those of PAPI's releases, and what the library writes.
#![cfg(target_os = "linux")]

mod c_programs;

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use c_programs::{Library, is_there, printed, root, run, skip};

/// The expressions of the header that differ between versions, with the value in each or `-`.
const FACTS: &str = include_str!("versions.tsv");

/// The minor versions, in the order of the columns.
const MINORS: usize = 4;

#[test]
fn the_header_is_that_of_each_version() {
    if !is_there("cc") {
        return skip("the header of each version", "there is no C compiler");
    }
    let rows = FACTS
        .lines()
        .filter(|line| !line.starts_with('#'))
        .skip(1)
        .map(|line| line.split('\t').collect::<Vec<_>>());
    let rows: Vec<_> = rows.collect();
    assert!(rows.len() > 50 && rows.iter().all(|row| row.len() == 1 + MINORS));
    let dir = tempfile::tempdir().expect("a directory");
    let (source, program) = (dir.path().join("facts.c"), dir.path().join("facts"));
    for minor in 0..MINORS {
        let known = || rows.iter().filter(|row| row[1 + minor] != "-");
        let mut text =
            "#include <papi.h>\n#include <stdio.h>\n#include <stddef.h>\nint main(void) {\n"
                .to_owned();
        let mut wanted = String::new();
        for row in known() {
            let (expression, value) = (row[0], row[1 + minor]);
            let _ = writeln!(
                text,
                "printf(\"{expression} %lld\\n\", (long long)({expression}));"
            );
            let _ = writeln!(wanted, "{expression} {value}");
        }
        text += "return 0; }\n";
        fs::write(&source, text).expect("a source");
        run(Command::new("cc")
            .arg(format!("-DQUIPU_PAPI_MINOR={minor}"))
            .arg("-I")
            .arg(root().join("include"))
            .arg(&source)
            .arg("-o")
            .arg(&program));
        assert_eq!(printed(&mut Command::new(&program)), wanted, "7.{minor}");
    }
}

#[test]
fn a_program_of_each_version_gets_its_layouts() {
    if !is_there("cc") {
        return skip("programs of each version", "there is no C compiler");
    }
    let library = Library::lay_out();
    for minor in 0..MINORS {
        let minor = format!("-DQUIPU_PAPI_MINOR={minor}");
        let compiler = ["cc", "-std=gnu11", "-Wextra", "-pthread", &minor];
        let program = library.build_with(&compiler, &root().join("tests/programs/versions.c"));
        run(&mut Command::new(program));
    }
}
