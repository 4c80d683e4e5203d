//! Opening the embedded database and resolving events, beside libpfm4 doing the same.
//!
//! libpfm4 runs as a C program of its own (`libpfm4.c`), and this program runs itself again for what is
//! done once in a process, so that both start cold; the two take turns, and medians are compared. Where
//! both identify this machine's CPU as AMD Zen 4, both do so; elsewhere both are told that it is one.
//! Without a C compiler or libpfm4 the comparison is skipped, and says so.

use std::env;
use std::fs;
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use criterion::Criterion;
use quipu_events::{CpuEvents, Database, Interface};
use quipu_hal::{Event, EventMap, Filter};

/// The number of runs of each program.
const PAIRS: usize = 41;
/// The number of single events that are resolved in each run.
const SINGLES: usize = 20_001;
/// The measurements, each with the largest share of libpfm4's time that it may take: where both identify the CPU, and
/// where both are told, which saves libpfm4 looking for every PMU that it knows.
const LIMITS: [(&str, [f64; 2]); 2] = [
    ("open and 20 events, cold", [0.1, 1.0]),
    ("one event, warm", [0.5, 0.5]),
];
/// Tells this program to do the work once and print how long it took.
const ONCE: &str = "--once";
const CPU: &str = "amd-zen4";

/// Each event as Quipu and as libpfm4 write it, on AMD Zen 4.
const EVENTS: [(&str, &str); 20] = [
    ("ex_ret_instr", "RETIRED_INSTRUCTIONS"),
    ("ls_not_halted_cyc", "CYCLES_NOT_IN_HALT"),
    ("ex_ret_brn", "RETIRED_BRANCH_INSTRUCTIONS"),
    (
        "ex_ret_brn_misp",
        "RETIRED_BRANCH_INSTRUCTIONS_MISPREDICTED",
    ),
    ("ex_ret_brn_tkn", "RETIRED_TAKEN_BRANCH_INSTRUCTIONS"),
    (
        "ex_ret_brn_tkn_misp",
        "RETIRED_TAKEN_BRANCH_INSTRUCTIONS_MISPREDICTED",
    ),
    ("ex_ret_brn_far", "RETIRED_FAR_CONTROL_TRANSFERS"),
    ("ex_ret_near_ret", "RETIRED_NEAR_RETURNS"),
    (
        "ex_ret_near_ret_mispred",
        "RETIRED_NEAR_RETURNS_MISPREDICTED",
    ),
    (
        "ex_ret_brn_ind_misp",
        "RETIRED_INDIRECT_BRANCH_INSTRUCTIONS_MISPREDICTED",
    ),
    ("ex_ret_cond", "RETIRED_CONDITIONAL_BRANCH_INSTRUCTIONS"),
    ("ex_div_busy", "DIV_CYCLES_BUSY_COUNT"),
    ("ex_div_count", "DIV_OP_COUNT"),
    ("ex_ret_ops", "RETIRED_OPS"),
    ("ls_dispatch:ld_dispatch", "LS_DISPATCH:LD_DISPATCH"),
    ("ls_dispatch:store_dispatch", "LS_DISPATCH:STORE_DISPATCH"),
    ("ls_stlf", "STORE_TO_LOAD_FORWARD"),
    ("ls_int_taken", "INTERRUPT_TAKEN"),
    ("ls_smi_rx", "SMI_RECEIVED"),
    ("ls_bad_status2:stli_other", "BAD_STATUS_2:STLI_OTHER"),
];

/// The events of the CPU: identified, or as told.
fn open(forced: bool) -> CpuEvents {
    let database = Database::embedded();
    let table = if forced {
        database.cpu(CPU).expect("the CPU is embedded")
    } else {
        let mut tables = database.this_machine().expect("identified before");
        tables.remove(0)
    };
    table.events_for(Interface::Linux)
}

fn open_and_resolve(forced: bool) -> CpuEvents {
    let events = open(forced);
    for (name, _) in EVENTS {
        let event = Event::Named(name.to_owned());
        black_box(events.resolve(&event, Filter::all()).expect(name));
    }
    events
}

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if arguments.first().is_some_and(|first| first == ONCE) {
        once(arguments.len() > 1);
        return ExitCode::SUCCESS;
    }
    with_criterion();
    match compare() {
        Ok(()) => {}
        Err(reason) => println!("SKIP comparison with libpfm4: {reason}"),
    }
    ExitCode::SUCCESS
}

