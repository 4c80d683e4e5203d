//! The test on simulated machines, and on this one.

use std::cell::Cell;

use super::*;

/// The instructions of the loop, of which a turn has three.
const TRUTH: u64 = 3 * TURNS;

fn read(value: u64) -> Reading {
    Reading::new(value, 1_000_000, 1_000_000)
}

/// A simulated core PMU: `count(n, turns, call)` is what its counter `n` says of a loop.
#[derive(Clone, Copy)]
struct Simulated {
    event: Hardware,
    advertised: usize,
    /// Counters that others hold.
    held: usize,
    count: fn(usize, u64, usize) -> u64,
}

impl Simulated {
    const fn of_instructions(
        advertised: usize,
        held: usize,
        count: fn(usize, u64, usize) -> u64,
    ) -> Self {
        Self {
            event: Hardware::Instructions,
            advertised,
            held,
            count,
        }
    }
}

/// A machine of core PMUs, each of which counts its events on CPUs of its own.
struct Simulation<'a>(&'a [&'a [Simulated]]);

thread_local! {
    /// The position of the PMU whose CPU this thread is on.
    static ON: Cell<usize> = const { Cell::new(0) };
    static CALLS: Cell<usize> = const { Cell::new(0) };
}

impl Simulation<'_> {
    fn pmus(&self) -> Vec<CorePmu> {
        let pmu = |i| CorePmu {
            name: format!("core_{i}"),
            type_: 10 + i,
            cpus: vec![i],
        };
        (0..self.0.len() as u32).map(pmu).collect()
    }

    fn test(&self) -> Vec<Result<CounterTest>> {
        test_all(self, &self.pmus())
    }

    fn find(&self, pmu: usize, event: Hardware) -> Result<Simulated> {
        let mut events = self.0[pmu].iter();
        let found = events.find(|simulated| simulated.event == event);
        found
            .copied()
            .ok_or_else(|| Error::new(ErrorKind::UnsupportedEvent, "open an event"))
    }
}

impl Machine for Simulation<'_> {
    fn keep_on(&self, pmu: &CorePmu) -> Result<()> {
        ON.set(pmu.cpus[0] as usize);
        Ok(())
    }

    fn advertised(&self, pmu: usize, event: Hardware) -> Result<usize> {
        Ok(self.find(pmu, event)?.advertised)
    }

    fn rounds(&self, pmu: usize, event: Hardware, counters: usize) -> Vec<Vec<Reading>> {
        let simulated = self.find(pmu, event).expect("advertised");
        if counters > simulated.advertised - simulated.held || ON.get() != pmu {
            return Vec::new();
        }
        let count = |turns| {
            let call = CALLS.replace(CALLS.get() + 1);
            let of = |n| read((simulated.count)(n, turns, call));
            Some((0..counters).map(of).collect())
        };
        (0..ROUNDS).filter_map(|_| round(event, count)).collect()
    }
}

/// Returns the event and the numbers of counters in a result.
fn found(test: &Result<CounterTest>) -> Option<(Hardware, [usize; 3])> {
    let test = test.as_ref().ok()?;
    Some((test.event, [test.advertised, test.tested, test.counting]))
}

#[test]
fn counters_that_do_not_count_are_found() {
    const fn pmu(advertised: usize, held: usize, count: fn(usize, u64, usize) -> u64) -> Simulated {
        Simulated::of_instructions(advertised, held, count)
    }
    let machines = [
        (pmu(6, 0, |_, turns, _| 3 * turns), Some([6, 6, 6])),
        // Interrupts make differences of one or two.
        (
            pmu(6, 0, |n, turns, call| 3 * turns + (n * call % 3) as u64),
            Some([6, 6, 6]),
        ),
        (pmu(6, 1, |_, turns, _| 3 * turns), Some([6, 5, 5])),
        (pmu(6, 6, |_, turns, _| 3 * turns), None),
        (
            pmu(6, 0, |n, turns, _| if n == 5 { 0 } else { 3 * turns }),
            Some([6, 6, 5]),
        ),
        // Dead, but for one round in three.
        (
            pmu(6, 0, |n, turns, call| {
                if n == 5 && call % 3 > 0 {
                    900
                } else {
                    3 * turns
                }
            }),
            Some([6, 6, 5]),
        ),
        // Two are short.
        (
            pmu(
                4,
                0,
                |n, turns, _| if n > 1 { 2 * turns } else { 3 * turns },
            ),
            Some([4, 4, 2]),
        ),
        (
            pmu(4, 0, |n, turns, _| if n == 0 { 1 << 47 } else { 3 * turns }),
            Some([4, 4, 0]),
        ),
        (pmu(4, 0, |_, _, _| 0), Some([4, 4, 0])),
    ];
    for (i, (pmu, numbers)) in machines.into_iter().enumerate() {
        let tests = Simulation(&[&[pmu]]).test();
        let wanted = numbers.map(|numbers| (Hardware::Instructions, numbers));
        assert_eq!([found(&tests[0])], [wanted], "machine {i}");
    }
}

