//! Programs, in an executable of their own because it compiles them: the examples, built as C11 and as C++17 without
//! a warning, run, and run again under valgrind; and one that forks workers.

mod c_build;
mod commands;

use std::path::{Path, PathBuf};
use std::process::Command;

use c_build::{Language, Library};
use commands::{is_there, printed, root, run, skip};

const EXAMPLES: [&str; 11] = [
    "calibrated",
    "count_function",
    "encoded",
    "multiplexed",
    "own_events",
    "plain_values",
    "regions",
    "sampled",
    "simulated",
    "threads",
    "why_not",
];

fn source(example: &str) -> PathBuf {
    root().join("examples").join(format!("{example}.c"))
}

/// A file of events for two CPUs: one of its own, and one that the database has.
const OWN_EVENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/programs/acme.toml");

fn arguments(example: &str) -> &'static [&'static str] {
    match example {
        "encoded" => &[
            "amd-zen4",
            "cycles",
            "perf::PERF_COUNT_SW_PAGE_FAULTS:u=1",
            "PERF_COUNT_HW_CACHE_L1D:READ:MISS",
            "amd64_fam19h_zen4::RETIRED_INSTRUCTIONS:c=1",
            "mem:0x1000/8:w",
        ],
        "own_events" => &[OWN_EVENTS, "acme-one", "ACME_FAULTS:u,NO_SUCH"],
        "why_not" => &["page-faults:u", "no-such-event"],
        _ => &[],
    }
}

/// Returns true if the kernel's counters can be used here; `why_not` needs no permission to say so. A
/// container may forbid them, and then getrusage(2) answers for some events.
fn has_perf_events(why_not: &str) -> bool {
    why_not.contains("page-faults:u: counted by linux")
}

#[test]
fn every_example_is_listed() {
    let files = std::fs::read_dir(root().join("examples")).expect("examples");
    let mut found: Vec<String> = files
        .map(|file| file.expect("a file").path())
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    found.sort();
    assert_eq!(found, EXAMPLES);
}

#[test]
fn examples_do_the_same_in_c_and_in_cpp() {
    let library = Library::lay_out();
    for language in [Language::C11, Language::Cpp17] {
        if language == Language::Cpp17 && !is_there("c++") {
            skip("examples in C++", "there is no C++ compiler");
            continue;
        }
        let of = |example: &str| {
            let program = library.build(&source(example), language);
            printed(Command::new(program).args(arguments(example)))
        };
        assert!(of("simulated").ends_with("as expected\n"));
        assert_eq!(of("multiplexed"), MULTIPLEXED);
        assert_eq!(of("encoded"), ENCODED);

        let why_not = of("why_not");
        let refusal = why_not.split("no-such-event: ").nth(1).expect("an answer");
        assert!(refusal.contains("\n    cannot "), "{refusal}");
        match has_perf_events(&why_not) {
            true => {
                assert!(refusal.starts_with("event not supported\n"), "{refusal}");
                assert_eq!(of("sampled"), SAMPLED);
                assert_calibrated(&of("calibrated"));
                assert_own_events(&of("own_events"));
                let plain = of("plain_values");
                let faults = plain.split(" page faults in ").next();
                let faults: u64 = faults.and_then(|faults| faults.parse().ok()).expect(&plain);
                assert!((256..264).contains(&faults), "{plain}");
                if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
                    assert!(!plain.contains("\n0 ticks"), "{plain}");
                }
            }
            false => skip("the examples of the kernel's counters", &why_not),
        }
        assert!(of("count_function").contains("  page-faults\n"));
        let regions = of("regions");
        for region in ["solve", "  step"] {
            let row = |line: &&str| line.starts_with(region);
            let row = regions
                .lines()
                .find(row)
                .unwrap_or_else(|| panic!("{regions}"));
            let calls = row.split_whitespace().nth(1);
            assert_eq!(
                calls,
                Some(if region == "solve" { "1" } else { "3" }),
                "{regions}"
            );
        }
        let threads = of("threads");
        for thread in 0..8 {
            let pages = (thread + 1) * 100;
            let line = threads.lines().nth(thread).expect("a line");
            let faults = line
                .strip_prefix(&format!("thread {thread}: {pages} pages touched, "))
                .and_then(|rest| rest.strip_suffix(" faults (exact)"))
                .unwrap_or_else(|| panic!("{line}"));
            // The thread's own stack and set may fault a little; another thread's pages would show.
            let faults: usize = faults.parse().expect("a number");
            assert!((pages..pages + 50).contains(&faults), "{line}");
        }
    }
}

