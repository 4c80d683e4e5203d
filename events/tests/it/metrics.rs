//! Metrics: their formulas name events that the CPU counts, and give the values that their sources give.

use quipu_events::identify::Core;
use quipu_events::{Database, Formula, Interface, MetricDetails, Threshold};
use quipu_hal::{CpuIdentity, Event, EventMap, Filter};

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
    let expected = "amd-zen4 amd-zen5 arm-neoverse-n2 arm-neoverse-n3 arm-neoverse-v1 arm-neoverse-v2 arm-neoverse-v3 \
        intel-adl-atom intel-adl-core intel-arl-atom intel-arl-core intel-clx intel-emr intel-gnr intel-icl \
        intel-icx intel-lnl-atom intel-lnl-core intel-mtl-atom intel-mtl-core intel-rkl intel-skl intel-skx \
        intel-spr intel-srf intel-tgl";
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

/// The slots of a cycle and the events of all slots are not the same on each efficiency core.
#[test]
fn efficiency_cores_share_the_slots_out() {
    for (cpu, slots, [front, bad, back, retiring]) in [
        ("intel-adl-atom", 5.0, ["ALL", "", "ALL", "ALL"]),
        ("intel-mtl-atom", 6.0, ["ALL_P", "ALL_P", "ALL_P", "ALL_P"]),
        ("intel-srf", 6.0, ["ALL_P", "ALL_P", "ALL_P", "ALL_P"]),
        ("intel-lnl-atom", 8.0, ["ALL", "ALL_P", "ALL_P", "ALL_P"]),
        ("intel-arl-atom", 8.0, ["ALL", "ALL_P", "ALL_P", "ALL_P"]),
    ] {
        // Of the slots of 1000 cycles 20 % starved, 10 % were wasted, 30 % stalled, 40 % retired.
        let all = 1000.0 * slots;
        let events = [
            (format!("TOPDOWN_FE_BOUND.{front}"), 0.2 * all),
            (format!("TOPDOWN_BAD_SPECULATION.{bad}"), 0.1 * all),
            (format!("TOPDOWN_BE_BOUND.{back}"), 0.3 * all),
            (format!("TOPDOWN_RETIRING.{retiring}"), 0.4 * all),
            ("TOPDOWN_BE_BOUND.ALLOC_RESTRICTIONS".to_owned(), 0.05 * all),
            ("TOPDOWN_FE_BOUND.FRONTEND_LATENCY".to_owned(), 0.15 * all),
            (
                "TOPDOWN_BAD_SPECULATION.MACHINE_CLEARS".to_owned(),
                0.02 * all,
            ),
            ("CPU_CLK_UNHALTED.CORE".to_owned(), 1000.0),
        ];
        let counts: Vec<(&str, f64)> = events.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        for (name, expected) in [
            ("tma_frontend_bound", 20.0),
            ("tma_bad_speculation", 10.0),
            ("tma_backend_bound", 30.0),
            ("tma_retiring", 40.0),
            ("tma_core_bound", 5.0),
            ("tma_resource_bound", 25.0),
            ("tma_ifetch_latency", 15.0),
            ("tma_machine_clears", 2.0),
        ] {
            let share = value(&metric(cpu, name).formula, &counts);
            assert!(close(share, expected), "{cpu} {name} {share}");
        }
        let threshold = metric(cpu, "tma_machine_clears").threshold;
        assert_eq!(
            threshold,
            "tma_machine_clears > 5 & tma_bad_speculation > 15"
        );
    }
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

/// On Neoverse N2 before r0p3 the stalled slots are one too many in each cycle.
#[test]
fn the_revision_of_a_core_chooses_the_formula() {
    let counts = [
        ("CPU_CYCLES", 1000.0),
        ("STALL_SLOT", 3000.0),
        ("STALL_SLOT_FRONTEND", 1500.0),
        ("STALL_SLOT_BACKEND", 1500.0),
        ("OP_SPEC", 2000.0),
        ("OP_RETIRED", 1800.0),
        ("BR_MIS_PRED", 10.0),
    ];
    let of = |midr: u64| {
        let core = Core::new(CpuIdentity::Arm { midr });
        Database::embedded().identify(&core).unwrap().metrics()
    };
    for (midr, front, retiring) in [
        (0x410f_d490, 9.0, 54.0),
        (0x410f_d492, 9.0, 54.0),
        (0x410f_d493, 29.0, 36.0),
        (0x411f_d490, 29.0, 36.0),
    ] {
        let metrics = of(midr);
        assert_eq!(metrics.len(), 4, "{midr:#x}");
        let share = |name: &str| {
            let metric = metrics.iter().find(|metric| metric.name == name).unwrap();
            value(&metric.formula, &counts)
        };
        assert!(close(share("frontend_bound"), front), "{midr:#x}");
        assert!(close(share("retiring"), retiring), "{midr:#x}");
        assert!(close(share("backend_bound"), 27.0), "{midr:#x}");
    }
    let all = Database::embedded()
        .cpu("arm-neoverse-n2")
        .unwrap()
        .metrics();
    let both: Vec<&str> = all
        .iter()
        .filter(|metric| metric.name == "retiring")
        .map(|metric| metric.revisions.as_str())
        .collect();
    assert_eq!(both, ["< r0p3", ">= r0p3"]);
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

#[test]
fn metrics_are_called_by_their_names_and_groups() {
    let bound = metric("intel-skl", "tma_backend_bound");
    assert!(bound.is_called("TMA_Backend_Bound") && bound.is_called("topdownl1"));
    assert!(!bound.is_called("tma_backend") && !bound.is_called("TopdownL2"));
}
