//! A process that is killed after any one of its writes leaves nothing that a restore does not repair.
//!
//! A process of its own: a program that another test starts holds the locks of all records until it executes.

#[path = "../it/rewritten.rs"]
mod rewritten;

use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use quipu_hal::{Encoding, P5Function, Result, X86Select};
use quipu_msr::sim::{Generation, Level, SimulatedMsrs, Stretch};
use quipu_msr::{MsrBus, MsrPmu, Options, Repair, restore};
use quipu_pmu::Pmu;

use rewritten::Rewritten;

/// A process that is killed after so many writes: what it does later does not happen, and its record
/// stays as it was then.
struct Victim {
    record: PathBuf,
    writes: AtomicU64,
    left: Mutex<Option<Vec<u8>>>,
}

impl Victim {
    fn write(&self, bus: &SimulatedMsrs, cpu: u32, address: u32, value: u64) -> Result<()> {
        let less = |left: u64| left.checked_sub(1);
        let order = Ordering::SeqCst;
        if self.writes.fetch_update(order, order, less).is_ok() {
            return bus.write(cpu, address, value);
        }
        let mut left = self.left.lock().unwrap();
        left.get_or_insert_with(|| std::fs::read(&self.record).unwrap());
        Ok(())
    }
}

fn encoding(generation: Generation) -> Encoding {
    let event = generation.instructions() as u16;
    match generation {
        Generation::P5 => Encoding::P5(P5Function(event | P5Function::USER)),
        _ => Encoding::X86(X86Select::new(event, 0).with_flags(X86Select::USER)),
    }
}

/// Counts with two counters; a dead process returns no errors.
fn count(pmu: &MsrPmu<impl MsrBus>, bus: &SimulatedMsrs, generation: Generation) -> Result<()> {
    pmu.acquire(0)?;
    for slot in [0, 1] {
        pmu.program(0, slot, &encoding(generation))?;
        pmu.clear(0, slot)?;
    }
    pmu.start(0, &[0, 1], &mut [0; 2])?;
    let stretch = Stretch::new(Level::User, 7).occurring(generation.instructions(), 1);
    bus.run(0, &stretch);
    pmu.stop(0, &[0, 1], &mut [0; 2])?;
    pmu.release(0)
}

/// Settings of another program whose counters are taken: counter 0 enabled, with a value.
fn occupy(bus: &SimulatedMsrs, generation: Generation) {
    let settings: &[(u32, u64)] = match generation {
        Generation::P5 => &[(0x12, 0x1234), (0x11, 0x0200_0096)],
        Generation::P6 | Generation::Intel { version: 1, .. } => {
            &[(0xc1, 0x1234), (0x186, 0x53_0079)]
        }
        Generation::Intel { .. } => &[
            (0xc1, 0x1234),
            (0x186, 0x53_003c),
            (0x38d, 0xb0),
            (0x38f, 0x2_0000_0001),
        ],
        Generation::AmdPerfMonV2 { .. } => &[
            (0xc001_0201, 0x1234),
            (0xc001_0200, 0x53_0076),
            (0xc000_0301, 1),
        ],
        _ => &[(0xc001_0004, 0x1234), (0xc001_0000, 0x53_0076)],
    };
    for &(address, value) in settings {
        bus.write(0, address, value).unwrap();
    }
}

/// Returns the values that are restored: not overflow bits, and not a counter that its owner has enabled.
fn settings(bus: &SimulatedMsrs) -> Vec<(u32, u64)> {
    let mut dump = bus.dump(0);
    dump.retain(|(address, _)| ![0x38e, 0xc000_0300].contains(address));
    dump
}

#[test]
fn a_restore_repairs_what_a_kill_after_any_write_leaves() {
    for &generation in Generation::ALL {
        let directory = tempfile::tempdir().unwrap();
        let journal = directory.path().join("quipu");
        for writes in 0.. {
            let bus = SimulatedMsrs::new(generation, 1);
            occupy(&bus, generation);
            let before = settings(&bus);
            let victim = Arc::new(Victim {
                record: journal.join("cpu0"),
                writes: AtomicU64::new(writes),
                left: Mutex::default(),
            });
            let writer = Arc::clone(&victim);
            let dying = Rewritten {
                bus: bus.clone(),
                write: move |bus: &_, cpu, address, value| writer.write(bus, cpu, address, value),
            };
            let options = Options::default()
                .with_journal(journal.clone())
                .taking_enabled();
            let pmu = MsrPmu::new(dying, &bus.model(), options).unwrap();
            let counted = count(&pmu, &bus, generation);
            drop(pmu);
            let Some(left) = victim.left.lock().unwrap().take() else {
                counted.unwrap();
                assert!(writes > 8, "{generation:?}: no more than {writes} writes");
                assert_eq!(settings(&bus), before, "{generation:?}");
                break;
            };
            std::fs::write(&victim.record, left).unwrap();
            let repairs = restore(bus.clone(), &bus.model(), &journal).unwrap();
            assert!(
                matches!(&*repairs, [Repair::Restored { left, .. }] if left.is_empty()),
                "{generation:?} after {writes} writes: {repairs:?}"
            );
            assert_eq!(
                settings(&bus),
                before,
                "{generation:?} after {writes} writes"
            );
        }
    }
}
