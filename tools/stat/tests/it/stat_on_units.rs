//! The command on units outside of the cores: instances are added up or have lines of their own, and values with a
//! unit are reported in it.

use std::sync::Arc;

use quipu_hal::{
    Backend, Capabilities, EventInfo, Features, Group, GroupSpec, Part, ReadBuf, Reading, Result,
    Simultaneity, Target, TargetKinds,
};
use quipu_shell::target::TargetOptions;
use quipu_stat::{Backends, Options, Output, Plan, Session};

const SECOND: u64 = 1_000_000_000;

/// Two sockets with an energy counter each, and three memory controllers; counter values are in `values`.
struct Units {
    capabilities: Capabilities,
}

impl Backend for Units {
    fn name(&self) -> &'static str {
        "units"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
        let name = spec.members[0].event.to_string();
        let mut info = EventInfo::counter(name.clone());
        // CPU, instance and value of each part.
        let parts = if name == "energy-pkg" {
            info.unit = "Joules".into();
            info.scale = 2.0_f64.powi(-32);
            vec![(0, "power", 3 << 31), (8, "power", 1 << 32)]
        } else {
            vec![
                (0, "uncore_imc_10", 4),
                (0, "uncore_imc_2", 20),
                (8, "uncore_imc_2", 300),
            ]
        };
        let part = |(cpu, pmu, _): &(u32, &str, u64)| Part::on_cpu(*cpu).with_pmu(*pmu);
        Ok(Box::new(UnitGroup {
            members: vec![info],
            parts: parts.iter().map(part).collect(),
            values: parts.iter().map(|(.., value)| *value).collect(),
        }))
    }
}

struct UnitGroup {
    members: Vec<EventInfo>,
    parts: Vec<Part>,
    values: Vec<u64>,
}

impl Group for UnitGroup {
    fn members(&self) -> &[EventInfo] {
        &self.members
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Atomic
    }

    fn enable(&mut self) -> Result<()> {
        Ok(())
    }

    fn disable(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        Ok(())
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        for (at, value) in self.values.iter().enumerate() {
            out[at][0] = Reading::new(*value, SECOND, SECOND);
        }
        Ok(())
    }
}

/// Returns the report of counting an event on all CPUs.
fn report(event: &str, change: impl FnOnce(&mut Options)) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report");
    let mut options = Options {
        event: vec![event.into()],
        target: TargetOptions {
            command: ["true"].map(Into::into).into(),
            all_cpus: true,
            ..TargetOptions::default()
        },
        output: Some(file.clone()),
        ..Options::default()
    };
    change(&mut options);
    let mut capabilities = Capabilities::none();
    capabilities.targets = TargetKinds::ALL_CPUS;
    capabilities.features = Features::HARDWARE_EVENTS;
    let backends = Backends::these(vec![Arc::new(Units { capabilities })]);
    let plan = Plan::new(&options).expect("a plan");
    let output = Output::open(&options).expect("a report");
    let session = Session::new(&plan, &backends, output).expect("a session");
    session.run().expect("no failure of its own");
    std::fs::read_to_string(file).expect("a report")
}

/// Returns the places, values, units and names in comma-separated values.
fn columns(event: &str, change: impl FnOnce(&mut Options)) -> Vec<String> {
    let csv = report(event, |options| {
        options.form.csv = true;
        change(options);
    });
    let lines = csv
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    let columns = lines.map(|line| {
        let end = line.find(",1000000000,").or(line.find(",2000000000,"));
        line[..end.or(line.find(",3000000000,")).unwrap_or(line.len())].to_owned()
    });
    columns.collect()
}

#[test]
fn instances_are_added_up_or_have_lines_of_their_own() {
    let event = "UNC_M_CAS_COUNT.RD";
    assert_eq!(columns(event, |_| {}), [format!("324,,{event}")]);
    let apart = columns(event, |options| options.no_merge = true);
    assert_eq!(
        apart,
        [
            format!("320,,{event} [uncore_imc_2]"),
            format!("4,,{event} [uncore_imc_10]"),
        ]
    );
    let cpus = columns(event, |options| options.places.no_aggr = true);
    assert_eq!(
        cpus,
        [format!("CPU0,24,,{event}"), format!("CPU8,300,,{event}")]
    );
    let both = columns(event, |options| {
        (options.places.no_aggr, options.no_merge) = (true, true);
    });
    assert_eq!(
        both,
        [
            format!("CPU0,20,,{event} [uncore_imc_2]"),
            format!("CPU0,4,,{event} [uncore_imc_10]"),
            format!("CPU8,300,,{event} [uncore_imc_2]"),
        ]
    );
}

#[test]
fn energy_is_reported_in_joules_in_every_form() {
    let text = report("energy-pkg", |_| {});
    let line = text.lines().find(|line| line.contains("energy-pkg"));
    let words: Vec<&str> = line.expect("a line").split_whitespace().collect();
    assert_eq!(words[..3], ["2.50", "Joules", "energy-pkg"], "{text}");
    assert_eq!(columns("energy-pkg", |_| {}), ["2.50,Joules,energy-pkg"]);
    let json = report("energy-pkg", |options| options.form.json = true);
    let object: serde_json::Value =
        serde_json::from_str(json.lines().next().unwrap_or_default()).expect("an object");
    assert_eq!(object["counter-value"], "2.500000");
    assert_eq!(object["unit"], "Joules");
}
