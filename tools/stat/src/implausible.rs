//! Counts of 0 that cannot be: a hypervisor may open events that it does not count, as KVM does with those of its event
//! filter. No program executes a million instructions without a branch or a load, or retires nothing in a million cycles.

use quipu::{Count, Event, Hardware};
use quipu_hal::{Cache, CacheEvent, CacheOp, CacheResult};

use super::rows::Row;

/// The work beside which a 0 cannot be.
const MUCH_WORK: u128 = 1_000_000;

/// Events of vendors that every program causes, in lower case: they stand in the formulas of metrics.
const WORK: [&str; 14] = [
    "uops_issued.any",
    "uops_retired.retire_slots",
    "uops_retired.slots",
    "topdown.slots",
    "topdown_retiring.all",
    "inst_retired.any",
    "cpu_clk_unhalted.thread",
    "ex_ret_ops",
    "ex_ret_instr",
    "ls_not_halted_cyc",
    "de_src_op_disp.all",
    "op_retired",
    "op_spec",
    "inst_retired",
];

/// Takes the count from rows whose 0 cannot be.
pub(super) fn mark(rows: &mut [Row]) {
    for at in 0..rows.len() {
        if let Some(reason) = reason(&rows[at], rows) {
            refuse(&mut rows[at], reason);
        }
    }
    // Where some events do not count, the zeros of those beside them mean nothing: misses of accesses, other parts of the slots.
    for at in 0..rows.len() {
        if is_zero(&rows[at])
            && let Some(reason) = rows.iter().find_map(|row| reason_beside(&rows[at], row))
        {
            refuse(&mut rows[at], reason);
        }
    }
}

fn refuse(row: &mut Row, reason: String) {
    row.count = Count::NotCounted;
    row.reason = Some(reason);
}

/// Returns the reason why the count of a row is none, if there is one.
fn reason(row: &Row, rows: &[Row]) -> Option<String> {
    row.count.value()?;
    if let Some(preset) = &row.preset {
        let value = |count: Count| count.value();
        let zero = preset.terms.iter().find(|term| {
            value(term.count) == Some(0) && WORK.contains(&&*plain(&term.name).to_ascii_lowercase())
        })?;
        let much = preset.terms.iter().find_map(|term| {
            let work = value(term.count).filter(|work| *work >= MUCH_WORK)?;
            Some((&term.name, work))
        });
        let (name, work) = much?;
        return Some(explained(&format!(
            "its term {} reads 0 beside {work} of {name}",
            zero.name
        )));
    }
    // What never had a counter, as a pinned event without room, is 0 for that reason.
    if row.count.value() != Some(0) || row.running == 0 || !is_work(row.event()) {
        return None;
    }
    let beside = rows.iter().find_map(|other| {
        let counts_work = matches!(
            other.event(),
            Event::Hardware(Hardware::Instructions | Hardware::Cycles)
        );
        let same = other.spec.filter == row.spec.filter && is_beside(row, other);
        let work = other
            .count
            .value()
            .filter(|work| counts_work && same && *work >= MUCH_WORK)?;
        Some((&other.name, work))
    });
    let (name, work) = beside?;
    Some(explained(&format!("it reads 0 beside {work} {name}")))
}

/// Returns the reason of another row of the same kind that has no count for being 0.
fn reason_beside(row: &Row, other: &Row) -> Option<String> {
    let of_same_kind = match (row.event(), other.event()) {
        (Event::Cache(row), Event::Cache(other)) => row.cache == other.cache && row.op == other.op,
        (Event::Hardware(Hardware::BranchMisses), Event::Hardware(Hardware::Branches)) => true,
        _ => row.derived.is_some() && other.derived.is_some(),
    };
    let reason = other
        .reason
        .as_ref()
        .filter(|reason| reason.ends_with(DOES_NOT_COUNT))?;
    (of_same_kind && is_beside(row, other)).then(|| reason.clone())
}

