//! A program that has more rights than its user does not read the files that the user names.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use quipu_events::Database;

/// A user who is not the owner of the program.
const NOBODY: u32 = 65_534;

#[test]
#[ignore = "the program that the next test runs as another user"]
fn says_whether_the_user_has_files() {
    let euid = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let ids = euid.lines().find(|line| line.starts_with("Uid:"));
    let ids: Vec<&str> = ids.expect("it is there").split_whitespace().collect();
    let is_raised = ids[1] != ids[2];
    println!("raised: {is_raised}, files: {}", Database::has_user_files());
}

#[test]
fn a_set_user_id_program_does_not_trust_the_environment() {
    let name = "a_set_user_id_program_does_not_trust_the_environment";
    let skip = |why: &str| {
        let _ = writeln!(std::io::stderr(), "SKIP {name}: {why}");
    };
    let directory = tempfile::tempdir().expect("a directory");
    let program = directory.path().join("program");
    std::fs::copy(std::env::current_exe().expect("it runs"), &program).expect("copied");
    let file = directory.path().join("quipu/events.toml");
    std::fs::create_dir(directory.path().join("quipu")).expect("made");
    std::fs::write(&file, "").expect("written");
    let mode = |path: &Path, bits| {
        std::fs::set_permissions(path, PermissionsExt::from_mode(bits)).expect("its owner");
    };
    mode(directory.path(), 0o755);
    if chown(&program, Some(0), Some(0)).is_err() {
        return skip("only root can make such programs for others");
    }
    for (variable, value) in [
        ("QUIPU_EVENTS", file.as_path()),
        ("XDG_CONFIG_HOME", directory.path()),
        ("HOME", directory.path()),
    ] {
        let said = |bits| {
            mode(&program, bits);
            let said = Command::new(&program)
                .args(["--exact", "environment::says_whether_the_user_has_files"])
                .args(["--ignored", "--nocapture"])
                .env_clear()
                .env(variable, value)
                .uid(NOBODY)
                .gid(NOBODY)
                .output()
                .expect("it starts");
            String::from_utf8_lossy(&said.stdout).into_owned()
        };
        if variable == "HOME" {
            std::fs::create_dir(directory.path().join(".config")).expect("made");
            let below = directory.path().join(".config/quipu");
            std::fs::rename(directory.path().join("quipu"), below).expect("moved");
        }
        let plain = said(0o755);
        if Path::new("/etc/quipu/events.toml").is_file() {
            return skip("this machine has event files");
        }
        assert!(
            plain.contains("raised: false, files: true"),
            "{variable}: {plain}"
        );
        let raised = said(0o4755);
        if raised.contains("raised: false") {
            return skip("this file system takes no set-user-ID programs");
        }
        assert!(
            raised.contains("raised: true, files: false"),
            "{variable}: {raised}"
        );
    }
}
