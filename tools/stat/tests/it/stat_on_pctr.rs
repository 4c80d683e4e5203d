//! The command over a simulated pctr(4) device with several CPUs.

use std::fs::File;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};
use quipu_shell::target::TargetOptions;
use quipu_stat::simulated::SimulatedMachine;
use quipu_stat::simulated::pctr::{Simulated, SimulatedPctr};
use quipu_stat::{Backends, Options, Output, Plan, Session};

/// Waits until a counter is set to count instructions, and returns which; `None` after a long time.
fn await_counting(machine: &SimMachine) -> Option<usize> {
    const LONG: Duration = Duration::from_secs(60);
    let start = Instant::now();
    while start.elapsed() < LONG {
        let mut functions = machine.functions(0).into_iter();
        if let Some(counter) = functions.position(|word| word & 0xff == 0xc0) {
            return Some(counter);
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    None
}

/// Runs a command over a machine of two CPUs, where every counter is found set, and returns its status and report.
fn count(machine: &SimMachine, command: &str) -> (ExitCode, String, Vec<String>) {
    let directory = tempfile::tempdir().expect("a directory");
    let options = Options {
        event: vec!["instructions,page-faults".into()],
        target: TargetOptions {
            command: ["sh", "-c", command].map(Into::into).into(),
            ..TargetOptions::default()
        },
        output: Some(directory.path().join("report")),
        ..Options::default()
    };
    let simulated = format!("{}:core", machine.era().name());
    let simulated: Simulated = simulated.parse().expect("one");
    let device = SimulatedPctr::on(machine.clone(), simulated).expect("a device");
    let mut plan = Plan::new(&options).expect("a plan");
    plan.simulated = Some(SimulatedMachine::Pctr(device));
    let backends = Backends::of(&plan).expect("its backends");
    let output = Output::open(&options).expect("a report");
    let session = Session::new(&plan, &backends, output).expect("a session");
    let status = session.run().expect("no failure of its own");
    let report = std::fs::read_to_string(directory.path().join("report")).expect("a report");
    (status, report, backends.restore_warnings(&plan))
}

fn line<'r>(report: &'r str, event: &str) -> &'r str {
    let mut lines = report.lines();
    lines.find(|l| l.contains(event)).expect("a line")
}

const FOUND: u32 = 0x0041_0079;

/// Since 2019 every CPU is counted: wherever the command and quipu itself are moved, nothing is missed.
#[test]
fn a_command_is_counted_on_every_cpu() {
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 2);
    let directory = tempfile::tempdir().expect("a directory");
    let done = directory.path().join("done");
    let command = format!(
        "while [ ! -e {} ]; do sleep 0.01; done; exit 7",
        done.display()
    );
    let mover = {
        let machine = machine.clone();
        std::thread::spawn(move || {
            let counter = await_counting(&machine);
            machine.occur_on(0, 0xc0, 0, Level::User, 100);
            machine.move_to(1);
            File::create(done).expect("a file");
            counter
        })
    };
    let (status, report, left) = count(&machine, &command);
    let counter = mover.join().expect("moved").expect("a counter is set");
    assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::from(7)));
    // 100 on the one CPU, and in the end 1010 on the other.
    assert!(
        line(&report, "instructions").contains(" 1,110 "),
        "{report}"
    );
    assert!(
        report.contains("everything that ran on all CPUs"),
        "{report}"
    );
    assert!(!line(&report, "page-faults").contains("<not"), "{report}");
    assert_eq!((left.len(), machine.functions(0)[counter]), (0, FOUND));
}

/// A CPU that no thread gets to makes the count a partial one.
#[test]
fn a_cpu_that_is_out_of_reach_is_missing_and_told() {
    let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 3);
    let mover = {
        let machine = machine.clone();
        std::thread::spawn(move || {
            let counter = await_counting(&machine);
            machine.keep_off(Some(2));
            counter
        })
    };
    let (_, report, _) = count(&machine, "sleep 0.3");
    mover.join().expect("done").expect("a counter is set");
    assert!(report.contains("1 of 3 parts have no count"), "{report}");
}

/// Before 2019 a set reaches one CPU, and a command may run on any.
#[test]
fn of_several_cpus_one_alone_is_not_counted_for_a_command() {
    let machine = SimMachine::new(Era::Amd64Of2016, Processor::Core, 2);
    let (_, report, left) = count(&machine, "true");
    assert!(
        line(&report, "instructions").contains("<not supported>"),
        "{report}"
    );
    assert!(
        report.contains("only those of the\n    CPU that"),
        "{report}"
    );
    assert!(!line(&report, "page-faults").contains("<not"), "{report}");
    assert!(left.is_empty() && machine.log().is_empty());
}
