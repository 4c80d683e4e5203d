//! Aggregation of parts into lines.

use quipu::Part;
use quipu_cli::stat::aggregate::{AggregateBy, Aggregation, CpuTopology};

fn two_sockets(by: AggregateBy) -> Aggregation {
    let place = |cpu, socket, core| {
        let place = CpuTopology {
            socket,
            die: -1,
            core,
            cpu,
        };
        (cpu, place)
    };
    Aggregation {
        by,
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
}

#[test]
fn threads_have_names() {
    let aggregation = two_sockets(AggregateBy::Thread);
    let label = |id| aggregation.id(&Part::of_thread(id)).to_string();
    assert_eq!(label(7), "worker-7");
    assert_eq!(label(8), "-8");
}