#[test]
fn a_dead_counter_beside_one_for_instructions_alone_is_found() {
    let instructions =
        Simulated::of_instructions(5, 0, |n, turns, _| if n == 4 { 0 } else { 3 * turns });
    let branches = |advertised, count| Simulated {
        event: Hardware::Branches,
        advertised,
        held: 0,
        count,
    };
    for (branches, wanted) in [
        (
            branches(4, |n, turns, _| if n == 3 { 0 } else { turns }),
            (Hardware::Branches, [4, 4, 3]),
        ),
        // That one itself is dead.
        (
            branches(4, |_, turns, _| turns),
            (Hardware::Instructions, [5, 5, 4]),
        ),
    ] {
        let tests = Simulation(&[&[instructions, branches]]).test();
        assert_eq!(found(&tests[0]), Some(wanted));
    }
}

#[test]
fn cycles_serve_where_no_instructions_are_counted() {
    type Count = fn(usize, u64, usize) -> u64;
    let machines: [(Count, [usize; 3]); 7] = [
        (|_, turns, call| turns / 3 + 7 * call as u64, [7, 7, 7]),
        (|n, turns, _| if n == 6 { 0 } else { 2 * turns }, [7, 7, 6]),
        // Above 0, and the same however long the loop is.
        (
            |n, turns, _| if n > 4 { 5000 } else { 2 * turns },
            [7, 7, 5],
        ),
        (|_, _, _| 5000, [7, 7, 0]),
        // A round is two loops. One counter is read late in a round of three, and in two.
        (
            |n, turns, call| {
                if n == 3 && call % 6 == 1 {
                    3 * turns
                } else {
                    2 * turns
                }
            },
            [7, 7, 7],
        ),
        (
            |n, turns, call| if n == 6 && call % 6 < 4 { 9 } else { 2 * turns },
            [7, 7, 6],
        ),
        (|_, turns, _| u64::MAX / (1 + turns), [7, 7, 0]),
    ];
    for (i, (count, numbers)) in machines.into_iter().enumerate() {
        CALLS.set(0);
        let pmu = Simulated {
            event: Hardware::Cycles,
            advertised: 7,
            held: 0,
            count,
        };
        let tests = Simulation(&[&[pmu]]).test();
        assert_eq!(
            found(&tests[0]),
            Some((Hardware::Cycles, numbers)),
            "machine {i}"
        );
    }
    let neither = Simulation(&[&[]]).test();
    let error = neither[0].as_ref().expect_err("no event");
    assert_eq!(error.kind(), ErrorKind::UnsupportedEvent);
}

