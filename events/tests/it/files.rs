//! Event files: of the system, of the user and named ones, and those that cannot be used.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Command;

use quipu_events::{Database, LayerFile};
use quipu_hal::{Error, ErrorKind, Event, Hardware};

const RUNS: &str = "files::prints_the_files_of_this_database";

fn file_of(event: &str) -> String {
    format!("[[cpu]]\nid = \"intel-skl\"\n[cpu.events]\n{event} = 0x77\n")
}

/// Prints for each of some events if the database has it, and the errors.
#[test]
#[ignore = "the program that the next test runs"]
fn prints_the_files_of_this_database() {
    let (database, left_out) = Database::open_lenient(None).expect("without a file");
    let skl = database.cpu("intel-skl").expect("it is there");
    for event in ["OF_CONFIG", "OF_HOME", "NAMED"] {
        if skl.has_event(event) {
            println!("has {event}");
        }
    }
    for error in left_out {
        println!("left out: {error:#}");
    }
    println!("strict: {}", Database::open(None).is_ok());
    println!("files: {}", Database::has_user_files());
}

#[test]
fn files_are_found_by_the_environment() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name);
    let write = |name: &str, text: &str| {
        std::fs::create_dir_all(path(name).parent().expect("it has one")).expect("made");
        std::fs::write(path(name), text).expect("written");
    };
    write("config/quipu/events.toml", &file_of("OF_CONFIG"));
    write("home/.config/quipu/events.toml", &file_of("OF_HOME"));
    write("named.toml", &file_of("NAMED"));
    write("wrong.toml", "[[cpu]]\nid = 7\n");
    let said = |variables: &[(&str, &str)]| {
        let run = Command::new(std::env::current_exe().expect("it runs"))
            .args(["--exact", RUNS, "--ignored", "--nocapture"])
            .env_clear()
            .envs(variables.iter().copied())
            .output()
            .expect("it starts");
        let said = String::from_utf8(run.stdout).expect("text");
        let ours = ["has ", "left out", "strict", "files"];
        let lines = said
            .lines()
            .filter(|line| ours.iter().any(|own| line.starts_with(own)));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let at = |name: &str| path(name).display().to_string();
    let of_system = Path::new("/etc/quipu/events.toml").is_file();
    let without = format!("files: {of_system}");
    assert_eq!(said(&[]), ["strict: true", &without]);
    assert_eq!(
        said(&[("QUIPU_EVENTS", ""), ("HOME", &at("nowhere"))]),
        ["strict: true", &without]
    );
    assert_eq!(
        said(&[("XDG_CONFIG_HOME", &at("config")), ("HOME", &at("home"))]),
        ["has OF_CONFIG", "strict: true", "files: true"]
    );
    // A relative path is none (the XDG base directory specification).
    assert_eq!(
        said(&[("XDG_CONFIG_HOME", "config"), ("HOME", &at("home"))]),
        ["has OF_HOME", "strict: true", "files: true"]
    );
    assert_eq!(
        said(&[("HOME", &at("home")), ("QUIPU_EVENTS", &at("named.toml"))]),
        ["has OF_HOME", "has NAMED", "strict: true", "files: true"]
    );
    let wrong = said(&[("HOME", &at("home")), ("QUIPU_EVENTS", &at("wrong.toml"))]);
    assert_eq!(wrong[0], "has OF_HOME");
    assert!(wrong[1].starts_with("left out: "), "{wrong:?}");
    assert!(wrong[1].contains("wrong.toml"), "{wrong:?}");
    assert_eq!(wrong[2..], ["strict: false", "files: true"]);
}

#[test]
fn files_that_cannot_be_used_are_refused_with_the_reason() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("events.toml");
    let refused = |bytes: &[u8]| -> Error {
        std::fs::write(&path, bytes).expect("written");
        Database::open(Some(&path)).expect_err("it cannot be used")
    };
    let error = refused(b"# text\n\xff\n");
    assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
    assert_eq!(error.reason(), Some("it is not UTF-8 from byte 7 on"));
    let error = refused(&vec![b'\n'; (32 << 20) + 1]);
    assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
    assert!(
        error
            .reason()
            .is_some_and(|why| why == "it is larger than 32 MiB"),
        "{error:#}"
    );
    std::fs::remove_file(&path).expect("removed");
    let error = Database::open(Some(&path)).expect_err("it is gone");
    assert_eq!(
        (error.kind(), error.reason()),
        (ErrorKind::Os, Some("there is no such file"))
    );
    let error = Database::open(Some(directory.path())).expect_err("it is a directory");
    assert_eq!(error.kind(), ErrorKind::Os);
    assert!(error.errno().is_some(), "{error:#}");
}

#[test]
fn a_backend_is_allowed_by_a_file_of_roots_alone() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("events.toml");
    let text = "allow = [\"msr\"]\n";
    std::fs::write(&path, text).expect("written");
    let embedded = Database::embedded();
    let refused = |error: Error| {
        assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
        let why = error.reason().unwrap_or_default();
        assert!(
            why.starts_with("it allows msr, which a file may do only if root"),
            "{why}"
        );
    };
    refused(
        embedded
            .with_text(&path, text)
            .expect_err("a text is no file of root's"),
    );
    let own = Database::open(Some(&path));
    let is_roots = path
        .metadata()
        .is_ok_and(|about| about.uid() == 0 && about.mode() & 0o022 == 0);
    if is_roots {
        let allowed = own.expect("root's");
        assert!(allowed.allows("msr") && !allowed.allows("pctr"));
    } else {
        refused(own.expect_err("a user's"));
    }
    assert!(!embedded.allows("msr"));
}

#[test]
fn user_definitions_are_kept_apart_from_the_tables() {
    let cycles = Event::Hardware(Hardware::Cycles);
    let text = "[[cpu]]\nid = \"intel-skl\"\n[cpu.generalized]\ncycles = \"INST_RETIRED.ANY_P\"\n";
    let embedded = Database::embedded();
    let own = embedded
        .with_text(Path::new("own.toml"), text)
        .expect("right");
    let skl = own.cpu("intel-skl").expect("it is there");
    let defined = skl.user_defined(&cycles).expect("it is defined");
    assert_eq!(defined.name, "cycles");
    for other in [
        Event::Hardware(Hardware::Instructions),
        Event::Named("cycles".into()),
    ] {
        assert!(skl.user_defined(&other).is_none(), "{other}");
    }
    let plain = embedded.cpu("intel-skl").expect("it is there");
    assert!(plain.user_defined(&cycles).is_none());
    assert!(plain.has_event("PAPI_TOT_INS") && plain.has_event("inst_retired.any_p:u"));
    assert!(!plain.has_event("PAPI_NOTHING") && !plain.has_event("INST_RETIRED.NOTHING"));
    let files = skl.origins("INST_RETIRED.ANY_P");
    assert!(
        files
            .iter()
            .all(|origin| origin.layer == LayerFile::Embedded)
    );
}
