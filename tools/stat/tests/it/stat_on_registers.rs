//! The command over simulated model-specific registers: writes of other programs to them, and their
//! contents afterwards.

mod partly;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::{Args as _, FromArgMatches as _};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use quipu::msr::sim::{Defect, EventNames, Generation, Level, SimulatedMsrs, Stretch};
use quipu::msr::{self, MsrBus, MsrPmu, Repair};
use quipu::{Count, Result};
use quipu_hal::SlotSet;
use quipu_pmu::{Clock, ManualClock, MonotonicClock, VirtualPmu};
use quipu_shell::signals::is_ignored;
use quipu_stat::notes::taken_over;
use quipu_stat::{
    AggregateBy, Aggregation, Backends, Lines, Note, Options, Output, Plan, Row, Session, Sets,
    notes,
};

/// Intel, version 4: with global control.
const GENERATION: Generation = Generation::ALL[5];
const SELECT_0: u32 = 0x186;
const SELECT_1: u32 = 0x187;
const COUNTER_0: u32 = 0xc1;
const COUNTER_1: u32 = 0xc2;
const GLOBAL_CONTROL: u32 = 0x38f;

type Registers<B> = Arc<VirtualPmu<MsrPmu<B>>>;

fn registers<B: MsrBus>(bus: B, clock: impl Clock, options: msr::Options) -> Registers<B> {
    let model = GENERATION.model();
    let map = EventNames::new(model.clone()).any("A", 0x10).any("B", 0x11);
    let pmu = MsrPmu::new(bus, &model, options).expect("counters that work");
    Arc::new(VirtualPmu::new(pmu, clock, Arc::new(map)).expect("a proper PMU"))
}

/// Returns the options of `quipu stat` with these arguments, counting on registers.
fn options<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Options {
    let command = Options::augment_args(clap::Command::new("stat").no_binary_name(true));
    let on_registers = ["--all-cpus", "--backend", "msr"];
    let matches = command.try_get_matches_from(on_registers.into_iter().chain(arguments));
    Options::from_arg_matches(&matches.expect("arguments")).expect("options")
}

/// A machine of one CPU, counting.
struct Measurement {
    bus: SimulatedMsrs,
    clock: ManualClock,
    registers: Registers<SimulatedMsrs>,
    backends: Backends,
    sets: Sets,
}

impl Measurement {
    fn of(events: &str, bus: SimulatedMsrs, taking: msr::Options) -> Self {
        let clock = ManualClock::new();
        let registers = registers(bus.clone(), clock.clone(), taking);
        let backends = Backends::on_registers(Arc::clone(&registers));
        let plan = Plan::new(&options(["-e", events])).expect("a plan");
        let mut sets = Sets::open(&plan, &backends, None).expect("open");
        sets.enable().expect("enabled");
        Self {
            bus,
            clock,
            registers,
            backends,
            sets,
        }
    }

    /// Lets a millisecond pass, in which both events occur so often.
    fn pass(&self, times: u64) {
        let stretch = Stretch::new(Level::User, times);
        let stretch = stretch.occurring(0x10, 1).occurring(0x11, 1);
        self.bus.run(0, &stretch);
        self.clock.advance(Duration::from_millis(1));
    }

    fn rows(&mut self) -> Vec<Row> {
        let mut snapshot = self.sets.snapshot();
        self.sets.read(&mut snapshot).expect("read");
        let whole = Aggregation::new(AggregateBy::Target, self.sets.all_parts());
        let mut lines = Lines::new(&self.sets, &whole.expect("whole"));
        lines.fill(&self.sets, &snapshot, 0.0).to_vec()
    }

    fn end(mut self) -> (Vec<Row>, Vec<Note>) {
        self.sets.disable().expect("no failure of the run");
        let rows = self.rows();
        let mut notes = notes(&self.sets, &rows, None, None);
        notes.extend(taken_over(&self.backends));
        (rows, notes)
    }
}

fn measure(events: &str) -> Measurement {
    let bus = SimulatedMsrs::new(GENERATION, 1);
    Measurement::of(events, bus, msr::Options::default())
}

#[test]
fn a_span_that_another_program_disturbed_is_not_counted_and_the_report_says_so() {
    let mut run = measure("A,B");
    run.pass(100);
    run.rows();
    run.pass(50);
    run.bus
        .write(0, SELECT_0, 0)
        .expect("another program's write");
    let (rows, notes) = run.end();
    assert_eq!(rows[0].count, Count::Estimated(200));
    assert_eq!((rows[0].enabled, rows[0].running), (2_000_000, 1_000_000));
    assert_eq!(rows[1].count, Count::Exact(150));
    let [note] = notes.as_slice() else {
        panic!("{notes:?}");
    };
    assert_eq!(
        (note.about.as_str(), &*note.events),
        ("disturbed", &["A".to_owned()][..])
    );
    let text =
        "not counted for part of the time: its registers were changed, probably by another program";
    assert!(note.text.starts_with(text), "{}", note.text);
}

