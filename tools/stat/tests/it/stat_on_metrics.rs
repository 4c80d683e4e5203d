//! Metrics of the CPU over a scripted PMU, with exact counts: their values, thresholds, and what is said when a part of
//! them is missing.

use quipu_events::{CpuTable, Database};
use quipu_hal::{Error, ErrorKind, GroupSpec, Part, Reading, Result};
use quipu_scripted::{Scripted, ScriptedGroup};
use quipu_stat::Options;
use quipu_stat::derived::{self, Derived};

use crate::session;

const SECOND: u64 = 1_000_000_000;

/// Counts of Zen 4: 1000 cycles of six slots.
const COUNTS: [(&str, u64); 6] = [
    ("ls_not_halted_cyc", 1000),
    ("de_no_dispatch_per_slot.no_ops_from_frontend", 1200),
    ("de_no_dispatch_per_slot.backend_stalls", 1500),
    ("de_no_dispatch_per_slot.smt_contention", 0),
    ("de_src_op_disp.all", 3300),
    ("ex_ret_ops", 3000),
];

/// A PMU with these counts, and room for so many counters in a group.
struct Script {
    counts: Vec<(&'static str, u64)>,
    counters: usize,
    /// The share of the time that each counter runs, in percent.
    running: u64,
}

impl Script {
    fn open(&self, spec: &GroupSpec) -> Result<ScriptedGroup> {
        if spec.members.len() > self.counters {
            return Err(Error::new(ErrorKind::TooManyEvents, "open a group"));
        }
        let running = SECOND / 100 * self.running;
        let mut readings = Vec::new();
        for (at, member) in spec.members.iter().enumerate() {
            let name = member.event.to_string();
            let Some((_, count)) = self.counts.iter().find(|(known, _)| *known == name) else {
                let error = Error::new(ErrorKind::UnsupportedEvent, format!("count {name}"));
                return Err(error.with_reason("it is not in the script").with_member(at));
            };
            readings.push(Reading::new(count * self.running / 100, SECOND, running));
        }
        let group = ScriptedGroup::of(spec).in_parts(vec![Part::on_cpu(cpu_of(spec))]);
        Ok(group.reading(move |out| {
            out[0].copy_from_slice(&readings);
            Ok(())
        }))
    }
}

/// Returns the CPU that a group is counted on: those of `cpu_atom` have a number of their own.
fn cpu_of(spec: &GroupSpec) -> u32 {
    let names = spec.members.iter().map(|member| member.event.to_string());
    let on_atom: Vec<bool> = names.map(|name| name.starts_with("cpu_atom/")).collect();
    assert!(on_atom.windows(2).all(|pair| pair[0] == pair[1]), "{spec}");
    4 * u32::from(on_atom[0])
}

/// Returns the report of measuring these metrics of Zen 4.
fn report(group: &str, script: Script, change: impl FnOnce(&mut Options)) -> String {
    let zen4 = Database::embedded().cpu("amd-zen4").expect("it is there");
    let metrics = derived::of_cpus(&[group.to_owned()], &[zen4], false).expect("metrics");
    report_of(metrics, script, change)
}

/// Returns the report of measuring these metrics.
fn report_of(metrics: Vec<Derived>, script: Script, change: impl FnOnce(&mut Options)) -> String {
    measured(metrics, script, change).expect("no failure of its own")
}

/// Returns the report of measuring these metrics, or why that failed.
fn measured(
    metrics: Vec<Derived>,
    script: Script,
    change: impl FnOnce(&mut Options),
) -> std::result::Result<String, String> {
    let mut options = session::options(&["true"]);
    options.null = true;
    change(&mut options);
    let backend = Scripted::new("script", move |spec, _| script.open(spec)).counting_cpus();
    let (report, _) = session::measured(backend, options, |plan| {
        plan.metrics = metrics;
        plan.requests = plan.metrics.iter().map(Derived::request).collect();
    })?;
    Ok(report)
}

fn script() -> Script {
    Script {
        counts: COUNTS.to_vec(),
        counters: 6,
        running: 100,
    }
}

/// Returns the value and the name of each metric, from comma-separated values.
fn values(report: &str) -> Vec<(String, String)> {
    let rows = report
        .lines()
        .filter(|line| !line.starts_with('#') && !line.is_empty());
    let row = |line: &str| -> Option<(String, String)> {
        let fields: Vec<&str> = line.split(',').collect();
        Some((fields.get(2)?.to_string(), fields.first()?.to_string()))
    };
    rows.filter_map(row).collect()
}

/// As where a hypervisor counts cycles alone.
#[test]
fn nothing_is_made_of_events_that_do_not_count() {
    let filtered = |cycles| {
        let mut script = script();
        for (name, count) in &mut script.counts {
            let is_counted = name.starts_with("ls_not_halted");
            *count = if is_counted { cycles } else { 0 };
        }
        report("TopdownL1", script, |_| ())
    };
    let text = filtered(400_000_000);
    assert_eq!(text.matches("<not counted>").count(), 5, "{text}");
    let words: Vec<&str> = text.split_whitespace().collect();
    let reason = "does not count here, as where a hypervisor filters events";
    assert!(words.join(" ").contains(reason), "{text}");
    // So few cycles may have retired nothing.
    assert!(!filtered(1000).contains("<not counted>"));
}

#[test]
fn level_1_is_exactly_what_was_counted() {
    let csv = report("TopdownL1", script(), |options| options.form.csv = true);
    let expected = [
        ("backend_bound", "25.00"),
        ("bad_speculation", "5.00"),
        ("frontend_bound", "20.00"),
        ("retiring", "50.00"),
        ("smt_contention", "0.00"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(values(&csv), expected, "{csv}");
    assert!(csv.contains(",25.000,%  backend_bound\n"), "{csv}");
    let json = report("retiring", script(), |options| options.form.json = true);
    let line: serde_json::Value = serde_json::from_str(json.lines().next().unwrap()).unwrap();
    assert_eq!(line["metric-value"], 50.0, "{json}");
    assert_eq!(line["metric-unit"], "%  retiring");
    assert_eq!(line["metricgroup"], "TopdownL1;PipelineL1");
}

#[test]
fn every_form_of_report_has_values_and_thresholds() {
    let forms: [fn(&mut Options); 4] = [
        |_| {},
        |options| options.form.csv = true,
        |options| options.form.json = true,
        |options| options.form.metric_only = true,
    ];
    let shown = forms.map(|form| report("TopdownL1", script(), form));
    insta::with_settings!({filters => vec![
        (r"# started on .*", "# started on [time]"),
        (r" +[0-9]+\.[0-9]+ seconds", " [time] seconds"),
    ]}, { insta::assert_snapshot!(shown.join("\n----\n")) });
}

#[test]
fn counters_that_take_turns_make_an_estimate() {
    let shared = Script {
        running: 50,
        ..script()
    };
    let text = report("retiring", shared, |_| {});
    assert!(text.contains("~50.00 %    retiring"), "{text}");
    assert!(text.contains("(50.00%)"), "{text}");
}

#[test]
fn a_metric_without_one_of_its_events_is_refused_with_the_reason() {
    let mut without = script();
    without.counts.retain(|(name, _)| *name != "ex_ret_ops");
    let zen4 = Database::embedded().cpu("amd-zen4").expect("it is there");
    let metrics = derived::of_cpus(&["retiring".to_owned()], &[zen4], false).expect("metrics");
    let refused = measured(metrics, without, |_| {}).unwrap_err();
    assert!(
        refused.contains("its term ex_ret_ops: it is not in the script"),
        "{refused}"
    );
}

#[test]
fn a_value_beyond_its_threshold_is_marked() {
    let counts = [
        ("CPU_CLK_UNHALTED.THREAD", 1000),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", 1200),
        ("UOPS_RETIRED.RETIRE_SLOTS", 2000),
    ];
    let skylake = Database::embedded().cpu("intel-skx").expect("it is there");
    let wanted = ["tma_frontend_bound", "tma_retiring"].map(str::to_owned);
    let chosen = derived::of_cpus(&wanted, &[skylake], false).expect("metrics");
    let of = |change: fn(&mut Options)| {
        let script = Script {
            counts: counts.to_vec(),
            ..script()
        };
        report_of(chosen.clone(), script, change)
    };
    let text = of(|_| {});
    let line = |name: &str| {
        text.lines()
            .find(|line| line.contains(name))
            .unwrap()
            .to_owned()
    };
    assert!(
        line("tma_frontend_bound").ends_with("# over the threshold"),
        "{text}"
    );
    assert!(!line("tma_retiring").contains('#'), "{text}");
    let json = of(|options| options.form.json = true);
    let mut lines = json
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    assert_eq!(lines.next().unwrap()["metric-threshold"], "bad");
    // It is below 70, and the metric that would say more was not measured.
    assert_eq!(lines.next().unwrap().get("metric-threshold"), None);
}

/// Counts of Alder Lake: slots of 1000 cycles of either kind of core.
const HYBRID: [(&str, u64); 14] = [
    ("cpu_core/slots/", 6000),
    ("cpu_core/topdown-retiring/", 3000),
    ("cpu_core/topdown-bad-spec/", 600),
    ("cpu_core/topdown-fe-bound/", 900),
    ("cpu_core/topdown-be-bound/", 1500),
    ("cpu_core/topdown-heavy-ops/", 300),
    ("cpu_core/topdown-mem-bound/", 1200),
    ("cpu_core/INT_MISC.UOP_DROPPING/", 60),
    ("cpu_atom/CPU_CLK_UNHALTED.CORE/", 1000),
    ("cpu_atom/TOPDOWN_FE_BOUND.ALL/", 1000),
    ("cpu_atom/TOPDOWN_BE_BOUND.ALL/", 1500),
    ("cpu_atom/TOPDOWN_RETIRING.ALL/", 2000),
    ("cpu_atom/TOPDOWN_BE_BOUND.ALLOC_RESTRICTIONS/", 600),
    ("cpu_atom/TOPDOWN_FE_BOUND.FRONTEND_LATENCY/", 250),
];

fn alder_lake() -> [CpuTable; 2] {
    ["intel-adl-core", "intel-adl-atom"]
        .map(|id| Database::embedded().cpu(id).expect("it is there"))
}

#[test]
fn each_core_pmu_of_a_hybrid_cpu_has_its_own_value() {
    let of = |wanted: &[&str], change: fn(&mut Options)| {
        let wanted: Vec<String> = wanted.iter().map(|name| (*name).to_owned()).collect();
        let chosen = derived::of_cpus(&wanted, &alder_lake(), false).expect("metrics");
        let script = Script {
            counts: HYBRID.to_vec(),
            counters: 8,
            ..script()
        };
        report_of(chosen, script, change)
    };
    let csv = of(&["TopdownL1"], |options| options.form.csv = true);
    let expected = [
        ("cpu_core/tma_backend_bound/", "25.00"),
        ("cpu_core/tma_bad_speculation/", "11.00"),
        ("cpu_core/tma_frontend_bound/", "14.00"),
        ("cpu_core/tma_retiring/", "50.00"),
        ("cpu_atom/tma_backend_bound/", "30.00"),
        ("cpu_atom/tma_bad_speculation/", "10.00"),
        ("cpu_atom/tma_frontend_bound/", "20.00"),
        ("cpu_atom/tma_retiring/", "40.00"),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(values(&csv), expected, "{csv}");
    // The threshold of each is over the metrics of its own core.
    let wanted = ["tma_backend_bound", "tma_core_bound", "tma_memory_bound"];
    let json = of(&wanted, |options| options.form.json = true);
    let line = |name: &str| {
        let mut lines = json
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("an object"));
        lines.find(|line| line["event"] == name).expect(name)
    };
    let core = line("cpu_core/tma_core_bound/");
    assert_eq!(
        (&core["metric-value"], &core["metric-threshold"]),
        (&5.0.into(), &"good".into())
    );
    assert_eq!(core["metric-unit"], "%  tma_core_bound");
    assert_eq!(line("cpu_core/tma_memory_bound/")["metric-value"], 20.0);
    let atom = line("cpu_atom/tma_core_bound/");
    assert_eq!(
        (&atom["metric-value"], &atom["metric-threshold"]),
        (&12.0.into(), &"bad".into())
    );
    // A column says which core it is of where both have the metric.
    let columns = of(&["tma_retiring"], |options| options.form.metric_only = true);
    for column in [
        "cpu_core/tma_retiring/",
        "cpu_atom/tma_retiring/",
        "50.0",
        "40.0",
    ] {
        assert!(columns.contains(column), "{columns}");
    }
}

#[test]
fn a_metric_of_a_hybrid_cpu_may_be_one_of_one_core() {
    let chosen = derived::of_cpus(&["tma_resource_bound".to_owned()], &alder_lake(), false);
    let chosen = chosen.expect("a metric");
    let names: Vec<String> = chosen.iter().map(Derived::event_name).collect();
    assert_eq!(names, ["cpu_atom/tma_resource_bound/"]);
    // Cores of one kind need no PMU before their events.
    let [core, _] = alder_lake();
    let alone = derived::of_cpus(&["tma_retiring".to_owned()], &[core], false).expect("a metric");
    assert_eq!(alone[0].event_name(), "tma_retiring");
    assert!(!alone[0].formula.contains('@'), "{}", alone[0].formula);
}

#[test]
fn a_formula_of_an_unknown_revision_is_refused() {
    let n2 = Database::embedded()
        .cpu("arm-neoverse-n2")
        .expect("it is there");
    let of = |name: &str| derived::of_cpus(&[name.to_owned()], std::slice::from_ref(&n2), false);
    // It is the same on all of them.
    assert_eq!(of("backend_bound").expect("a metric").len(), 1);
    let said = of("retiring").unwrap_err().to_string();
    assert!(
        said.starts_with("retiring has another formula on revisions >= r0p3"),
        "{said}"
    );
}

#[test]
fn what_no_cpu_has_is_a_usage_error() {
    let zen4 = Database::embedded().cpu("amd-zen4").expect("it is there");
    let refused = derived::of_cpus(&["nosuch".to_owned()], std::slice::from_ref(&zen4), false);
    let said = refused.unwrap_err().to_string();
    assert!(
        said.starts_with("amd-zen4 has no metric or group of metrics called nosuch"),
        "{said}"
    );
    let refused = derived::of_cpus(&["retirng".to_owned()], &[zen4], false);
    let said = refused.unwrap_err().to_string();
    assert!(said.ends_with("did you mean retiring?"), "{said}");
}
