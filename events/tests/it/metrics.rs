//! Metrics: their formulas name events that the CPU counts, and give the values that their sources give.

use quipu_events::{Database, Formula, Interface, MetricDetails, Threshold};
use quipu_hal::{Event, EventMap, Filter};

fn metric(cpu: &str, name: &str) -> MetricDetails {
    let metrics = Database::embedded().cpu(cpu).unwrap().metrics();
    let found = metrics.into_iter().find(|metric| metric.name == name);
    found.unwrap_or_else(|| panic!("{cpu} has no {name}"))
}

/// Returns the value of a formula for these counts.
fn value(formula: &str, counts: &[(&str, f64)]) -> f64 {
    let formula = Formula::parse(formula).unwrap();
    let count = |name: &String| {
        let found = counts.iter().find(|(known, _)| known == name);
        found.unwrap_or_else(|| panic!("{name} is not counted")).1
    };
    let counts: Vec<f64> = formula.events().iter().map(count).collect();
    formula.evaluate(&counts).unwrap()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() < 1e-9
}

#[test]
fn every_event_of_a_formula_is_one_that_the_cpu_counts() {
    let database = Database::embedded();
    let mut with_metrics = Vec::new();
    for cpu in database.cpus() {
        let table = database.cpu(&cpu.id).unwrap();
        let metrics = table.metrics();
        for metric in &metrics {
            for text in metric.smt_formula.iter().chain([&metric.formula]) {
                let formula = Formula::parse(text).unwrap();
                for event in formula.terms() {
                    if let Event::Pmu(event) = &event {
                        let name = &event.terms[0].name;
                        assert!(name == "slots" || name.starts_with("topdown-"), "{name}");
                        // The kernel takes them in a group that `slots` leads, and no others.
                        assert_eq!(formula.events()[0], "slots", "{} {}", cpu.id, metric.name);
                        continue;
                    }
                    let events = table.events_for(Interface::Linux);
                    let resolved = events.resolve(&event, Filter::all());
                    assert!(resolved.is_ok(), "{} {}: {resolved:?}", cpu.id, metric.name);
                }
            }
            assert!(!metric.description.is_empty(), "{} {}", cpu.id, metric.name);
        }
        if !metrics.is_empty() {
            with_metrics.push(cpu.id);
        }
    }
    let expected = "amd-zen4 amd-zen5 arm-neoverse-n3 arm-neoverse-v1 arm-neoverse-v2 arm-neoverse-v3 intel-clx \
        intel-emr intel-gnr intel-icl intel-icx intel-rkl intel-skl intel-skx intel-spr intel-tgl";
    with_metrics.sort();
    assert_eq!(with_metrics.join(" "), expected);
}

#[test]
fn skylake_is_as_intels_list_gives_it() {
    // 1000 cycles of four slots: 1200 slots without operations, 2000 retired of 2100 issued, 50 cycles to recover.
    let counts = [
        ("CPU_CLK_UNHALTED.THREAD", 1000.0),
        ("IDQ_UOPS_NOT_DELIVERED.CORE", 1200.0),
        ("UOPS_ISSUED.ANY", 2100.0),
        ("UOPS_RETIRED.RETIRE_SLOTS", 2000.0),
        ("INT_MISC.RECOVERY_CYCLES", 50.0),
    ];
    let share = |name: &str| value(&metric("intel-skx", name).formula, &counts);
    assert!(close(share("tma_frontend_bound"), 30.0));
    assert!(close(share("tma_bad_speculation"), 7.5));
    assert!(close(share("tma_retiring"), 50.0));
    assert!(close(share("tma_backend_bound"), 12.5));
    // Two threads of the core: half of the cycles of either.
    let smt = metric("intel-skx", "tma_retiring").smt_formula.unwrap();
    let counts = [
        ("CPU_CLK_UNHALTED.THREAD_ANY", 4000.0),
        ("UOPS_RETIRED.RETIRE_SLOTS", 2000.0),
    ];
    assert!(close(value(&smt, &counts), 25.0));
}

