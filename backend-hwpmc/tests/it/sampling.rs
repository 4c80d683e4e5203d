//! Samples, over the simulated driver.

use std::time::Duration;

use quipu_hal::{Attributes, ErrorKind, EventSpec, Hardware, Target, Woken};
use quipu_hwpmc::{HwpmcBackend, HwpmcSampler, LogRecord, SamplerSpec};

use crate::events::backend;
use crate::simulated::log::FREQUENCY;
use crate::simulated::{Sim, own};

const PERIOD: u64 = 10_000;

fn spec(events: &[Hardware]) -> SamplerSpec {
    SamplerSpec::new(events.iter().map(|event| (EventSpec::new(*event), PERIOD)))
}

fn instructions() -> SamplerSpec {
    spec(&[Hardware::Instructions])
}

fn open(sim: &Sim, pid: i32) -> (HwpmcBackend<Sim>, HwpmcSampler<Sim>) {
    let backend = backend(sim).expect("a backend");
    let sampler = backend.open_sampler(&instructions(), &Target::Process(pid));
    let mut sampler = sampler.expect("a sampler");
    sampler.enable().expect("it starts");
    (backend, sampler)
}

/// Returns the first address of each sample.
fn drained(sampler: &mut HwpmcSampler<Sim>) -> Vec<u64> {
    let mut all = Vec::new();
    let drained = sampler.drain(|sample| all.push(sample.addresses[0]));
    drained.expect("a log");
    all
}

#[test]
fn a_sample_has_what_the_driver_wrote() {
    let sim = Sim::new();
    let pid = sim.lock().asleep();
    let backend = backend(&sim).expect("a backend");
    let mut spec = spec(&[Hardware::Instructions, Hardware::Cycles]);
    spec.events[1].1 = 2 * PERIOD;
    spec.call_chains = true;
    let sampler = backend.open_sampler(&spec, &Target::Process(pid));
    let mut sampler = sampler.expect("a sampler");
    assert_eq!(sampler.events().len(), 2);
    let ids = sim.lock().sampling();
    assert_eq!(
        ids.iter()
            .map(|(_, how)| (how.period, how.call_chains))
            .collect::<Vec<_>>(),
        [(PERIOD, true), (2 * PERIOD, true)]
    );
    sampler.enable().expect("it starts");
    let log = |ticks, id: usize, flags, chain: &[usize]| {
        sim.lock()
            .log
            .sample(ids[id].0, pid, 100 + ticks, flags, chain);
    };
    log(0, 1, 1 << 16 | 1, &[0x1000, 0x2000, 0x3000]);
    log(FREQUENCY, 0, 0, &[0x4000]);
    // A counter of another sampler.
    sim.lock().log.sample(9999, pid, 100, 1, &[0x5000]);
    let mut all = Vec::new();
    let drained = sampler.drain(|s| {
        let place = (s.pid, s.tid, s.cpu, s.in_kernel);
        all.push((s.event, s.period, place, s.time, s.addresses.to_vec()));
    });
    drained.expect("a log");
    let begun = all[0].3;
    assert_eq!(
        all,
        [
            (
                1,
                2 * PERIOD,
                (pid, pid + 1, 1, false),
                begun,
                vec![0x1000, 0x2000, 0x3000]
            ),
            (
                0,
                PERIOD,
                (pid, pid + 1, 0, true),
                begun + 1_000_000_000,
                vec![0x4000]
            ),
        ]
    );
    // They are gone.
    assert_eq!(self::drained(&mut sampler), []);
}