#[test]
fn an_event_that_was_never_known_undisturbed_is_not_counted_for_that_reason() {
    let run = measure("A,B");
    run.pass(100);
    run.bus
        .write(0, SELECT_0, 0)
        .expect("another program's write");
    let (rows, notes) = run.end();
    assert_eq!(rows[0].count, Count::NotCounted);
    assert_eq!(rows[1].count, Count::Exact(100));
    let [note] = notes.as_slice() else {
        panic!("{notes:?}");
    };
    assert_eq!(note.about, "not counted");
    assert!(
        note.text.starts_with("its registers were changed"),
        "{}",
        note.text
    );
}

#[test]
fn a_disturbed_interval_is_followed_by_undisturbed_ones() {
    let mut run = measure("A");
    let mut last = run.sets.snapshot();
    run.sets.read(&mut last).expect("read");
    let mut said = Vec::new();
    for disturbed in [false, true, false] {
        run.pass(100);
        if disturbed {
            run.bus
                .write(0, SELECT_0, 0)
                .expect("another program's write");
            run.clock.advance(Duration::from_secs(1));
            run.registers.tick().expect("a look");
        }
        let mut now = run.sets.snapshot();
        run.sets.read(&mut now).expect("read");
        let mut since = run.sets.snapshot();
        since.set_difference(&now, &last);
        let counted = since
            .counts(0)
            .get(0)
            .expect("one event")
            .total()
            .expect("read all the same");
        said.push((since.disturbance(0).is_some(), counted.value()));
        last = now;
    }
    assert_eq!(said, [(false, Some(100)), (true, None), (false, Some(100))]);
}

#[test]
fn counters_taken_from_others_are_named_and_given_back() {
    let bus = SimulatedMsrs::new(GENERATION, 1);
    bus.write(0, SELECT_0, 0x53_00c0)
        .expect("another program's counter");
    bus.write(0, GLOBAL_CONTROL, 1)
        .expect("another program's counter");
    let before = bus.dump(0);
    let taking = msr::Options::default().taking_enabled();
    let run = Measurement::of("A", bus.clone(), taking);
    run.pass(100);
    let (rows, notes) = run.end();
    assert_eq!(rows[0].count, Count::Exact(100));
    assert_eq!(notes[0].about, "taken");
    assert_eq!(notes[0].events, ["counter 0 of CPU 0"]);
    assert!(
        notes[0].text.contains("another program"),
        "{}",
        notes[0].text
    );
    assert_eq!(bus.dump(0), before);
}

/// Returns why nothing is counted with these registers; the command was not run then.
fn refusal(bus: SimulatedMsrs, taking: msr::Options) -> String {
    let backends = Backends::on_registers(registers(bus, ManualClock::new(), taking));
    let plan = Plan::new(&options(["-e", "A,B"])).expect("a plan");
    match Sets::open(&plan, &backends, None) {
        Ok(_) => panic!("something is counted"),
        Err(failure) => failure.to_string(),
    }
}

#[test]
fn nothing_is_run_when_others_use_all_counters_that_can_count_an_event() {
    let bus = SimulatedMsrs::new(GENERATION, 1);
    for select in SELECT_0..SELECT_0 + 8 {
        bus.write(0, select, 0x43_00c0).expect("another program's");
    }
    let refusal = refusal(bus, msr::Options::default());
    let all = "every counter that can count it is enabled already, probably by another program";
    assert!(refusal.contains(all), "{refusal}");
}

#[test]
fn nothing_is_run_when_the_counters_stand_still() {
    let bus = SimulatedMsrs::new(GENERATION, 1);
    bus.set_defect(Defect::Standstill);
    let refusal = refusal(bus, msr::Options::default());
    assert!(refusal.contains("stands still"), "{refusal}");
}

#[test]
fn nothing_is_run_when_the_journal_cannot_be_kept() {
    let directory = tempfile::tempdir().expect("a directory");
    let nowhere = directory.path().join("absent/journal");
    let bus = SimulatedMsrs::new(GENERATION, 1);
    let refusal = refusal(bus, msr::Options::default().with_journal(nowhere));
    assert!(
        refusal.contains("the journal of registers cannot be kept"),
        "{refusal}"
    );
}

/// The directory on a read-only file system that a process of its own has, when this is one.
const READ_ONLY: &str = "QUIPU_TEST_READ_ONLY";

