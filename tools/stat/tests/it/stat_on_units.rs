//! The command on units outside of the cores: instances are added up or have lines of their own, and values with a
//! unit are reported in it.

use quipu_hal::{EventInfo, GroupSpec, Part, Reading, Result};
use quipu_scripted::{Scripted, ScriptedGroup};
use quipu_stat::Options;

use crate::session::{measured, options};

const SECOND: u64 = 1_000_000_000;

/// Opens an event of two sockets with an energy counter each, or of three memory controllers.
fn units(spec: &GroupSpec) -> Result<ScriptedGroup> {
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
    let group = ScriptedGroup::of_members(vec![info]).in_parts(parts.iter().map(part).collect());
    Ok(group.reading(move |out| {
        for (at, (.., value)) in parts.iter().enumerate() {
            out[at][0] = Reading::new(*value, SECOND, SECOND);
        }
        Ok(())
    }))
}

/// Returns the report of counting an event on all CPUs.
fn report(event: &str, change: impl FnOnce(&mut Options)) -> String {
    let mut options = options(&["true"]);
    options.event = vec![event.into()];
    change(&mut options);
    let backend = Scripted::new("units", |spec, _| units(spec)).counting_cpus();
    let (report, _) = measured(backend, options, |_| {}).expect("no failure of its own");
    report
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
