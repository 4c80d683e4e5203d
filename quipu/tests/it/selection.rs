//! Event files that choose the backends of a CPU, on three simulated machines: the registers of a P6, its pctr(4), and a
//! backend of the program's own.

use std::io::Write as _;
use std::sync::Arc;

use quipu::msr::sim::{Generation, SimulatedMsrs};
use quipu::msr::{MsrPmu, Options};
#[cfg(all(target_os = "linux", feature = "sampling"))]
use quipu::{Event, EventSpec};
use quipu::{EventSet, Machine, NativeEvents, Target};
use quipu_events::{Database, Interface};
use quipu_hal::{Backend, Capabilities, ErrorKind, EventMap, Group, GroupSpec};
use quipu_pctr::simulation::{Era, Processor, SimMachine};
use quipu_pmu::{ManualClock, Rate, Script, SimEvent, SimModel, SimPmu, VirtualPmu};

const CPU: &str = "acme-one";
const EVENT: &str = "INST_RETIRED";

/// An event file in which each system has these backends for the CPU.
fn file(backends: &str) -> tempfile::NamedTempFile {
    let systems = ["linux", "openbsd", "freebsd", "dragonfly", "netbsd"];
    let systems = systems.map(|system| format!("{system} = [{backends}]"));
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    writeln!(
        file,
        "[[cpu]]\nid = \"{CPU}\"\nname = \"Acme One\"\nbase = \"intel-p6\"\nbackends = {{ {} }}",
        systems.join(", ")
    )
    .expect("written");
    file
}

fn registers() -> Arc<dyn Backend> {
    let bus = SimulatedMsrs::new(Generation::P6, 1);
    let table = Database::embedded().cpu("intel-p6").expect("a CPU");
    let map = Arc::new(table.events_for(Interface::Msr));
    let pmu = MsrPmu::new(bus, map.cpu(), Options::default()).expect("a PMU");
    Arc::new(VirtualPmu::new(pmu, ManualClock::new(), map).expect("a backend"))
}

fn pctr() -> Arc<dyn Backend> {
    let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
    let table = Database::embedded().cpu("intel-p6").expect("a CPU");
    let map: Arc<dyn EventMap> = Arc::new(table.events_for(Interface::Pctr));
    Arc::new(
        quipu_pctr::with_device(machine.open(), Some(map), machine.clock()).expect("a backend"),
    )
}

/// A backend that Quipu does not have, by the name of `sim`.
fn own() -> Arc<dyn Backend> {
    let model = SimModel {
        events: vec![SimEvent::new(1, EVENT, Script::steady(Rate::new(1, 0)))],
        ..SimModel::default()
    };
    let clock = ManualClock::new();
    let pmu = SimPmu::with_model(model, clock.clone());
    let map = Arc::new(pmu.event_map());
    Arc::new(VirtualPmu::new(pmu, clock, map).expect("a backend"))
}

/// This machine with the three backends, and an event file that lists some.
fn machine(backends: &str) -> Machine {
    let file = file(backends);
    let native = NativeEvents::new().for_cpu(CPU).with_file(file.path());
    native.tables().expect("the file is right");
    Machine::with_native_events(Arc::new(native))
        .with_backend(registers())
        .with_backend(pctr())
        .with_backend(own())
}

/// The backend that counts an event of the CPU, or why none does.
fn counts(machine: Machine, event: &str) -> Result<&'static str, quipu::Error> {
    let set = EventSet::builder()
        .machine(Arc::new(machine))
        .events(event)?
        .target(Target::CurrentCpu)
        .open()?;
    let event = &set.events()[0];
    match (event.backend(), event.error()) {
        (Some(backend), None) => Ok(backend),
        (_, error) => Err(error.expect("it was refused").clone()),
    }
}

