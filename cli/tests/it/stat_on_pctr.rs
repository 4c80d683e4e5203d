//! The command over a simulated pctr(4) device: a measurement that is moved to another CPU.

use std::fs::File;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use quipu_cli::pctr::simulate::Simulated;
use quipu_cli::stat::simulated::SimulatedPctr;
use quipu_cli::stat::{Backends, Options, Output, Plan, Session};
use quipu_cli::target::TargetOptions;
use quipu_pctr::simulation::{Era, Processor, SimMachine};

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

/// Moved to another CPU before the end, quipu can neither read what it counts nor, where a set
/// reaches one CPU, put back what it found.
#[test]
fn a_measurement_that_was_moved_is_refused_and_what_it_leaves_is_told() {
    const FOUND: u32 = 0x0041_0079;
    for (era, puts_back) in [(Era::Amd64Of2016, false), (Era::Amd64Of2019, true)] {
        let directory = tempfile::tempdir().expect("a directory");
        let done = directory.path().join("done");
        let script = format!(
            "while [ ! -e {} ]; do sleep 0.01; done; exit 7",
            done.display()
        );
        let options = Options {
            event: vec!["instructions,page-faults".into()],
            target: TargetOptions {
                command: ["sh", "-c", &script].map(Into::into).into(),
                ..TargetOptions::default()
            },
            output: Some(directory.path().join("report")),
            ..Options::default()
        };
        let simulated: Simulated = format!("{}:core", era.name()).parse().expect("one");
        let machine = SimMachine::new(era, Processor::Core, 2);
        let device = SimulatedPctr::on(machine.clone(), simulated).expect("a device");
        let mut plan = Plan::new(&options).expect("a plan");
        plan.simulated = Some(device);
        let backends = Backends::of(&plan).expect("its backends");
        let output = Output::open(&options).expect("a report");
        let mover = {
            let machine = machine.clone();
            std::thread::spawn(move || {
                let counter = await_counting(&machine);
                machine.move_to(1);
                File::create(done).expect("a file");
                counter
            })
        };
        let session = Session::new(&plan, &backends, output).expect("a session");
        let status = session.run().expect("no failure of its own");
        assert_eq!(format!("{status:?}"), format!("{:?}", ExitCode::from(7)));
        let counter = mover.join().expect("moved").expect("a counter is set");
        let report = std::fs::read_to_string(directory.path().join("report"));
        let report = report.expect("a report");
        let line = |event| report.lines().find(|l| l.contains(event)).expect("a line");
        assert!(line("instructions").contains("<not counted>"), "{report}");
        assert!(report.contains("migrated to CPU 2"), "{report}");
        assert!(!line("page-faults").contains("<not"), "{report}");
        let left = plan.restore_warnings(&backends);
        let now = machine.functions(0)[counter];
        if puts_back {
            assert_eq!((left.len(), now), (0, FOUND), "{left:?}");
        } else {
            assert!(now != FOUND && left.len() == 1, "{left:?}");
            let told = format!(
                "cannot put back counter {counter} of CPU 0: refused by the operating system: it \
                 was found set to 0x410079"
            );
            assert!(left[0].starts_with(&told), "{left:?}");
        }
    }
}