/// The driver writes what one CPU has logged behind what another has.
#[test]
fn records_come_in_the_order_of_their_times() {
    let sim = Sim::new();
    let pid = sim.lock().asleep();
    let (_backend, mut sampler) = open(&sim, pid);
    let id = sim.lock().sampling()[0].0;
    {
        let log = &mut sim.lock().log;
        log.sample(id, pid, 100 + 3 * FREQUENCY, 1, &[3]);
        log.sample(id, pid, 100 + FREQUENCY, 1, &[1]);
        log.exec(pid, 100 + 2 * FREQUENCY, 0x1000, "/bin/sh");
        log.sample(id, pid, 100 + 4 * FREQUENCY, 1, &[4]);
    }
    let (mut all, mut first) = (Vec::new(), None);
    let drained = sampler.drain_log(|time, record| {
        let begun = *first.get_or_insert(time);
        all.push((
            (time - begun) / 1_000_000_000,
            match record {
                LogRecord::Sample(sample) => format!("{}", sample.addresses[0]),
                LogRecord::Exec { pid: of, program } => {
                    assert_eq!((*of, program.moved), (pid, None));
                    let path = String::from_utf8_lossy(program.path);
                    format!("{path} at {:#x}", program.address)
                }
                other => format!("{other:?}"),
            },
        ));
    });
    drained.expect("a log");
    let expected = ["1", "/bin/sh at 0x1000", "3", "4"];
    let expected = (0..4).zip(expected.map(str::to_owned));
    assert_eq!(all, expected.collect::<Vec<_>>());
    assert_eq!(sampler.selects(), [Some(0xc0)]);
}

/// The driver writes into a pipe, which holds less than is logged.
#[test]
fn all_that_was_logged_is_drained() {
    const MANY: usize = 20_000;
    let sim = Sim::new();
    let pid = sim.lock().asleep();
    let (_backend, mut sampler) = open(&sim, pid);
    let id = sim.lock().sampling()[0].0;
    for round in 0..2 {
        for address in 0..MANY {
            sim.lock().log.sample(id, pid, 100, 1, &[address]);
            if address % 1000 == 999 {
                sim.lock().log.flush().expect("a log");
            }
        }
        sim.lock().log.is_full = true;
        if round == 1 {
            sampler.disable().expect("it stops");
        }
        assert_eq!(drained(&mut sampler), (0..MANY as u64).collect::<Vec<_>>());
    }
}

#[test]
fn a_wait_ends_with_samples_or_with_the_last_process() {
    const SHORT: Option<Duration> = Some(Duration::from_millis(1));
    let sim = Sim::new();
    let pid = sim.lock().asleep();
    let backend = backend(&sim).expect("a backend");
    let mut spec = instructions();
    spec.attributes = Attributes::default().with_inherit(true).with_disabled(true);
    spec.wake_after = 2;
    let sampler = backend.open_sampler(&spec, &Target::Process(pid));
    let mut sampler = sampler.expect("a sampler");
    sampler.enable().expect("it starts");
    let id = sim.lock().sampling()[0].0;
    assert_eq!(sampler.wait(SHORT), Ok(Woken::TimedOut));
    sim.lock().log.sample(id, pid, 100, 1, &[1]);
    assert_eq!(sampler.wait(SHORT), Ok(Woken::TimedOut));
    sim.lock().log.sample(id, pid, 100, 1, &[2]);
    assert_eq!(sampler.wait(None), Ok(Woken::Data));
    assert_eq!(drained(&mut sampler), [1, 2]);
    let child = sim.lock().asleep();
    sim.lock().log.fork(pid, child);
    sim.lock().log.sample(id, child, 100, 1, &[3]);
    sim.lock().reap(pid);
    assert_eq!(sampler.wait(SHORT), Ok(Woken::TimedOut));
    sim.lock().reap(child);
    assert_eq!(sampler.wait(None), Ok(Woken::Ended));
    assert_eq!(drained(&mut sampler), [3]);
}

#[test]
fn what_is_lost_is_counted_from_the_opening_on() {
    let sim = Sim::new();
    sim.lock().log.lost = u32::MAX;
    let pid = sim.lock().asleep();
    let (_backend, sampler) = open(&sim, pid);
    assert_eq!(sampler.lost(), 0);
    sim.lock().log.lost = 2;
    assert_eq!(sampler.lost(), 3);
}

#[test]
fn what_is_no_record_is_an_error_once() {
    let sim = Sim::new();
    let pid = sim.lock().asleep();
    let (_backend, mut sampler) = open(&sim, pid);
    let id = sim.lock().sampling()[0].0;
    sim.lock().log.sample(id, pid, 100, 1, &[1]);
    sim.lock().log.garble();
    let refused = sampler.drain(|_| {}).expect_err("no record");
    assert!(refused.to_string().contains("no record"), "{refused}");
}