#[test]
fn the_order_of_a_file_decides_which_backend_counts() {
    for (listed, counted) in [
        (r#""pctr", "sim", "msr""#, "pctr"),
        (r#""sim", "pctr""#, "sim"),
        (r#""msr", "sim", "pctr""#, "msr"),
    ] {
        let machine = machine(listed).allow_registers();
        let selection = machine.selection();
        let first = &selection.backends()[0];
        assert_eq!((first.backend.as_str(), first.chosen), (counted, true));
        assert_eq!(
            counts(machine, EVENT).expect("counted"),
            counted,
            "{listed}"
        );
    }
}

#[test]
fn registers_are_written_after_consent_only() {
    let listed = r#""msr", "sim""#;
    assert_eq!(counts(machine(listed), EVENT).expect("counted"), "sim");
    let refused = counts(machine(r#""msr""#), EVENT).expect_err("no consent");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
    assert!(
        refused
            .reason()
            .is_some_and(|r| r.ends_with("after consent alone")),
        "{refused:#}"
    );
    let consents = machine(r#""msr""#).allow_registers();
    assert_eq!(counts(consents, EVENT).expect("counted"), "msr");
    let by_name = machine(listed).named("msr").expect("it can be named");
    assert_eq!(by_name.name(), "msr");
}

#[test]
fn a_backend_that_is_not_listed_counts_other_events_only() {
    let selection = machine(r#""msr""#);
    assert!(
        counts(selection, EVENT).is_err(),
        "pctr and sim are not listed"
    );
    // No event of this CPU's table: the program's own backend has it all the same.
    let model = SimModel {
        events: vec![SimEvent::new(
            1,
            "ACME_TICKS",
            Script::steady(Rate::new(1, 0)),
        )],
        ..SimModel::default()
    };
    let clock = ManualClock::new();
    let pmu = SimPmu::with_model(model, clock.clone());
    let map = Arc::new(pmu.event_map());
    let ticks = VirtualPmu::new(pmu, clock, map).expect("a backend");
    let machine = machine(r#""msr""#).with_backend(Arc::new(ticks));
    assert_eq!(counts(machine, "ACME_TICKS").expect("counted"), "sim");
}

#[test]
fn a_listed_backend_that_this_program_lacks_is_named_with_the_reason() {
    let lacks = machine(r#""zenith""#);
    let selection = lacks.selection();
    let zenith = &selection.backends()[0];
    assert_eq!((zenith.backend.as_str(), zenith.chosen), ("zenith", false));
    assert!(
        zenith
            .reasons
            .iter()
            .any(|r| r == "this program has no backend of that name")
    );
    let refused = counts(lacks, EVENT).expect_err("there is no such backend");
    let reason = refused.reason().unwrap_or_default();
    assert!(
        reason.contains("zenith: this program has no backend of that name"),
        "{reason}"
    );
}

#[test]
fn consent_is_a_key_of_files_that_root_alone_writes() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

    let mut file = file(r#""msr""#);
    let text = std::fs::read_to_string(file.path()).expect("text");
    file.as_file_mut().set_len(0).expect("emptied");
    std::fs::write(file.path(), format!("allow = [\"msr\"]\n{text}")).expect("written");
    let native = || NativeEvents::new().for_cpu(CPU).with_file(file.path());
    let set_mode = |mode| {
        let mode = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(file.path(), mode).expect("it is ours");
    };
    set_mode(0o666);
    let refused = native()
        .tables()
        .map(drop)
        .expect_err("anybody may have written it");
    assert!(
        refused
            .reason()
            .is_some_and(|r| r.starts_with("it allows msr")),
        "{refused:#}"
    );
    set_mode(0o644);
    let owner = file.as_file().metadata().expect("it is there").uid();
    if owner != 0 {
        assert!(native().tables().is_err());
        return;
    }
    let machine = Machine::with_native_events(Arc::new(native())).with_backend(registers());
    assert!(machine.consents());
    assert_eq!(counts(machine, EVENT).expect("counted"), "msr");
}

/// Generalized events and bits are the CPU's, so that a backend which is not listed does not count them.
#[test]
fn generalized_events_and_bits_are_left_to_the_backends_listed() {
    for (listed, counted) in [(r#""pctr""#, Ok("pctr")), (r#""sim""#, Err(()))] {
        for event in ["instructions", "rc0"] {
            let outcome = counts(machine(listed), event).map_err(drop);
            assert_eq!(outcome, counted, "{event} with {listed}");
        }
    }
}

/// A backend that is used for events of the CPU and for others is asked once, and so is one that needs consent.
#[test]
fn a_register_that_was_not_put_back_is_reported_once() {
    struct Lost(Arc<dyn Backend>);

    impl Backend for Lost {
        fn name(&self) -> &'static str {
            self.0.name()
        }

        fn capabilities(&self) -> &Capabilities {
            self.0.capabilities()
        }

        fn open(&self, spec: &GroupSpec, target: &Target) -> quipu::Result<Box<dyn Group>> {
            self.0.open(spec, target)
        }

        fn restore_failures(&self) -> Vec<quipu::Error> {
            vec![quipu::Error::new(ErrorKind::Os, "put back a register")]
        }
    }

    let machine = machine(r#""sim""#).with_backend(Arc::new(Lost(own())));
    assert_eq!(
        machine.restore_failures().len(),
        1,
        "before anything is counted"
    );
    assert_eq!(machine.for_counters().expect("it is listed").len(), 1);
    assert_eq!(machine.restore_failures().len(), 1, "and afterwards");
    let by_consent = self::machine(r#""msr""#).with_backend(Arc::new(Lost(registers())));
    let by_consent = by_consent.allow_registers();
    assert!(
        by_consent.restore_failures().is_empty(),
        "it is not used yet"
    );
    assert_eq!(by_consent.for_counters().expect("it is listed").len(), 1);
    assert_eq!(by_consent.restore_failures().len(), 1);
}

/// Samples are Linux's alone: events of the CPU's counters want it among those listed, other events do not.
#[cfg(all(target_os = "linux", feature = "sampling"))]
#[test]
fn events_are_sampled_if_the_backend_that_samples_is_listed() {
    let sampled = |listed, event: &str| {
        let machine = machine(listed);
        machine.check_sampling(&EventSpec::new(Event::Named(event.to_owned())))
    };
    let refused = sampled(r#""sim", "pctr""#, EVENT).expect_err("neither samples");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
    let reason = refused.reason().unwrap_or_default();
    assert!(reason.contains("lists sim, pctr for this CPU"), "{reason}");
    sampled(r#""sim", "pctr""#, "no-such-event").expect("it is not the CPU's");
    match quipu::linux_backend() {
        Ok(_) => sampled(r#""sim", "linux""#, EVENT).expect("Linux is listed"),
        Err(refused) => assert!(refused.hint().is_some(), "perf_event_open is not permitted"),
    }
}