/// The pages of an array are touched, and what the set itself adds is told beside each count.
fn assert_calibrated(said: &str) {
    let [faults, instructions, clock] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("{said}");
    };
    // A page of the program's own may be missing, too.
    let pages: u64 = faults
        .strip_prefix("page-faults:u: ")
        .and_then(|rest| rest.strip_suffix(", less 0 of the set's own (0 to 0)"))
        .and_then(|pages| pages.parse().ok())
        .unwrap_or_else(|| panic!("{said}"));
    assert!((256..264).contains(&pages), "{said}");
    assert!(instructions.starts_with("instructions:u: "), "{said}");
    // Time passes between start and stop.
    let own = clock.split(", less ").nth(1).expect("an overhead");
    assert!(
        clock.starts_with("task-clock:u: ") && !own.starts_with("0 "),
        "{said}"
    );
}

/// The pages of an array are counted under a name that only the file has.
fn assert_own_events(said: &str) {
    let [faults, none] = said.lines().collect::<Vec<_>>()[..] else {
        panic!("{said}");
    };
    let faults = faults.strip_prefix("ACME_FAULTS:u: ");
    let faults: u64 = faults.and_then(|faults| faults.parse().ok()).expect(said);
    assert!((256..264).contains(&faults), "{said}");
    assert_eq!(none, "NO_SUCH: event not supported");
}

/// A file adds names to the entry of this machine's CPU, too.
#[test]
fn events_of_a_file_are_counted_on_this_cpu() {
    const TEST: &str = "events of a file on this CPU";
    let tables = quipu::NativeEvents::this().tables();
    let Some(table) = tables.ok().and_then(|tables| tables.first()) else {
        return skip(TEST, "the event database does not know this CPU");
    };
    let file = tempfile::NamedTempFile::new().expect("a file");
    let text = format!(
        "[[cpu]]\nid = \"{}\"\n[cpu.presets]\nMY_FAULTS = \"minor-faults\"\n",
        table.id()
    );
    std::fs::write(file.path(), text).expect("it is written");
    let library = Library::lay_out();
    let program = library.build(&source("own_events"), Language::C11);
    let events = |path: &Path| printed(Command::new(&program).arg(path).args(["", "MY_FAULTS:u"]));
    let said = events(file.path());
    if said.contains("not supported") {
        panic!("{said}");
    }
    let faults = said.trim().strip_prefix("MY_FAULTS:u: ");
    assert!(
        faults.is_some_and(|faults| faults.parse::<u64>().is_ok_and(|faults| faults >= 256)),
        "{said}"
    );
}

/// A file of events prefers registers; they are used after consent alone, and refused for a reason of their own then.
#[test]
fn registers_wait_for_consent() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    let systems = ["linux", "openbsd", "freebsd", "dragonfly", "netbsd"];
    let backends = systems.map(|system| format!("{system} = [\"msr\"]"));
    let text = format!(
        "[[cpu]]\nid = \"acme-two\"\nname = \"Acme Two\"\nbase = \"intel-p6\"\nbackends = {{ {} }}",
        backends.join(", ")
    );
    std::fs::write(file.path(), text).expect("it is written");
    let library = Library::lay_out();
    let source = root().join("tests/programs/consent.c");
    let program = library.build(&source, Language::C11);
    let says = |consent: &[&str]| {
        let mut command = Command::new(&program);
        printed(command.arg(file.path()).arg("acme-two").args(consent))
    };
    let [asked, allowed] = [says(&[]), says(&["allow"])];
    assert!(
        asked.contains("only its registers reach them here"),
        "{asked}"
    );
    assert!(asked.contains("`quipu stat --backend msr"), "{asked}");
    assert!(!allowed.contains("only its registers"), "{allowed}");
    assert!(
        !allowed.contains("opened") && !allowed.contains("--backend msr"),
        "{allowed}"
    );
}

