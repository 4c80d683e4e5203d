//! Presets of several events over the simulated PMU, where every count is known.
//!
//! A microsecond of CPU 0 has 1030 `BRANCHES` (900 in user mode), 23 `BRANCH_MISSES` (17), 14
//! `CACHE_MISSES`, 5200 `INSTRUCTIONS`, 3000 `CYCLES`, 1600 `FLOPS` and 198 `CYCLES_DIV_BUSY`, the last two on
//! one and the same counter; one of CPU 1 has 519 `BRANCHES` and 15 `BRANCH_MISSES`.

use std::sync::Arc;
use std::time::Duration;

use quipu::{
    Count, Counts, ErrorKind, EventInfo, EventSet, Filter, GroupSpec, Part, Reading, Target,
};
use quipu_hal::{MaxRate, Simultaneity};
use quipu_pmu::{ManualClock, VirtualPmu};
use quipu_scripted::{Scripted, ScriptedGroup};

type Backend = VirtualPmu<quipu_pmu::SimPmu>;

/// An event set over the simulated PMU, with presets defined for it.
struct Bench {
    clock: ManualClock,
    backend: Arc<Backend>,
    set: EventSet,
}

impl Bench {
    fn new(presets: &[(&str, &str)], events: &str, target: Target) -> Self {
        let clock = ManualClock::new();
        let pmu = quipu_pmu::SimPmu::new(clock.clone());
        let map = Arc::new(pmu.event_map());
        let backend = Arc::new(VirtualPmu::new(pmu, clock.clone(), map).unwrap());
        let mut builder = EventSet::builder();
        builder
            .target(target)
            .backends([Arc::clone(&backend) as Arc<dyn quipu_hal::Backend>]);
        for (name, formula) in presets {
            builder.preset(*name, formula).unwrap();
        }
        let mut set = builder.events(events).unwrap().open().unwrap();
        set.enable().unwrap();
        Self {
            clock,
            backend,
            set,
        }
    }

    /// One preset, `P`, on CPU 0.
    fn of(formula: &str) -> Self {
        Self::new(&[("P", formula)], "P", Target::Cpu(0))
    }

    /// A millisecond goes by.
    fn millisecond(&self) -> &Self {
        self.clock.advance(Duration::from_millis(1));
        self
    }

    fn read(&mut self) -> Counts {
        let mut counts = self.set.counts();
        self.set.read(&mut counts).unwrap();
        counts
    }

    /// The total of the first event, and why it has no value.
    fn outcome(&mut self) -> (Count, Option<String>) {
        let counts = self.read();
        let preset = counts.get(0).unwrap();
        let reason = preset.no_value().unwrap();
        (preset.total().unwrap(), reason.map(|why| why.to_string()))
    }
}

#[test]
fn a_preset_is_its_formula_over_terms_counted_as_one_group() {
    let mut bench = Bench::of("BRANCHES - BRANCH_MISSES");
    bench.millisecond();
    let counts = bench.read();
    let preset = counts.get(0).unwrap();
    assert_eq!(preset.total().unwrap(), Count::Exact(1_030_000 - 23_000));
    let terms: Vec<_> = preset
        .terms()
        .map(|term| (term.name(), term.total().unwrap()))
        .collect();
    assert_eq!(
        terms,
        [
            ("BRANCHES", Count::Exact(1_030_000)),
            ("BRANCH_MISSES", Count::Exact(23_000))
        ]
    );
    let event = &bench.set.events()[0];
    assert!(event.preset().unwrap().is_in_one_group());
    assert_eq!(
        event.simultaneity(),
        preset.terms().next().unwrap().event().simultaneity()
    );
    assert_ne!(event.simultaneity(), Some(Simultaneity::None));
    let info = event.info().unwrap();
    assert_eq!((&*info.name, info.scale), ("BRANCHES - BRANCH_MISSES", 1.0));
    assert_eq!(bench.set.parts(0).unwrap(), [Part::on_cpu(0)]);
    let error = preset.parts().err().unwrap();
    assert_eq!(error.kind(), ErrorKind::UnsupportedFeature);
}

