//! Events that were counted for a part of the time, and the reasons.

use super::*;

#[test]
fn turns_are_reported_with_how_long_they_are() {
    // There are eight counters for them.
    let mut run = measure(&["A"; 13].join(","));
    for _ in 0..13 {
        run.pass(100);
        run.registers.tick().expect("a turn");
    }
    let estimated: Vec<Row> = run.rows();
    for row in &estimated {
        assert!(row.count.is_estimate(), "{row:?}");
        assert_eq!(row.turn, Some(Duration::from_millis(4)));
    }
    let text = |interval| {
        let notes = notes(&run.sets, &estimated, None, interval);
        assert_eq!((notes.len(), &*notes[0].about), (1, "turns"));
        notes[0].text.clone()
    };
    assert_eq!(text(None), "took turns on the counters, 4ms each");
    let ten = Some(Duration::from_millis(10));
    assert_eq!(text(ten), "took turns on the counters, 4ms each");
    assert_eq!(
        text(Some(Duration::from_millis(1))),
        "took turns on the counters, 4ms each, which is longer than an interval: those without a turn have no count"
    );
}

/// On a P6, where the enable of counter 0 gates counter 1: setting one counter does not stop the other.
#[test]
fn events_that_share_an_enable_are_exact_in_either_order() {
    for order in ["ANY,ONE", "ONE,ANY", "{ANY,ONE}"] {
        let bus = SimulatedMsrs::new(Generation::P6, 1);
        let clock = ManualClock::new();
        let model = Generation::P6.model();
        let map = EventNames::new(model.clone()).any("ANY", 0x10).with(
            "ONE",
            0x11,
            SlotSet::general(0b01),
            None,
        );
        let slow = SlowBus(bus.clone(), clock.clone());
        let pmu = MsrPmu::new(slow, &model, msr::Options::default()).expect("counters that work");
        let registers = VirtualPmu::new(pmu, clock.clone(), Arc::new(map)).expect("a proper PMU");
        let backends = Backends::on_registers(Arc::new(registers));
        let plan = Plan::new(&options(["-e", order])).expect("a plan");
        let mut sets = Sets::open(&plan, &backends, None).expect("open");
        sets.enable().expect("enabled");
        let happened = Stretch::new(Level::User, 1000).occurring(0x10, 1);
        bus.run(0, &happened.occurring(0x11, 2));
        clock.advance(Duration::from_millis(1));
        sets.disable().expect("disabled");
        let mut snapshot = sets.snapshot();
        sets.read(&mut snapshot).expect("read");
        let whole = Aggregation::new(AggregateBy::Target, sets.all_parts()).expect("whole");
        let rows = Lines::new(&sets, &whole)
            .fill(&sets, &snapshot, 0.0)
            .to_vec();
        let counts: Vec<(&str, Count)> = rows.iter().map(|row| (&*row.name, row.count)).collect();
        for (name, count) in counts {
            let expected = if name.starts_with("ANY") { 1000 } else { 2000 };
            assert_eq!(count, Count::Exact(expected), "{name} of {order}");
        }
    }
}

/// A simulated bus whose calls take a microsecond each.
#[derive(Debug)]
struct SlowBus(SimulatedMsrs, ManualClock);

impl MsrBus for SlowBus {
    fn cpus(&self) -> &[u32] {
        self.0.cpus()
    }

    fn current_cpu(&self) -> Result<u32> {
        self.0.current_cpu()
    }

    fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        self.1.advance(Duration::from_micros(1));
        self.0.read(cpu, address)
    }

    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        self.1.advance(Duration::from_micros(1));
        self.0.write(cpu, address, value)
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
        self.0.cpuid(leaf, subleaf)
    }

    fn exercise(&self, cpu: u32) -> Result<()> {
        self.0.exercise(cpu)
    }
}

/// Less than a quarter of the time says nothing of the rest.
#[test]
fn too_little_of_a_disturbed_count_is_no_count() {
    for (before, counted) in [(5, false), (6, true)] {
        let mut run = measure("A");
        for _ in 0..before {
            run.pass(100);
        }
        run.rows();
        run.bus
            .write(0, SELECT_0, 0)
            .expect("another program's write");
        for _ in before..20 {
            run.clock.advance(Duration::from_millis(1));
        }
        run.clock.advance(Duration::from_nanos(1));
        let (rows, notes) = run.end();
        let [note] = notes.as_slice() else {
            panic!("{notes:?}");
        };
        let said = format!("{:?}: {note:?}", rows[0].count);
        assert_eq!(rows[0].count.value().is_some(), counted, "{said}");
        assert_eq!(note.about == "disturbed", counted, "{said}");
        assert!(note.text.contains("its registers were changed"), "{said}");
        assert_eq!(
            note.text.contains("only 25.00 % of the time"),
            !counted,
            "{said}"
        );
    }
}
