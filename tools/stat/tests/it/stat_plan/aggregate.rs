//! Aggregation of parts into lines.

use quipu::Part;
use quipu_stat::aggregate::{AggregateBy, Aggregation, CpuPosition};

fn two_sockets(by: AggregateBy) -> Aggregation {
    let place = |cpu, socket, core| {
        let place = CpuPosition {
            socket,
            die: -1,
            cluster: core / 4,
            core,
            cpu,
            node: socket,
            caches: [(1, cpu), (3, cpu / 2 * 2)].into(),
        };
        (cpu, place)
    };
    Aggregation {
        by,
        merges_units: true,
        every_thread: false,
        cpus: [
            place(0, 0, 0),
            place(1, 0, 0),
            place(2, 0, 4),
            place(3, 1, 0),
        ]
        .into(),
        threads: [(7, "worker".to_owned())].into(),
    }
}

fn labels(by: AggregateBy) -> Vec<String> {
    let aggregation = two_sockets(by);
    (0..4)
        .map(|cpu| aggregation.id(&Part::on_cpu(cpu)).to_string())
        .collect()
}

#[test]
fn cpus_are_sorted_into_cores_and_sockets() {
    assert_eq!(labels(AggregateBy::Target), ["", "", "", ""]);
    assert_eq!(labels(AggregateBy::Cpu), ["CPU0", "CPU1", "CPU2", "CPU3"]);
    assert_eq!(
        labels(AggregateBy::Core),
        ["S0-D0-C0", "S0-D0-C0", "S0-D0-C4", "S1-D0-C0"]
    );
    assert_eq!(labels(AggregateBy::Socket), ["S0", "S0", "S0", "S1"]);
    assert_eq!(labels(AggregateBy::Node), ["N0", "N0", "N0", "N1"]);
    assert_eq!(
        labels(AggregateBy::Die),
        ["S0-D0", "S0-D0", "S0-D0", "S1-D0"]
    );
    assert_eq!(
        labels(AggregateBy::Cluster)[1..3],
        ["S0-D0-CLS0", "S0-D0-CLS1"]
    );
    let last = labels(AggregateBy::Cache(None));
    assert_eq!(last[..3], ["S0-D0-L3-ID0", "S0-D0-L3-ID0", "S0-D0-L3-ID2"]);
    assert_eq!(labels(AggregateBy::Cache(Some(1)))[1], "S0-D0-L1-ID1");
}

#[test]
fn threads_have_names() {
    let aggregation = two_sockets(AggregateBy::Thread);
    let label = |id| aggregation.id(&Part::of_thread(id)).to_string();
    assert_eq!(label(7), "worker-7");
    assert_eq!(label(8), "-8");
}

#[test]
fn instances_of_a_unit_have_lines_where_they_are_not_merged() {
    let part = Part::on_cpu(0).with_pmu("uncore_imc_1");
    let merged = two_sockets(AggregateBy::Socket);
    assert_eq!(merged.unit(&part), None);
    let apart = merged.merging_units(false);
    assert_eq!(apart.unit(&part), Some("uncore_imc_1"));
    assert_eq!(apart.id(&part).to_string(), "S0");
    assert_eq!(apart.unit(&Part::on_cpu(0)), None);
}