const DOES_NOT_COUNT: &str = "the event does not count here, as where a hypervisor filters events";

fn explained(what: &str) -> String {
    format!("{what}: {DOES_NOT_COUNT}")
}

/// Returns true if a row is 0, or is of a formula with a term that is.
fn is_zero(row: &Row) -> bool {
    match &row.preset {
        _ if row.count.value().is_none() => false,
        Some(preset) => preset
            .terms
            .iter()
            .any(|term| term.count.value() == Some(0)),
        None => row.count.value() == Some(0),
    }
}

/// Returns true for events that any million instructions or cycles cause.
fn is_work(event: &Event) -> bool {
    let loads = |cache| CacheEvent::new(cache, CacheOp::Read, CacheResult::Access).into();
    match event {
        Event::Hardware(event) => matches!(
            event,
            Hardware::Cycles | Hardware::Instructions | Hardware::Branches
        ),
        event => [Cache::L1d, Cache::Dtlb]
            .into_iter()
            .any(|cache| *event == loads(cache)),
    }
}

fn is_beside(row: &Row, other: &Row) -> bool {
    (other.backend, &other.place, &other.cgroup) == (row.backend, &row.place, &row.cgroup)
}

/// Returns the name of an event without its PMU.
fn plain(name: &str) -> &str {
    let name = name.strip_suffix('/').unwrap_or(name);
    name.rsplit('/').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use quipu::EventSpec;

    use super::super::rows::Unit;
    use super::*;

    fn row(event: impl Into<Event>, value: u128) -> Row {
        let spec = EventSpec::new(event);
        let name = spec.to_string();
        Row {
            backend: Some("linux"),
            count: Count::Exact(value),
            running: 1_000,
            ..Row::uncounted(name.as_str().into(), Rc::new(spec), Unit::none())
        }
    }

    /// Returns the names of rows that have no count.
    fn refused(mut rows: Vec<Row>) -> Vec<String> {
        mark(&mut rows);
        let none = rows.iter().filter(|row| row.count == Count::NotCounted);
        none.inspect(|row| {
            assert!(
                row.reason
                    .as_ref()
                    .is_some_and(|why| why.ends_with(DOES_NOT_COUNT))
            );
        })
        .map(|row| row.name.to_string())
        .collect()
    }

    #[test]
    fn what_any_program_does_is_not_0() {
        let l1d = |result| CacheEvent::new(Cache::L1d, CacheOp::Read, result);
        let rows = |instructions: u128| {
            vec![
                row(Hardware::Instructions, instructions),
                row(Hardware::Branches, 0),
                row(Hardware::BranchMisses, 0),
                row(Hardware::CacheMisses, 0),
                row(l1d(CacheResult::Access), 0),
                row(l1d(CacheResult::Miss), 0),
            ]
        };
        let of_few: [&str; 0] = [];
        assert_eq!(refused(rows(999_999)), of_few);
        assert_eq!(
            refused(rows(1_000_000)),
            [
                "branches",
                "branch-misses",
                "L1-dcache-loads",
                "L1-dcache-load-misses"
            ]
        );
        // A pinned event without room has its own reason.
        let mut pinned = rows(1_000_000);
        pinned[1].running = 0;
        assert!(!refused(pinned).contains(&"branches".to_owned()));
        // Few misses of many accesses are none.
        let mut counted = rows(1_000_000);
        counted[1].count = Count::Exact(200_000);
        counted[4].count = Count::Exact(300_000);
        assert_eq!(refused(counted), of_few);
        // Those of the kernel alone say nothing of all.
        let mut elsewhere = rows(1_000_000);
        elsewhere.truncate(2);
        let in_kernel = EventSpec::new(Hardware::Branches).with_filter(quipu::Filter::KERNEL);
        elsewhere[1].spec = Rc::new(in_kernel);
        assert_eq!(refused(elsewhere), of_few);
    }
}