/// Destructors and exit handlers of forked workers find handles that they can use and close as far as these are of any
/// use in another process, and the process that opened them goes on.
#[test]
fn forked_workers_exit_as_any_program() {
    if !is_there("c++") {
        return skip("forked workers", "there is no C++ compiler");
    }
    let source = root().join("tests/programs/forked.cpp");
    let library = Library::lay_out();
    let program = library.build(&source, Language::Cpp17);
    let output = Command::new(program).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr);
    if output.status.code() == Some(255) {
        return skip("forked workers", said.trim());
    }
    assert!(output.status.success(), "{}: {said}", output.status);
}

/// Why nothing can be run under valgrind here. Where the dynamic linker has no symbols it runs nothing.
fn no_valgrind() -> Option<String> {
    match Command::new("valgrind").args(["--quiet", "true"]).output() {
        Err(_) => Some("it is not installed".into()),
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let first = said.lines().find(|line| !line.trim().is_empty());
            Some(format!("it runs nothing: {}", first.unwrap_or_default()))
        }
    }
}

/// A page is missing once.
const SAMPLED: &str = "\
samples wait: yes
256 of 256 pages sampled once, 0 oftener, 0 samples lost
";

/// The numbers of include/uapi/linux/perf_event.h, and event 0xc0 with a counter mask of 1.
const ENCODED: &str = "\
cycles: type 0, config 0
perf::PERF_COUNT_SW_PAGE_FAULTS:u=1: type 1, config 0x2
PERF_COUNT_HW_CACHE_L1D:READ:MISS: type 3, config 0x10000
amd64_fam19h_zen4::RETIRED_INSTRUCTIONS:c=1: type 4, config 0x10000c0
mem:0x1000/8:w: type 5, config 0, config1 0x1000, config2 0x8, bp_type 2
";

/// Two counters: cycles keeps one, and the others take turns on the second, three turns each.
const MULTIPLEXED: &str = "\
after 1 ms:
     3000000  cycles
     5200000  instructions
           -  branches (never had a counter)
           -  SYSTEM_CALLS (never had a counter)
           -  NO_SUCH_EVENT: cannot count NO_SUCH_EVENT: the simulated PMU has no such event
after 9 ms:
    27000000  cycles
    46800000  instructions (estimated: counted for 33% of the time)
     9270000  branches (estimated: counted for 33% of the time)
           0  SYSTEM_CALLS (estimated: counted for 33% of the time)
           -  NO_SUCH_EVENT: cannot count NO_SUCH_EVENT: the simulated PMU has no such event
";

#[test]
fn examples_have_no_error_under_valgrind() {
    if let Some(reason) = no_valgrind() {
        return skip("examples under valgrind", &reason);
    }
    let library = Library::lay_out();
    let build = |example| library.build(&source(example), Language::C11);
    let why_not = printed(Command::new(build("why_not")).args(arguments("why_not")));
    for example in EXAMPLES {
        if matches!(
            example,
            "calibrated"
                | "count_function"
                | "own_events"
                | "plain_values"
                | "regions"
                | "sampled"
                | "threads"
        ) && !has_perf_events(&why_not)
        {
            // getrusage(2) is of the calling thread, whose handle Rust's library never gives back.
            skip(&format!("{example} under valgrind"), &why_not);
            continue;
        }
        let program = build(example);
        let output = run(Command::new("valgrind")
            .args(["--quiet", "--error-exitcode=99", "--leak-check=full"])
            .arg(program)
            .args(arguments(example)));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!said.contains("=="), "{example}: {said}");
    }
}

#[test]
fn the_static_library_links_too() {
    let library = Library::lay_out();
    let program = library.dir().join("static");
    run(Command::new("cc")
        .args(["-std=c11", "-I"])
        .arg(root().join("include"))
        .arg(source("simulated"))
        .arg(library.dir().join("libquipu.a"))
        .args([
            "-lgcc_s",
            "-lutil",
            "-lrt",
            "-lpthread",
            "-lm",
            "-ldl",
            "-lc",
        ])
        .arg("-o")
        .arg(&program));
    assert!(printed(&mut Command::new(program)).ends_with("as expected\n"));
}