/// The file system is one in a mount namespace, where this program is started once more.
#[test]
fn nothing_is_run_when_the_journal_s_file_system_is_read_only() {
    let test = "nothing_is_run_when_the_journal_s_file_system_is_read_only";
    if let Some(directory) = std::env::var_os(READ_ONLY) {
        let journal = Path::new(&directory).join("journal");
        let bus = SimulatedMsrs::new(GENERATION, 1);
        let refusal = refusal(bus, msr::Options::default().with_journal(journal));
        assert!(refusal.contains("Read-only file system"), "{refusal}");
        return;
    }
    const UNMOUNTED: i32 = 77;
    let script = r#"mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" || exit 77; exec "$@""#;
    let directory = tempfile::tempdir().expect("a directory");
    let ended = Command::new("unshare")
        .args(["--map-root-user", "--mount", "sh", "-c", script])
        .arg(directory.path())
        .arg(std::env::current_exe().expect("this program"))
        .args(["--exact", &format!("stat_on_registers::{test}")])
        .env(READ_ONLY, directory.path())
        .output();
    let printed = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    match ended {
        Ok(ended) if ended.status.success() => {
            let said = printed(&ended.stdout);
            assert!(said.contains("1 passed"), "{said}");
        }
        Ok(ended)
            if ended.status.code() == Some(UNMOUNTED) || !printed(&ended.stdout).contains(test) =>
        {
            let why = printed(&ended.stderr);
            eprintln!("SKIP {test}: no file system can be mounted: {}", why.trim());
        }
        Ok(ended) => panic!("{}{}", printed(&ended.stdout), printed(&ended.stderr)),
        Err(error) => eprintln!("SKIP {test}: unshare(1) cannot be run: {error}"),
    }
}

#[test]
fn a_counter_that_another_program_zeroes_is_disturbed() {
    let mut run = measure("A,B");
    run.pass(100);
    run.rows();
    run.pass(50);
    run.bus
        .write(0, COUNTER_0, 0)
        .expect("another program's write");
    let (rows, notes) = run.end();
    assert_eq!(rows[0].count, Count::Estimated(200));
    assert_eq!((rows[0].enabled, rows[0].running), (2_000_000, 1_000_000));
    assert_eq!(rows[1].count, Count::Exact(150));
    assert_eq!(notes[0].about, "disturbed");
    assert!(
        notes[0].text.contains("its value went back"),
        "{}",
        notes[0].text
    );
}

#[test]
fn the_exit_status_is_the_commands_whatever_others_do_to_the_registers() {
    let directory = tempfile::tempdir().expect("a directory");
    let done = directory.path().join("done");
    let bus = SimulatedMsrs::new(GENERATION, 1);
    let script = format!(
        "while [ ! -e {} ]; do sleep 0.01; done; exit 7",
        done.display()
    );
    let report = directory.path().join("report").display().to_string();
    let options = options(["-e", "A,B", "-o", &report, "--", "sh", "-c", &script]);
    let other = {
        let bus = bus.clone();
        std::thread::spawn(move || {
            await_counting(|address| bus.read(0, address).expect("a register"));
            bus.write(0, SELECT_0, 0).expect("written");
            File::create(done).expect("a file");
        })
    };
    let plan = Plan::new(&options).expect("a plan");
    let counting = registers(bus, MonotonicClock::new(), msr::Options::default());
    let output = Output::open(&options).expect("a report");
    let backends = Backends::on_registers(counting);
    let session = Session::new(&plan, &backends, output).expect("a session");
    let status = session.run().expect("no failure of its own");
    assert_eq!(
        format!("{status:?}"),
        format!("{:?}", std::process::ExitCode::from(7))
    );
    other.join().expect("written");
    let report = std::fs::read_to_string(directory.path().join("report")).expect("a report");
    assert!(
        report.contains("its registers were changed, probably by"),
        "{report}"
    );
}

