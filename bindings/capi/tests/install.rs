//! `cargo cinstall`, which builds the library: its own executable, which ci/long runs by its name. The library in a
//! prefix is found by pkg-config.

mod commands;

use std::process::Command;
use std::{env, fs};

use commands::{is_there, printed, root, run, skip};

#[test]
fn an_installed_library_is_found_by_pkg_config() {
    let there = Command::new("cargo")
        .args(["cinstall", "--version"])
        .output();
    if !there.is_ok_and(|output| output.status.success()) {
        return skip(
            "cargo cinstall",
            "cargo-c is not installed (ci/long installs it)",
        );
    }
    if !is_there("pkg-config") {
        return skip("cargo cinstall", "pkg-config is not installed");
    }
    let prefix = tempfile::tempdir().expect("a directory");
    // A build of its own, beside that of this test.
    let test = env::current_exe().expect("the test's own path");
    let target = test
        .ancestors()
        .nth(3)
        .expect("the target directory")
        .join("cinstall");
    run(Command::new("cargo")
        .args(["cinstall", "--profile", "dev", "--package", "quipu-capi"])
        .args(["--libdir", "lib", "--prefix"])
        .arg(prefix.path())
        .arg("--target-dir")
        .arg(&target)
        .current_dir(root()));
    for file in [
        "include/quipu.h",
        "include/quipu.hpp",
        "lib/libquipu.a",
        "lib/libquipu.so",
        "lib/libquipu.so.0.1",
        "lib/libquipu.so.0.1.0",
        "lib/pkgconfig/quipu.pc",
    ] {
        assert!(prefix.path().join(file).exists(), "{file} is not installed");
    }

    let flags = |arguments: &[&str]| {
        let flags = printed(
            Command::new("pkg-config")
                .env("PKG_CONFIG_PATH", prefix.path().join("lib/pkgconfig"))
                .args(arguments),
        );
        flags
            .split_whitespace()
            .map(str::to_owned)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        flags(&["--modversion", "quipu"]),
        [env!("CARGO_PKG_VERSION")]
    );
    let program = prefix.path().join("simulated");
    let compile = |flags: Vec<String>| {
        run(Command::new("cc")
            .arg("-std=c11")
            .arg(root().join("examples/simulated.c"))
            .arg("-o")
            .arg(&program)
            .args(flags));
    };
    compile(flags(&["--cflags", "--libs", "quipu"]));
    let said = printed(Command::new(&program).env("LD_LIBRARY_PATH", prefix.path().join("lib")));
    assert!(said.ends_with("as expected\n"));

    // Without the shared library the linker takes the other one, which needs what pkg-config says.
    for name in ["libquipu.so", "libquipu.so.0.1", "libquipu.so.0.1.0"] {
        fs::remove_file(prefix.path().join("lib").join(name)).expect("it is installed");
    }
    compile(flags(&["--cflags", "--libs", "--static", "quipu"]));
    let said = printed(&mut Command::new(&program));
    assert!(said.ends_with("as expected\n"));
}
