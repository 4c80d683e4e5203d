//! Opening the embedded database and resolving events, beside libpfm4 doing the same.
//!
//! libpfm4 runs as a C program of its own (`libpfm4.c`), with the CPU forced to AMD Zen 4, which both
//! know. Where there is no C compiler or no libpfm4, that half is skipped, and says so.

use std::env;
use std::fs;
use std::hint::black_box;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use criterion::Criterion;
use quipu_events::{Database, Interface};
use quipu_hal::{Event, EventMap, Filter};

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

fn open_and_resolve() {
    let database = Database::embedded();
    let table = database.cpu("amd-zen4").expect("the CPU is embedded");
    let events = table.events_for(Interface::Linux);
    for (name, _) in EVENTS {
        let event = Event::Named(name.to_owned());
        black_box(events.resolve(&event, Filter::all()).expect(name));
    }
}

fn main() {
    let start = Instant::now();
    open_and_resolve();
    let first = start.elapsed().as_nanos();

    let mut criterion = Criterion::default().configure_from_args();
    criterion.bench_function("open and resolve 20", |b| b.iter(open_and_resolve));
    let events = Database::embedded()
        .cpu("amd-zen4")
        .expect("the CPU is embedded")
        .events_for(Interface::Linux);
    let named: Vec<Event> = EVENTS
        .iter()
        .map(|(name, _)| Event::Named((*name).to_owned()))
        .collect();
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

    let start = Instant::now();
    const RUNS: u128 = 20_000;
    for run in 0..RUNS {
        let _ = black_box(events.resolve(&named[run as usize % named.len()], Filter::all()));
    }
    let one = start.elapsed().as_nanos() / RUNS;
    match libpfm4() {
        Ok((all, single)) => {
            println!("open and 20 events, first in the process: {first} ns, libpfm4 {all} ns");
            println!("one event: {one} ns, libpfm4 {single} ns");
        }
        Err(reason) => println!("SKIP libpfm4: {reason}"),
    }
}

/// Builds and runs the C program: nanoseconds for everything, and for one event.
fn libpfm4() -> Result<(u64, u64), String> {
    let folder = env::temp_dir().join(format!("quipu-libpfm4-{}", std::process::id()));
    fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
    let result = libpfm4_in(&folder);
    let _ = fs::remove_dir_all(&folder);
    result
}

fn libpfm4_in(folder: &Path) -> Result<(u64, u64), String> {
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
    let run = Command::new(&program)
        .env("LIBPFM_FORCE_PMU", "amd64_fam19h_zen4")
        .output()
        .map_err(|error| error.to_string())?;
    let text = String::from_utf8_lossy(&run.stdout).into_owned();
    let mut numbers = text.split_whitespace().map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(all)), Some(Ok(single))) => Ok((all, single)),
        _ => Err(String::from_utf8_lossy(&run.stderr).into_owned()),
    }
}
