//! Free counters that count the event of another too, and show that another process has zeroed one of them.

use std::time::Duration;

use crate::support::{SimBackend, SimGroup, backend, open, two_events, values, with_counters};
use quipu_hal::{Backend, Count, ErrorKind, Group};
use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};
use quipu_pctr::{Control, witness_on};
use quipu_pmu::Pmu;

const MILLISECOND: Duration = Duration::from_millis(1);

/// A machine on which an event counts, with a witness on counter 1.
struct Witnessed {
    said: String,
    machine: SimMachine,
    backend: SimBackend,
    group: SimGroup,
    name: &'static str,
    code: u8,
}

impl Witnessed {
    fn new(era: Era, processor: Processor, cpus: usize) -> Self {
        let [(name, code), _] = two_events(processor);
        let machine = SimMachine::new(era, processor, cpus);
        let backend = backend(&machine);
        let group = open(&backend, &[name]);
        let [ours, witness, ..] = machine.functions(0);
        let said = format!("{era:?} {processor:?}, {cpus} CPUs");
        assert!(ours != 0 && witness == ours, "{said}");
        Self {
            said,
            machine,
            backend,
            group,
            name,
            code,
        }
    }

    /// On every machine whose CPUs are in the reach of any thread.
    fn everywhere() -> impl Iterator<Item = Self> {
        with_counters().flat_map(|(era, processor)| {
            let cpus = if era == Era::Amd64Of2019 { 3 } else { 1 };
            (1..=cpus).map(move |cpus| Self::new(era, processor, cpus))
        })
    }

    fn occur(&self, times: u64) {
        self.machine.pass(MILLISECOND);
        self.machine.occur(self.code, 0, Level::User, times);
    }

    /// Another process sets a counter to another function and back.
    fn zero(&self, counter: usize) {
        let control = Control::new(self.machine.open()).unwrap();
        let word = self.machine.functions(0)[counter];
        for word in [word ^ 1, word] {
            control.set(counter as u8, word).unwrap();
        }
    }

    /// Another process sets counter 1, on every CPU that there is.
    fn take_the_witness(&self, word: u32) {
        for cpu in 0..self.backend.pmu().cpus().len() {
            self.machine.overwrite(cpu, 1, word);
        }
    }
}

/// A witness is no other event, for which counter 0 of a P6 would stay enabled.
#[test]
fn nothing_stays_set_when_what_is_witnessed_stops() {
    for mut on in Witnessed::everywhere() {
        on.group.disable().unwrap();
        assert_eq!(on.machine.functions(0), [0; 4], "{}", on.said);
    }
}

/// Whatever was counted since: it was never read before, or has passed what it was then.
#[test]
fn a_counter_that_has_passed_its_last_value_since_it_was_zeroed_is_told() {
    type End = fn(&mut SimGroup) -> quipu_hal::Result<()>;
    let ends: [End; 2] = [
        |group| group.read(&mut group.read_buf()),
        |group| group.disable(),
    ];
    let cases: [(&[usize], bool); 5] = [
        (&[0], false),
        (&[0], true),
        (&[1], true),
        (&[0, 1], true),
        (&[1, 0], true),
    ];
    for (counters, was_read) in cases {
        for end in ends {
            for mut on in Witnessed::everywhere() {
                let said = format!("{} {counters:?} {was_read}", on.said);
                on.occur(100_000);
                if was_read {
                    assert_eq!(values(&mut on.group), [100_000], "{said}");
                }
                for &counter in counters {
                    on.zero(counter);
                    on.occur(200_000);
                }
                let told = end(&mut on.group).unwrap_err();
                assert_eq!(told.kind(), ErrorKind::Interference, "{said}");
                assert!(told.to_string().contains("which counts the same"), "{told}");
                let mut buf = on.group.read_buf();
                on.group.read(&mut buf).unwrap();
                let exact = matches!(buf.total(0), Count::Exact(_));
                assert!(!exact, "{said}: {:?}", buf.total(0));
            }
        }
    }
}

