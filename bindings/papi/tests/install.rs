//! `packaging/papi`: what it installs is found by pkg-config, under PAPI's names.
#![cfg(target_os = "linux")]

mod c_programs;

use std::fs;
use std::process::Command;

use c_programs::{is_there, printed, root, run, skip};

#[test]
fn an_installed_library_is_found_by_pkg_config() {
    for program in ["bash", "cc", "ldd", "pkg-config"] {
        if !is_there(program) {
            return skip("packaging/papi", &format!("there is no {program}"));
        }
    }
    let prefix = tempfile::tempdir().expect("a directory");
    let script = root().join("../../packaging/papi");
    // Those that this test is linked with, which cargo has built already.
    let test = std::env::current_exe().expect("a path");
    let built = test.parent().expect("a folder");
    run(Command::new(script).arg(prefix.path()).arg(built));

    let flags = |arguments: &[&str]| {
        let path = prefix.path().join("lib/pkgconfig");
        let printed = printed(
            Command::new("pkg-config")
                .env("PKG_CONFIG_PATH", path)
                .args(arguments),
        );
        let words = printed.split_whitespace().map(str::to_owned);
        words.collect::<Vec<_>>()
    };
    for name in ["papi", "papi-7.0", "papi-7.0.0.0"] {
        assert_eq!(flags(&["--modversion", name]), ["7.0.0.0"], "{name}");
    }
    let program = prefix.path().join("page_faults");
    let counts = |flags: Vec<String>| {
        run(Command::new("cc")
            .arg(root().join("examples/page_faults.c"))
            .arg("-o")
            .arg(&program)
            .args(flags));
        let library = prefix.path().join("lib");
        let said = printed(Command::new(&program).env("LD_LIBRARY_PATH", library));
        assert!(said.ends_with(" page faults\n"), "{said}");
    };
    counts(flags(&["--cflags", "--libs", "papi"]));
    let needed = printed(
        Command::new("ldd")
            .arg(&program)
            .env("LD_LIBRARY_PATH", prefix.path().join("lib")),
    );
    let ours = prefix.path().join("lib/libpapi.so.7.0");
    assert!(needed.contains(&format!("{}", ours.display())), "{needed}");
    for minor in 1..=3 {
        let name = format!("lib/libpapi.so.7.{minor}");
        assert!(prefix.path().join(&name).exists(), "{name}");
    }

    // Without the shared library the linker takes the other one, which needs what pkg-config says.
    for name in ["libpapi.so", "libpapi.so.7.0", "libpapi.so.7.0.0.0"] {
        fs::remove_file(prefix.path().join("lib").join(name)).expect("it is installed");
    }
    counts(flags(&["--cflags", "--libs", "--static", "papi"]));
}