#[test]
fn modifiers_hold_for_every_term_and_numbers_multiply() {
    let presets = [
        ("RIGHT", "BRANCHES - BRANCH_MISSES"),
        ("SUM", "BRANCHES + 4 * CACHE_MISSES"),
    ];
    let mut bench = Bench::new(&presets, "RIGHT:u,SUM", Target::Cpu(0));
    bench.millisecond();
    let counts = bench.read();
    assert_eq!(
        counts.by_name("RIGHT:u").unwrap().total().unwrap(),
        Count::Exact(883_000)
    );
    assert_eq!(
        counts.by_name("SUM").unwrap().total().unwrap(),
        Count::Exact(1_086_000)
    );
}

#[test]
fn several_cpus_are_added_up() {
    let presets = [("P", "BRANCHES - BRANCH_MISSES")];
    let mut bench = Bench::new(&presets, "P", Target::Cpus(vec![0, 1]));
    bench.millisecond();
    assert_eq!(bench.outcome().0, Count::Exact(1_007_000 + 504_000));
}

#[test]
fn differences_are_of_every_term() {
    let mut bench = Bench::of("BRANCHES - BRANCH_MISSES");
    bench.millisecond();
    let earlier = bench.read();
    bench.millisecond().millisecond();
    let mut later = bench.read();
    later.subtract(&earlier).unwrap();
    assert_eq!(
        later.get(0).unwrap().total().unwrap(),
        Count::Exact(2_014_000)
    );
}

#[test]
fn terms_that_do_not_fit_together_are_counted_one_by_one_and_estimated() {
    let mut bench = Bench::of("FLOPS + CYCLES_DIV_BUSY");
    let event = &bench.set.events()[0];
    assert!(event.error().is_none(), "{event:?}");
    assert!(!event.preset().unwrap().is_in_one_group());
    assert_eq!(event.simultaneity(), Some(Simultaneity::None));

    bench.millisecond();
    let (total, reason) = bench.outcome();
    assert_eq!(total, Count::NotCounted);
    assert_eq!(
        reason.as_deref(),
        Some("its term CYCLES_DIV_BUSY never got a hardware counter")
    );
    for _ in 0..3 {
        bench.backend.tick().unwrap();
        bench.millisecond();
    }
    assert_eq!(bench.outcome(), (Count::Estimated(4 * 1_798_000), None));
}

#[test]
fn a_group_with_presets_is_one_group() {
    let presets = [("P", "BRANCHES - BRANCH_MISSES")];
    let mut bench = Bench::new(&presets, "{INSTRUCTIONS,P,CYCLES}", Target::Cpu(0));
    bench.millisecond();
    let counts = bench.read();
    let totals: Vec<_> = counts.events().map(|e| e.total().unwrap()).collect();
    assert_eq!(totals, [5_200_000, 1_007_000, 3_000_000].map(Count::Exact));
    assert!(bench.set.events()[1].preset().unwrap().is_in_one_group());

    let too_many = "{P,INSTRUCTIONS,CYCLES,CACHE_MISSES}";
    let bench = Bench::new(&presets, too_many, Target::Cpu(0));
    for event in bench.set.events() {
        assert_eq!(event.error().unwrap().kind(), ErrorKind::TooManyEvents);
    }
    // The fifth event is that of the fourth member.
    assert_eq!(bench.set.events()[1].error().unwrap().member(), Some(3));
}

#[test]
fn what_is_below_zero_is_no_count() {
    let mut bench = Bench::of("BRANCH_MISSES - BRANCHES");
    bench.millisecond();
    let (total, reason) = bench.outcome();
    assert_eq!(total, Count::NotCounted);
    assert_eq!(
        reason.as_deref(),
        Some(
            "BRANCH_MISSES - BRANCHES is -1007000, which no count can be for BRANCH_MISSES 23000, \
             BRANCHES 1030000"
        )
    );
}