/// Returns the kind and the text of a refusal, after which all counters are given back.
fn refusal(sim: &Sim, spec: &SamplerSpec, target: &Target) -> (ErrorKind, String) {
    let backend = backend(sim).expect("a backend");
    let before = sim.lock().taken();
    let error = backend.open_sampler(spec, target).map(drop);
    let error = error.expect_err("it is refused");
    assert_eq!(sim.lock().taken(), before, "counters are given back");
    (error.kind(), format!("{error:#}"))
}

#[test]
fn what_the_driver_does_not_sample_is_refused() {
    let sim = Sim::new();
    let pid = sim.lock().asleep();
    let process = Target::Process(pid);
    for own in [Target::CurrentThread, Target::Process(own())] {
        let (kind, text) = refusal(&sim, &instructions(), &own);
        assert_eq!(kind, ErrorKind::UnsupportedFeature);
        assert!(text.contains("no samples of itself"), "{text}");
    }
    let mut all_children = instructions();
    all_children.attributes.pinned = true;
    let (kind, _) = refusal(&sim, &all_children, &process);
    assert_eq!(kind, ErrorKind::UnsupportedFeature);
    for period in [0, 999, 1 << 31] {
        let spec = SamplerSpec::new([(EventSpec::new(Hardware::Instructions), period)]);
        let (kind, text) = refusal(&sim, &spec, &process);
        assert_eq!(kind, ErrorKind::InvalidConfiguration, "{text}");
        assert!(text.contains("1000 to 2147483647"), "{text}");
    }
    let (kind, _) = refusal(&sim, &SamplerSpec::new([]), &process);
    assert_eq!(kind, ErrorKind::InvalidConfiguration);
    let (kind, _) = refusal(&sim, &instructions(), &Target::Process(pid + 1000));
    assert_eq!(kind, ErrorKind::NoSuchTarget);
    let (kind, text) = refusal(&sim, &instructions(), &Target::Cpu(0));
    assert_eq!(kind, ErrorKind::NoPermission, "{text}");
    sim.lock().is_root = true;
    let backend = backend(&sim).expect("a backend");
    let opened = backend.open_sampler(&instructions(), &Target::AllCpus);
    assert_eq!(sim.lock().taken(), 2);
    drop(opened.expect("a sampler"));
    assert_eq!(sim.lock().taken(), 0);
}

#[test]
fn a_process_has_one_log() {
    let sim = Sim::new();
    let pid = sim.lock().asleep();
    let process = Target::Process(pid);
    let (backend, sampler) = open(&sim, pid);
    let mut cycles = spec(&[Hardware::Cycles]);
    cycles.attributes.inherit = true;
    let (kind, text) = refusal(&sim, &cycles, &process);
    assert_eq!(kind, ErrorKind::Busy);
    assert!(text.contains("another sampler"), "{text}");
    drop(sampler);
    // The driver has forgotten the first: all its counters are given back.
    let counted = backend.open_sampler(&instructions(), &process);
    let mut sampler = counted.expect("a sampler");
    let other = sim.lock().asleep();
    let attached = backend.attach_sampler(&mut sampler, &Target::Process(other));
    attached.expect("another process");
    for refused in [Target::Process(own()), Target::Cpu(0)] {
        let refused = backend.attach_sampler(&mut sampler, &refused);
        assert_eq!(
            refused.map_err(|e| e.kind()),
            Err(ErrorKind::UnsupportedFeature)
        );
    }
    let group = quipu_hal::GroupSpec::single(Hardware::Cycles);
    let group = backend.open_group(&group, &process).expect("a group");
    drop(sampler);
    let (kind, text) = refusal(&sim, &instructions(), &process);
    assert_eq!(kind, ErrorKind::Busy);
    assert!(text.contains("no counter open"), "{text}");
    drop(group);
    assert!(backend.open_sampler(&instructions(), &process).is_ok());
}