#[test]
fn each_core_pmu_of_a_hybrid_is_tested_on_its_own_cpus() {
    let whole = Simulated::of_instructions(8, 0, |_, turns, _| 3 * turns);
    let dead = Simulated::of_instructions(6, 0, |n, turns, _| if n > 3 { 0 } else { 3 * turns });
    let held = Simulated::of_instructions(6, 6, |_, turns, _| 3 * turns);
    let cycles = Simulated {
        event: Hardware::Cycles,
        ..whole
    };
    let instructions = |numbers| Some((Hardware::Instructions, numbers));
    let machines: [(&[&[Simulated]], &[_]); 4] = [
        (
            &[&[whole], &[dead]],
            &[instructions([8, 8, 8]), instructions([6, 6, 4])],
        ),
        (
            &[&[dead], &[whole]],
            &[instructions([6, 6, 4]), instructions([8, 8, 8])],
        ),
        (
            &[&[dead], &[held], &[cycles]],
            &[
                instructions([6, 6, 4]),
                None,
                Some((Hardware::Cycles, [8, 8, 8])),
            ],
        ),
        (&[&[], &[whole]], &[None, instructions([8, 8, 8])]),
    ];
    for (i, (pmus, wanted)) in machines.into_iter().enumerate() {
        ON.set(usize::MAX);
        let tests = Simulation(pmus).test();
        assert_eq!(
            tests.iter().map(found).collect::<Vec<_>>(),
            wanted,
            "machine {i}"
        );
        for (n, test) in tests.iter().enumerate() {
            match test {
                Ok(test) => assert_eq!(test.pmu, format!("core_{n}")),
                Err(error) if error.kind() == ErrorKind::Busy => {
                    assert!(error.to_string().contains(&format!("core_{n}")), "{error}");
                }
                Err(error) => assert_eq!(error.kind(), ErrorKind::UnsupportedEvent),
            }
        }
        // The calling thread was moved nowhere.
        assert_eq!(ON.get(), usize::MAX);
    }
}

#[test]
fn the_counters_of_this_machine() {
    let tests = of_this_machine();
    assert_eq!(tests.len(), or_stand_in(SysfsPmus::new().core_pmus()).len());
    for test in tests {
        match test {
            Ok(test) => {
                assert!(test.counting <= test.tested && test.tested <= test.advertised);
                assert!(test.advertised <= MOST);
            }
            Err(e) => {
                let lacking = [
                    ErrorKind::UnsupportedEvent,
                    ErrorKind::NoSuchTarget,
                    ErrorKind::NoPermission,
                    ErrorKind::Busy,
                ];
                assert!(lacking.contains(&e.kind()), "{e:#}");
            }
        }
    }
}

/// A thread that may run on no CPU of a PMU is not moved there.
#[test]
fn the_affinity_of_the_thread_is_kept() {
    let machine = ThisMachine {
        events: EventSource::new(SysfsPmus::new()),
    };
    let pmu = |cpus| CorePmu {
        name: "core".into(),
        type_: 10,
        cpus,
    };
    let kept = std::thread::spawn(move || {
        let may = sched_getaffinity(Pid::from_raw(0)).expect("own");
        let (mine, others): (Vec<u32>, _) =
            (0..CpuSet::count() as u32).partition(|cpu| may.is_set(*cpu as usize) == Ok(true));
        let refused = machine.keep_on(&pmu(others)).expect_err("not allowed");
        assert_eq!(refused.kind(), ErrorKind::NoSuchTarget);
        machine
            .keep_on(&pmu(vec![mine[0], 1 << 20]))
            .expect("allowed");
        let now = sched_getaffinity(Pid::from_raw(0)).expect("own");
        let mut one = CpuSet::new();
        one.set(mine[0] as usize).expect("as of the others");
        assert_eq!(now, one);
        // From one CPU to others, which it gave up.
        machine.keep_on(&pmu(mine[1..].to_vec())).is_err()
    });
    assert!(kept.join().expect("no panic"));
}

/// The loop is no shorter than the verdict takes it to be, nor longer than a CPU can do in its time.
#[test]
fn a_round_of_the_real_loop_is_judged_by_its_own_measure() {
    let start = std::time::Instant::now();
    work(TURNS);
    assert!(start.elapsed().as_nanos() as u64 >= TURNS / MOST_PER_NANOSECOND);
    let counting = |round: &[Reading]| counting(Hardware::Instructions, round);
    assert_eq!(counting(&[read(TURNS), read(TURNS - TURNS / 32)]), 1);
    assert_eq!(counting(&[read(TURNS), read(TURNS - 2)]), 2);
    assert_eq!(counting(&[read(TURNS - 1); 2]), 0);
    assert_eq!(counting(&[read(TRUTH); 3]), 3);
}