#[test]
fn ratios_are_in_millionths_and_nothing_is_divided_by_zero() {
    let mut bench = Bench::of("INSTRUCTIONS / CYCLES");
    assert_eq!(bench.set.events()[0].info().unwrap().scale, 1e-6);
    bench.millisecond();
    assert_eq!(bench.outcome().0, Count::Exact(1_733_333));

    let mut bench = Bench::of("CYCLES / SYSTEM_CALLS");
    bench.clock.advance(Duration::from_micros(100));
    let (total, reason) = bench.outcome();
    assert_eq!(total, Count::NotCounted);
    assert_eq!(
        reason.as_deref(),
        Some("CYCLES / SYSTEM_CALLS divides by zero for CYCLES 300000, SYSTEM_CALLS 0")
    );
    bench.clock.advance(Duration::from_micros(900));
    assert_eq!(bench.outcome().0, Count::Exact(3_000_000 * 1_000_000));
}

/// A fraction below zero is no count, zero is one, and so is all that 128 bits hold.
#[test]
fn fractions_have_the_limits_of_counts() {
    let value = |formula: &str, values: [u64; 3]| {
        let bench = Bench::of(formula);
        let preset = bench.set.events()[0].preset().unwrap();
        let whole = Part::whole();
        let readings = values.map(|value| Reading::new(value, 10, 10));
        let value = preset.evaluate(|term| [(&whole, &readings[term])].into_iter());
        value.map_err(|why| why.to_string())
    };
    let difference = "(BRANCHES - INSTRUCTIONS) / CYCLES";
    assert_eq!(value(difference, [9, 3, 4]), Ok(Count::Exact(1_500_000)));
    assert_eq!(value(difference, [3, 3, 4]), Ok(Count::Exact(0)));
    let why = value(difference, [3, 9, 4]).unwrap_err();
    assert!(
        why.contains(" is -1.5, which no count can be for "),
        "{why}"
    );
    // In millionths these are 2 to the power of 127 and 128.
    let product = "BRANCHES * INSTRUCTIONS / CYCLES";
    let value = |exponent| value(product, [1_u64 << exponent, 1 << 61, 15_625]);
    assert_eq!(value(60), Ok(Count::Exact(1 << 127)));
    let why = value(61).unwrap_err();
    assert!(why.contains(" is too large a number for "), "{why}");
}

/// A preset honours what all its terms do, occurs where any of them does, and has the errata of each once.
#[test]
fn a_preset_is_told_of_as_one_event() {
    let open = |spec: &GroupSpec, _: &Target| {
        let infos = spec.members.iter().map(|member| {
            let mut info = EventInfo::counter(member.event.to_string()).with_unit("ns");
            let (honours, occurs_in, errata) = match &*info.name {
                "a" => (
                    Filter::USER | Filter::KERNEL,
                    Filter::USER | Filter::KERNEL,
                    ["E1", "E2"],
                ),
                _ => (
                    Filter::USER | Filter::IDLE,
                    Filter::USER | Filter::HYPERVISOR,
                    ["E2", "E3"],
                ),
            };
            (info.honours, info.occurs_in) = (honours, occurs_in);
            info.errata = errata.map(str::to_owned).to_vec();
            info
        });
        Ok(ScriptedGroup::of_members(infos.collect()))
    };
    let backend: Arc<dyn quipu::Backend> = Arc::new(Scripted::new("scripted", open));
    let mut builder = EventSet::builder();
    builder.preset("SUM", "a + b").unwrap().backends([backend]);
    let set = builder.events("SUM").unwrap().open().unwrap();
    let info = set.events()[0].info().unwrap();
    assert_eq!((&*info.name, &*info.unit, info.scale), ("a + b", "ns", 1.0));
    assert_eq!(info.honours, Filter::USER);
    assert_eq!(
        info.occurs_in,
        Filter::USER | Filter::KERNEL | Filter::HYPERVISOR
    );
    assert_eq!(info.errata, ["E1", "E2", "E3"]);
}