#[test]
fn sapphire_rapids_counts_by_the_register_of_metrics() {
    let counts = [
        ("slots", 6000.0),
        ("topdown-retiring", 3000.0),
        ("topdown-bad-spec", 600.0),
        ("topdown-fe-bound", 900.0),
        ("topdown-be-bound", 1500.0),
        ("topdown-mem-bound", 1200.0),
        ("topdown-heavy-ops", 300.0),
        ("INT_MISC.UOP_DROPPING", 60.0),
    ];
    let share = |name: &str| value(&metric("intel-spr", name).formula, &counts);
    assert!(close(share("tma_retiring"), 50.0));
    assert!(close(share("tma_frontend_bound"), 14.0));
    assert!(close(share("tma_backend_bound"), 25.0));
    assert!(close(share("tma_bad_speculation"), 11.0));
    assert!(close(share("tma_memory_bound"), 20.0));
    assert!(close(share("tma_core_bound"), 5.0));
    assert!(close(share("tma_light_operations"), 45.0));
}

#[test]
fn levels_add_up_on_zen_and_neoverse() {
    let counts = [
        ("ls_not_halted_cyc", 1000.0),
        ("de_no_dispatch_per_slot.no_ops_from_frontend", 1600.0),
        (
            "de_no_dispatch_per_slot.no_ops_from_frontend:cmask=8",
            100.0,
        ),
        ("de_no_dispatch_per_slot.backend_stalls", 2000.0),
        ("de_no_dispatch_per_slot.smt_contention", 0.0),
        ("de_src_op_disp.all", 4400.0),
        ("ex_ret_ops", 4000.0),
        ("ex_ret_ucode_ops", 400.0),
        ("ex_ret_brn_misp", 30.0),
        ("bp_redirects.resync", 10.0),
        ("ex_no_retire.load_not_complete", 300.0),
        ("ex_no_retire.not_complete", 400.0),
    ];
    let share = |name: &str| value(&metric("amd-zen5", name).formula, &counts);
    let first = [
        "frontend_bound",
        "backend_bound",
        "bad_speculation",
        "smt_contention",
        "retiring",
    ];
    assert_eq!(first.map(share), [20.0, 25.0, 5.0, 0.0, 50.0]);
    for (whole, parts) in [
        (
            "frontend_bound",
            ["frontend_bound_latency", "frontend_bound_bandwidth"],
        ),
        (
            "backend_bound",
            ["backend_bound_memory", "backend_bound_cpu"],
        ),
        (
            "bad_speculation",
            [
                "bad_speculation_mispredicts",
                "bad_speculation_pipeline_restarts",
            ],
        ),
        ("retiring", ["retiring_fastpath", "retiring_microcode"]),
    ] {
        assert!(
            close(parts.map(share).iter().sum(), share(whole)),
            "{whole}"
        );
    }
    assert!(close(share("frontend_bound_latency"), 10.0));
    assert!(close(share("backend_bound_memory"), 18.75));
    assert!(close(share("bad_speculation_mispredicts"), 3.75));

    let counts = [
        ("CPU_CYCLES", 1000.0),
        ("STALL_SLOT", 4000.0),
        ("STALL_SLOT_FRONTEND", 1600.0),
        ("STALL_SLOT_BACKEND", 2400.0),
        ("OP_SPEC", 4000.0),
        ("OP_RETIRED", 3600.0),
        ("BR_MIS_PRED", 10.0),
    ];
    let share = |name: &str| value(&metric("arm-neoverse-v2", name).formula, &counts);
    let first = [
        "frontend_bound",
        "backend_bound",
        "bad_speculation",
        "retiring",
    ];
    for (name, expected) in first.into_iter().zip([19.0, 27.0, 9.0, 45.0]) {
        assert!(close(share(name), expected), "{name} {}", share(name));
    }
    // Ten slots a cycle.
    let flushes = [("STALL_FRONTEND_FLUSH", 20.0)];
    let counts = [&counts[..], &flushes].concat();
    let share = |name: &str| value(&metric("arm-neoverse-v3", name).formula, &counts);
    for (name, expected) in first.into_iter().zip([14.0, 24.0, 8.0, 54.0]) {
        assert!(close(share(name), expected), "{name} {}", share(name));
    }
}

#[test]
fn thresholds_are_over_the_parent_too() {
    let threshold = metric("intel-skx", "tma_fetch_latency").threshold;
    assert_eq!(
        threshold,
        "tma_fetch_latency > 10 & tma_frontend_bound > 15"
    );
    let threshold = Threshold::parse(&threshold).unwrap();
    let holds = |own, parent: Option<f64>| {
        threshold.holds(|name| match name {
            "tma_fetch_latency" => Some(own),
            _ => parent,
        })
    };
    assert_eq!(holds(11.0, Some(16.0)), Some(true));
    assert_eq!(holds(11.0, Some(15.0)), Some(false));
    assert_eq!(holds(9.0, None), Some(false));
    assert_eq!(holds(11.0, None), None);
}
