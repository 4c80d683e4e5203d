//! `quipu.hpp`: its program, built by each compiler that is there as each standard that it is for, without a warning, and run.
#![cfg(target_os = "linux")]

mod c_build;
mod commands;

use std::process::Command;

use c_build::Library;
use commands::{is_there, root, run, skip};

/// Options of a build, each of which the header has to be good for.
const BUILDS: [&[&str]; 3] = [
    &["-std=c++17"],
    &["-std=c++20", "-O2"],
    &["-std=c++17", "-fno-exceptions", "-fno-rtti"],
];

#[test]
fn cpp_counts_with_every_compiler_and_standard() {
    let library = Library::lay_out();
    let program = library.dir().join("cpp");
    for compiler in ["g++", "clang++"] {
        if !is_there(compiler) {
            skip(&format!("quipu.hpp by {compiler}"), "it is not installed");
            continue;
        }
        for options in BUILDS {
            run(Command::new(compiler)
                .args(options)
                .args([
                    "-Wall",
                    "-Wextra",
                    "-Wpedantic",
                    "-Wshadow",
                    "-Werror",
                    "-pthread",
                    "-I",
                ])
                .arg(root().join("include"))
                .arg(root().join("tests/programs/cpp.cpp"))
                .arg("-o")
                .arg(&program)
                .arg("-L")
                .arg(library.dir())
                .arg(format!("-Wl,-rpath,{}", library.dir().display()))
                .arg("-lquipu"));
            let output = Command::new(&program).output().expect("it runs");
            let said = String::from_utf8_lossy(&output.stderr);
            if output.status.code() == Some(255) {
                return skip("quipu.hpp", said.trim());
            }
            assert!(
                output.status.success(),
                "{compiler} {options:?}: {}: {said}",
                output.status
            );
        }
    }
}