/// Waits until event A has been started.
fn await_counting(read: impl Fn(u32) -> u64) {
    const LONG: Duration = Duration::from_secs(60);
    let start = Instant::now();
    while read(SELECT_0) & 0xff != 0x10 || read(GLOBAL_CONTROL) & 1 == 0 {
        assert!(start.elapsed() < LONG, "nothing counts");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The contents of registers in a file, which outlives a process.
struct Kept(File);

impl Kept {
    fn in_directory(directory: &Path) -> Self {
        let mut options = File::options();
        let options = options.read(true).write(true).create(true).truncate(false);
        let file = options.open(directory.join("registers")).expect("a file");
        file.set_len(0x1000 * 8).expect("room");
        Self(file)
    }

    fn read(&self, address: u32) -> u64 {
        let mut bytes = [0; 8];
        let at = u64::from(address) * 8;
        self.0.read_exact_at(&mut bytes, at).expect("a register");
        u64::from_le_bytes(bytes)
    }

    fn write(&self, address: u32, value: u64) {
        let (bytes, at) = (value.to_le_bytes(), u64::from(address) * 8);
        self.0.write_all_at(&bytes, at).expect("a register");
    }
}

/// Registers that count, and a file of what was written to them.
struct Mirrored {
    counting: SimulatedMsrs,
    kept: Kept,
}

impl Mirrored {
    /// Registers that hold what the file of a directory says.
    fn of(directory: &Path) -> Self {
        let kept = Kept::in_directory(directory);
        let counting = SimulatedMsrs::new(GENERATION, 1);
        for (address, fresh) in counting.dump(0) {
            let held = kept.read(address);
            if held != 0 && held != fresh {
                counting.write(0, address, held).expect("a register");
            }
        }
        Self { counting, kept }
    }
}

impl MsrBus for Mirrored {
    fn cpus(&self) -> &[u32] {
        self.counting.cpus()
    }

    fn current_cpu(&self) -> Result<u32> {
        self.counting.current_cpu()
    }

    fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        self.counting.read(cpu, address)
    }

    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        self.counting.write(cpu, address, value)?;
        // A register can have two addresses.
        for (address, held) in self.counting.dump(cpu) {
            self.kept.write(address, held);
        }
        Ok(())
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
        self.counting.cpuid(leaf, subleaf)
    }

    fn exercise(&self, cpu: u32) -> Result<()> {
        self.counting.exercise(cpu)
    }
}

/// The directory that a process of its own counts in, when this is one.
const DIRECTORY: &str = "QUIPU_TEST_REGISTERS";

/// Counts until a signal: the processes that the next tests start do this.
#[test]
#[ignore = "started by other tests"]
fn count_until_a_signal() {
    let Some(directory) = std::env::var_os(DIRECTORY).map(PathBuf::from) else {
        return;
    };
    let report = directory.join("report").display().to_string();
    let options = options(["-e", "A,B", "-o", &report]);
    let plan = Plan::new(&options).expect("a plan");
    let taking = msr::Options::default().with_journal(directory.join("journal"));
    let counting = registers(Mirrored::of(&directory), MonotonicClock::new(), taking);
    let output = Output::open(&options).expect("a report");
    let backends = Backends::on_registers(counting);
    let session = Session::new(&plan, &backends, output).expect("a session");
    session.run().expect("no failure of its own");
}

/// Registers with something in them, and a process that counts on them.
fn start(directory: &Path) -> (Kept, Child) {
    let kept = Kept::in_directory(directory);
    for (address, left) in [(SELECT_1, 0x3_0005), (COUNTER_1, 0x1234)] {
        kept.write(address, left);
    }
    let child = Command::new(std::env::current_exe().expect("this program"))
        .args([
            "--ignored",
            "--exact",
            "stat_on_registers::count_until_a_signal",
        ])
        .env(DIRECTORY, directory)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started");
    await_counting(|address| kept.read(address));
    (kept, child)
}

fn held(kept: &Kept) -> [u64; 4] {
    [SELECT_0, SELECT_1, COUNTER_1, GLOBAL_CONTROL].map(|address| kept.read(address))
}

fn end(mut child: Child, signal: Signal) -> std::process::ExitStatus {
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("a signal");
    child.wait().expect("its end")
}

const LEFT: [u64; 4] = [0, 0x3_0005, 0x1234, 0];

#[test]
fn signals_that_end_a_measurement_leave_the_registers_as_they_were() {
    for signal in [
        Signal::SIGINT,
        Signal::SIGTERM,
        Signal::SIGHUP,
        Signal::SIGQUIT,
    ] {
        if signal == Signal::SIGHUP && is_ignored(signal as i32) {
            eprintln!("SKIP signals_that_end_a_measurement: SIGHUP is ignored here");
            continue;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let (kept, child) = start(directory.path());
        assert_ne!(held(&kept), LEFT);
        assert!(end(child, signal).success(), "{signal:?}");
        assert_eq!(held(&kept), LEFT, "{signal:?}");
        let report = std::fs::read_to_string(directory.path().join("report"));
        assert!(
            report.is_ok_and(|report| report.contains("A")),
            "{signal:?}"
        );
        let journal = std::fs::read(directory.path().join("journal/cpu0")).expect("a journal");
        assert!(journal.is_empty(), "{signal:?}");
    }
}

#[test]
fn after_a_kill_the_journal_puts_the_registers_back() {
    let directory = tempfile::tempdir().expect("a directory");
    let (kept, child) = start(directory.path());
    assert!(!end(child, Signal::SIGKILL).success());
    assert_ne!(held(&kept), LEFT, "a killed process cannot restore them");
    let journal = directory.path().join("journal");
    let bus = Mirrored::of(directory.path());
    let repairs = msr::restore_on(bus, &GENERATION.model(), &journal).expect("restored");
    assert!(
        matches!(repairs[..], [Repair::Restored { cpu: 0, .. }]),
        "{repairs:?}"
    );
    assert_eq!(held(&kept), LEFT);
}
