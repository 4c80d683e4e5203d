//! Names from a server of debug information that the user names.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use super::names::Started;
use super::{Bench, quipu, skip, stderr, stdout};

#[test]
fn what_is_missing_comes_from_the_server_that_is_named() {
    const TEST: &str = "what_is_missing_comes_from_the_server_that_is_named";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let Some(id) = quipu_symbols::build_id_of(&bench.path("program")) else {
        return skip(TEST, "the linker makes no build IDs");
    };
    let id: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let served = bench.path(&format!("served/buildid/{id}"));
    fs::create_dir_all(&served).expect("writable");
    fs::copy(bench.path("program"), served.join("executable")).expect("copied");
    let objcopy = |options: &[&str]| {
        let mut run = Command::new("objcopy");
        let output = run
            .current_dir(bench.directory.path())
            .args(options)
            .output();
        output.is_ok_and(|output| output.status.success())
    };
    let debug = format!("served/buildid/{id}/debuginfo");
    let keep = ["--only-keep-debug", "program", &debug];
    if !(objcopy(&keep) && objcopy(&["--strip-all", "program"])) {
        return skip(TEST, "no objcopy");
    }
    let server = Command::new("python3")
        .args([
            "-u",
            "-m",
            "http.server",
            "0",
            "--bind",
            "127.0.0.1",
            "-d",
            "served",
        ])
        .current_dir(bench.directory.path())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn();
    let Ok(server) = server else {
        return skip(TEST, "no python3");
    };
    let mut server = Started(server);
    let mut line = String::new();
    let out = server.0.stdout.take().expect("a pipe");
    BufReader::new(out).read_line(&mut line).expect("a line");
    let port = line
        .split_whitespace()
        .skip_while(|word| *word != "port")
        .nth(1);
    let url = format!(
        "http://127.0.0.1:{}",
        port.unwrap_or_else(|| panic!("{line}"))
    );
    let recorded = bench.record(&["-q", "-e", "page-faults:u", "-c", "1"], "./program");
    assert_eq!(recorded.status.code(), Some(7), "{}", stderr(&recorded));
    let report = |urls: &str| {
        let output = quipu()
            .current_dir(bench.directory.path())
            .env("DEBUGINFOD_URLS", urls)
            .env("DEBUGINFOD_CACHE_PATH", bench.path("cache"))
            .arg("report")
            .output()
            .expect("it starts");
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output)
    };
    let is_named = |text: &str| text.contains("] hot\n") && text.contains("] warm\n");
    assert!(!is_named(&report("")), "{}", report(""));
    assert!(!bench.path("cache").exists());
    assert!(is_named(&report(&url)), "{}", report(&url));
    assert!(bench.path(&format!("cache/{id}/debuginfo")).exists());
    // The program is gone as well.
    fs::remove_file(bench.path("program")).expect("removed");
    assert!(is_named(&report(&url)), "{}", report(&url));
    assert!(bench.path(&format!("cache/{id}/executable")).exists());
    // What was kept needs no server.
    drop(server);
    assert!(is_named(&report("")), "{}", report(""));
}