#[test]
fn a_preset_has_no_value_if_the_counter_of_a_term_jumped() {
    let bench = Bench::of("BRANCHES + BRANCH_MISSES");
    let preset = bench.set.events()[0].preset().unwrap();
    let whole = Part::whole();
    let jumped = Reading::new(10 << 47, 10, 10).with_max_rate(MaxRate::EVENTS);
    let never = Reading::new(0, 10, 0);
    for (reading, count, reason) in [
        (
            jumped,
            Count::Jumped,
            "the counter of its term BRANCHES moved further than",
        ),
        (
            never,
            Count::NotCounted,
            "its term BRANCHES never got a hardware counter",
        ),
    ] {
        let value = preset.evaluate(|_| [(&whole, &reading)].into_iter());
        let why = value.unwrap_err();
        assert_eq!(why.count(), count);
        assert!(why.to_string().starts_with(reason), "{why}");
    }
}

#[test]
fn a_term_that_does_not_exist_is_named() {
    let presets = [("P", "CYCLES + NOPE")];
    let bench = Bench::new(&presets, "{INSTRUCTIONS,P},P:u", Target::Cpu(0));
    let errors: Vec<_> = bench
        .set
        .events()
        .iter()
        .map(|e| e.error().unwrap())
        .collect();
    for error in [errors[1], errors[2]] {
        assert_eq!(error.kind(), ErrorKind::UnsupportedEvent);
        let reason = error.reason().unwrap();
        assert!(reason.starts_with("its term NOPE: "), "{reason}");
    }
    assert_eq!(errors[2].attempted(), "count P:u");

    let error = EventSet::builder().preset("P", "CYCLES +").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
    assert!(EventSet::builder().preset("P", "2 * 2").is_err());
}

#[test]
fn a_part_counts_when_every_term_was_counted_in_it() {
    let bench = Bench::of("BRANCHES - BRANCH_MISSES");
    let preset = bench.set.events()[0].preset().unwrap();
    let [zero, one] = [0, 1].map(Part::on_cpu);
    let whole = Reading::new(100, 10, 10);
    let half = Reading::new(10, 10, 5);
    let never = Reading::new(0, 10, 0);
    let partial = [
        vec![(&zero, &whole), (&one, &whole)],
        vec![(&zero, &half), (&one, &never)],
    ];
    assert_eq!(
        preset
            .evaluate(|term| partial[term].iter().copied())
            .unwrap(),
        Count::Partial {
            value: 80,
            estimated: true,
            missing: 1,
            parts: 2
        }
    );
    let elsewhere = [vec![(&zero, &whole)], vec![(&one, &whole)]];
    let reason = preset
        .evaluate(|term| elsewhere[term].iter().copied())
        .unwrap_err();
    assert_eq!(
        reason.to_string(),
        "its term BRANCH_MISSES never got a hardware counter"
    );

    let [core, atom] = ["core", "atom"].map(|core| Part::on_cpu(0).with_core(core));
    let all = Reading::new(3, 10, 10);
    let turns = [
        vec![(&core, &half), (&atom, &half)],
        vec![(&core, &never), (&atom, &all)],
    ];
    assert_eq!(
        preset.evaluate(|term| turns[term].iter().copied()),
        Ok(Count::Exact(20 - 3))
    );
}

/// Of terms that are lower bounds a sum is one; a difference or quotient may be too high or too low.
#[test]
fn lower_bounds_give_one_where_nothing_is_subtracted() {
    let whole = Part::whole();
    let low = Reading::new(100, 10, 10).with_at_least(true);
    let value = |formula: &str| {
        let bench = Bench::of(formula);
        let preset = bench.set.events()[0].preset().unwrap();
        let value = preset.evaluate(|_| [(&whole, &low)].into_iter());
        value.map_err(|why| why.to_string())
    };
    assert_eq!(
        value("BRANCHES + 2 * BRANCH_MISSES"),
        Ok(Count::AtLeast(300))
    );
    for formula in ["BRANCHES - BRANCH_MISSES", "BRANCHES / BRANCH_MISSES"] {
        let why = value(formula).unwrap_err();
        assert!(why.contains("may be too high or too low"), "{why}");
    }
}
