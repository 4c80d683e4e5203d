//! Reports with fixed contents, for tests.

use quipu::{Count, Event, EventSpec, Hardware, Software};

use quipu_stat::aggregate::AggregateId;
use quipu_stat::metrics;
use quipu_stat::notes::Note;
use quipu_stat::repeat::{Merge, Samples};
use quipu_stat::report::{CommandTimes, Report, Times};
use quipu_stat::rows::{Row, Unit};

/// Returns an exact count over the whole target, which was watched for `time` nanoseconds.
pub(crate) fn row(event: Event, value: u128, time: u64) -> Row {
    let unit = match event {
        Event::Software(Software::TaskClock | Software::CpuClock) => Unit::new("ns", 1.0),
        _ => Unit::none(),
    };
    Row {
        place: AggregateId::Whole,
        cpus: 0,
        cgroup: None,
        name: event.to_string().into(),
        spec: EventSpec::new(event).into(),
        unit,
        backend: None,
        count: Count::Exact(value),
        is_unsupported: false,
        time,
        enabled: time,
        running: time,
        cores: Vec::new(),
        preset: None,
        spread: None,
        metric: None,
        derived: None,
        reason: None,
        disturbance: None,
        turn: None,
        is_gauge: false,
    }
}

/// Returns an estimate from five twelfths of a second.
pub(crate) fn estimate(event: Event, value: u128) -> Row {
    Row {
        count: Count::Estimated(value),
        running: 416_666_667,
        ..row(event, 0, 1_000_000_000)
    }
}

/// Returns a row that was enabled for a second, and never running.
pub(crate) fn not_counted(event: Event) -> Row {
    Row {
        count: Count::NotCounted,
        running: 0,
        ..row(event, 0, 1_000_000_000)
    }
}

fn not_supported(event: Event) -> Row {
    Row {
        count: Count::NotCounted,
        is_unsupported: true,
        reason: Some("cannot open it: event not supported".into()),
        ..row(event, 0, 0)
    }
}

fn samples(values: &[f64]) -> Samples {
    let mut samples = Samples::default();
    for value in values {
        samples.add(*value);
    }
    samples
}

fn report(mut rows: Vec<Row>, elapsed: &[f64]) -> Report {
    let elapsed = samples(elapsed);
    metrics::attach(&mut rows, elapsed.mean());
    Report {
        title: "'make -j8'".into(),
        runs: 1,
        rows,
        times: Times {
            runs: Vec::new(),
            elapsed,
            command: Some(CommandTimes {
                user: samples(&[1.25]),
                system: samples(&[0.125]),
                peak_memory: 123_456_789,
            }),
        },
        notes: Vec::new(),
        details: Vec::new(),
    }
}

fn second(event: impl Into<Event>, value: u128) -> Row {
    row(event.into(), value, 1_000_000_000)
}

/// Returns a report of events that were counted all of the time.
pub(crate) fn exact() -> Report {
    report(
        vec![
            second(Software::TaskClock, 1_000_000_000),
            second(Software::ContextSwitches, 12),
            second(Software::PageFaults, 123_456),
            second(Hardware::Cycles, 3_210_000_000),
            second(Hardware::Instructions, 6_420_000_000),
            second(Hardware::Branches, 1_000_000_000),
            second(Hardware::BranchMisses, 12_500_000),
        ],
        &[0.5],
    )
}

/// Returns an estimate, a partial sum, nothing counted, nothing supported, and a hybrid machine.
pub(crate) fn uncertain() -> Report {
    let mut hybrid = second(Hardware::Branches, 1_500_000);
    hybrid.cores = vec![
        ("cpu_atom".into(), Count::Exact(500_000)),
        ("cpu_core".into(), Count::Exact(1_000_000)),
    ];
    let partial = Row {
        count: Count::of_parts(77, false, 1, 2),
        running: 500_000_000,
        ..second(Hardware::CacheMisses, 0)
    };
    let mut report = report(
        vec![
            estimate(Hardware::Cycles.into(), 1_234_567_890),
            second(Hardware::Instructions, 2_469_135_780),
            partial,
            hybrid,
            not_counted(Hardware::BranchMisses.into()),
            not_supported(Hardware::BusCycles.into()),
        ],
        &[1.0],
    );
    report.notes = vec![
        Note {
            about: "not supported".into(),
            events: vec!["bus-cycles".into()],
            text: "this machine shows no CPU PMU; virtual machines often hide the PMU; software \
                   events still count"
                .into(),
        },
        Note {
            about: "not counted".into(),
            events: vec!["branch-misses".into()],
            text: "never got a hardware counter".into(),
        },
    ];
    report
}

/// Returns a report of three runs.
pub(crate) fn repeated() -> Report {
    let mut merge = Merge::default();
    for (clock, faults) in [(1_000_000, 48), (1_100_000, 48), (1_200_000, 54)] {
        merge.add(vec![
            row(Software::TaskClock.into(), clock, 1_000_000),
            row(Software::PageFaults.into(), faults, 1_000_000),
            row(Software::ContextSwitches.into(), faults / 54, 1_000_000),
            not_supported(Hardware::Cycles.into()),
        ]);
    }
    let mut report = report(merge.rows(), &[0.002, 0.003, 0.004]);
    report.runs = 3;
    report
}

/// Returns a report of two cores of two CPUs each, in a control group.
pub(crate) fn per_core() -> Report {
    let of_core = |core, value| Row {
        place: AggregateId::Core {
            socket: 0,
            die: 0,
            core,
        },
        cpus: 2,
        cgroup: Some("web".into()),
        ..second(Software::PageFaults, value)
    };
    let mut report = report(vec![of_core(0, 1000), of_core(1, 2000)], &[1.0]);
    report.title = "cgroup web".into();
    report.times.command = None;
    report
}
