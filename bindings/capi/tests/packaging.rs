//! `packaging/capi`: what it installs is found by pkg-config.
#![cfg(target_os = "linux")]

mod commands;

use std::fs;
use std::process::Command;

use commands::{is_there, printed, root, run, skip};

#[test]
fn an_installed_library_is_found_without_cargo_c() {
    for program in ["bash", "cc", "pkg-config", "readelf"] {
        if !is_there(program) {
            return skip("packaging/capi", &format!("there is no {program}"));
        }
    }
    let prefix = tempfile::tempdir().expect("a directory");
    let library = prefix.path().join("lib");
    let header = prefix.path().join("include/quipu.hpp");
    let script = root().join("../../packaging/capi");
    // Those that this test is linked with, which cargo has built already.
    let test = std::env::current_exe().expect("a path");
    let built = test.parent().expect("a folder");
    run(Command::new(script).arg(prefix.path()).arg(built));
    assert!(header.exists(), "C++ has its header");

    let flags = |arguments: &[&str]| {
        let mut pkg_config = Command::new("pkg-config");
        pkg_config.env("PKG_CONFIG_PATH", library.join("pkgconfig"));
        let printed = printed(pkg_config.args(arguments));
        let words = printed.split_whitespace().map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(flags(&["--modversion", "quipu"]), [version]);
    let program = prefix.path().join("simulated");
    let counts = |flags: Vec<String>| {
        let mut cc = Command::new("cc");
        cc.arg("-std=c11").arg(root().join("examples/simulated.c"));
        run(cc.arg("-o").arg(&program).args(flags));
        let said = printed(Command::new(&program).env("LD_LIBRARY_PATH", &library));
        assert!(said.ends_with("as expected\n"), "{said}");
    };
    counts(flags(&["--cflags", "--libs", "quipu"]));
    // The program looks for the name that the library gives itself, which is installed.
    let dynamic = printed(Command::new("readelf").arg("-d").arg(&program));
    let needed = dynamic
        .split(['[', ']'])
        .find(|word| word.starts_with("libquipu"));
    let needed = needed.expect("the shared library");
    let target = fs::read_link(library.join(needed)).expect("a link");
    assert_eq!(target.to_str(), Some(&*format!("libquipu.so.{version}")));

    // Without the shared library the linker takes the other one, which needs what pkg-config says.
    for name in ["libquipu.so", needed, &format!("libquipu.so.{version}")] {
        fs::remove_file(library.join(name)).expect("it is installed");
    }
    counts(flags(&["--cflags", "--libs", "--static", "quipu"]));
}