/// Nanoseconds: of everything, the first in this process; and the median of single resolves.
fn once(forced: bool) {
    let start = Instant::now();
    let events = open_and_resolve(forced);
    let all = start.elapsed().as_nanos();
    let named = EVENTS.map(|(name, _)| Event::Named(name.to_owned()));
    let mut singles: Vec<u128> = (0..SINGLES)
        .map(|run| {
            let start = Instant::now();
            let _ = black_box(events.resolve(&named[run % named.len()], Filter::all()));
            start.elapsed().as_nanos()
        })
        .collect();
    println!("{all} {}", median(&mut singles));
}

fn with_criterion() {
    let mut criterion = Criterion::default()
        .warm_up_time(Duration::from_secs(1))
        .measurement_time(Duration::from_secs(2))
        .configure_from_args();
    criterion.bench_function("open and resolve 20", |b| b.iter(|| open_and_resolve(true)));
    let events = open(true);
    let named = EVENTS.map(|(name, _)| Event::Named(name.to_owned()));
    let mut at = 0;
    criterion.bench_function("resolve one", |b| {
        b.iter(|| {
            at = (at + 1) % named.len();
            black_box(events.resolve(&named[at], Filter::all()))
        });
    });
    criterion.bench_function("identify this machine", |b| {
        b.iter(|| black_box(Database::embedded().this_machine()));
    });
    criterion.final_summary();
}

/// Runs both programs in turns and compares the medians.
fn compare() -> Result<(), String> {
    let folder = env::temp_dir().join(format!("quipu-libpfm4-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let result = compare_in(&folder);
    let _ = fs::remove_dir_all(&folder);
    result
}

fn compare_in(folder: &Path) -> Result<(), String> {
    let peer = build(folder)?;
    let itself = env::current_exe().map_err(|error| error.to_string())?;
    let this_machine = Database::embedded().this_machine();
    let known = this_machine.is_ok_and(|tables| tables[0].id() == CPU);
    let forced = !known || run(&mut Command::new(&peer)).is_err();
    let mut ours = [Vec::new(), Vec::new()];
    let mut theirs = [Vec::new(), Vec::new()];
    for _ in 0..PAIRS {
        let mut command = Command::new(&itself);
        command.arg(ONCE).args(forced.then_some("forced"));
        let mut other = Command::new(&peer);
        if forced {
            other.env("LIBPFM_FORCE_PMU", "amd64_fam19h_zen4");
        }
        for (into, numbers) in [
            (&mut ours, run(&mut command)?),
            (&mut theirs, run(&mut other)?),
        ] {
            into[0].push(numbers.0);
            into[1].push(numbers.1);
        }
    }
    let how = if forced {
        "told the CPU"
    } else {
        "identifying the CPU"
    };
    println!("medians of {PAIRS} runs of each in turns, both {how}:");
    for (i, (what, limits)) in LIMITS.into_iter().enumerate() {
        let limit = limits[usize::from(forced)];
        let (own, other) = (median(&mut ours[i]), median(&mut theirs[i]));
        let ratio = own as f64 / other.max(1) as f64;
        let verdict = if ratio <= limit { "MET" } else { "MISSED" };
        println!("{verdict} {what}: {own} ns, libpfm4 {other} ns, {ratio:.2} x (limit {limit} x)");
    }
    Ok(())
}

fn build(folder: &Path) -> Result<PathBuf, String> {
    let list: String = EVENTS
        .iter()
        .map(|(_, name)| format!("\"{name}\",\n"))
        .collect();
    fs::write(folder.join("events.inc"), list).map_err(|error| error.to_string())?;
    let program = folder.join("libpfm4");
    let compiled = Command::new("cc")
        .args(["-O2", "-o"])
        .arg(&program)
        .arg("-I")
        .arg(folder)
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/benches/libpfm4.c"))
        .arg("-lpfm")
        .output()
        .map_err(|error| format!("no C compiler: {error}"))?;
    if !compiled.status.success() {
        return Err("the C program does not build; is libpfm4-dev installed?".to_owned());
    }
    Ok(program)
}

/// The two numbers that a program prints.
fn run(command: &mut Command) -> Result<(u128, u128), String> {
    let run = command.output().map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(all)), Some(Ok(single))) if run.status.success() => Ok((all, single)),
        _ => Err(String::from_utf8_lossy(&run.stderr).into_owned()),
    }
}

fn median(numbers: &mut [u128]) -> u128 {
    numbers.sort_unstable();
    numbers[numbers.len() / 2]
}