/// The count goes on through starts and stops, and no false alarm comes of the witness.
#[test]
fn counters_that_were_not_zeroed_are_believed() {
    for mut on in Witnessed::everywhere() {
        for round in 1..=100 {
            on.occur(1_000_000);
            on.backend.tick().unwrap();
            assert_eq!(values(&mut on.group), [1_000_000 * round], "{}", on.said);
        }
        on.group.disable().unwrap();
        assert_eq!(values(&mut on.group), [100_000_000], "{}", on.said);
        // Neither counts any more, and no other process is kept from the witness's.
        assert_eq!(on.machine.functions(0)[1], 0, "{}", on.said);
        assert_eq!(on.machine.own_claims() >> 1, 0, "{}", on.said);
        on.group.enable().unwrap();
        on.occur(7);
        assert_eq!(values(&mut on.group), [100_000_007], "{}", on.said);
    }
}

/// Its function is left as it was set, and the count goes on.
#[test]
fn the_counter_of_a_witness_is_anyones_who_sets_it() {
    for mut on in Witnessed::everywhere() {
        on.occur(1_000);
        let theirs = on.machine.functions(0)[1] ^ 1;
        for looked_at in [true, false] {
            on.take_the_witness(theirs);
            on.occur(10);
            if looked_at {
                let counted = values(&mut on.group);
                assert_eq!(counted, [1_010], "{}", on.said);
                assert_eq!(on.machine.own_claims(), 0b1, "{}", on.said);
                on.take_the_witness(0);
            }
        }
        on.group.disable().unwrap();
        assert_eq!(values(&mut on.group), [1_020], "{}", on.said);
        drop(on.group);
        let [ours, left, ..] = on.machine.functions(0);
        assert_eq!((ours, left), (0, theirs), "{}", on.said);
        assert_eq!(on.backend.restore_failures(), [], "{}", on.said);
    }
}

#[test]
fn an_event_gets_the_counter_of_a_witness() {
    for mut on in Witnessed::everywhere() {
        on.occur(1_000);
        let all = on.backend.capabilities().slots.unwrap();
        let mut others = open(&on.backend, &vec![on.name; all - 1]);
        on.occur(30);
        assert_eq!(values(&mut on.group), [1_030], "{}", on.said);
        assert_eq!(values(&mut others), vec![30; all - 1], "{}", on.said);
        drop(others);
        on.occur(5);
        assert_eq!(values(&mut on.group), [1_035], "{}", on.said);
        drop(on.group);
        assert_eq!(on.machine.functions(0), [0; 4], "{}", on.said);
        assert_eq!(on.machine.own_claims(), 0, "{}", on.said);
    }
}

/// Another process that counts with Quipu takes the counter of a witness, and may even set the function that it has.
#[test]
fn another_process_that_counts_with_quipu_gets_the_counter_of_a_witness() {
    for mut on in Witnessed::everywhere() {
        let word = on.machine.functions(0)[1];
        on.occur(100_000);
        assert_eq!(values(&mut on.group), [100_000], "{}", on.said);
        on.machine.claim_for(1, Some(4711));
        on.take_the_witness(word);
        on.occur(50);
        assert_eq!(values(&mut on.group), [100_050], "{}", on.said);
        drop(on.group);
        assert_eq!(on.machine.functions(0)[..2], [0, word], "{}", on.said);
        let status = Control::new(on.machine.open()).unwrap().read().unwrap();
        assert_eq!(status.counters[1], 50, "{}", on.said);
        assert_eq!(on.backend.restore_failures(), [], "{}", on.said);
    }
}

/// To this process a witness of another is a free counter, which was found stopped.
#[test]
fn a_witness_of_another_process_is_a_free_counter() {
    for (era, processor) in with_counters() {
        let said = format!("{era:?} {processor:?}");
        let machine = SimMachine::new(era, processor, 1);
        let backend = backend(&machine);
        let [(name, code), (_, other)] = two_events(processor);
        let gate = if processor == Processor::P5 {
            0xc0
        } else {
            0x0043_0000
        };
        let theirs = gate | u32::from(other);
        machine.overwrite(0, 0, theirs);
        machine.occur(other, 0, Level::User, 9);
        machine.claim_for(witness_on(0).into(), Some(4711));
        let mut group = open(&backend, &[name]);
        machine.occur(code, 0, Level::User, 6);
        assert_eq!(values(&mut group), [6], "{said}");
        assert_ne!(machine.functions(0)[0], theirs, "{said}");
        drop(group);
        assert_eq!(machine.functions(0), [0; 4], "{said}");
        assert_eq!(backend.restore_failures(), [], "{said}");
    }
}
