//! Records of a journal that a killed process may have left, on every simulated generation of CPUs: what
//! they ask for beyond the allow-list is not written, and the second time there is nothing left.
#![no_main]

use std::os::unix::fs::PermissionsExt;

use libfuzzer_sys::fuzz_target;
use quipu_fuzz::{scratch, written};
use quipu_msr::sim::{Generation, SimulatedMsrs};
use quipu_msr::{Repair, restore};

fuzz_target!(|input: &[u8]| {
    let Some((first, text)) = input.split_first() else {
        return;
    };
    let generation = Generation::ALL[usize::from(*first) % Generation::ALL.len()];
    let bus = SimulatedMsrs::new(generation, 1);
    written("journal/cpu0", text);
    let directory = scratch("journal");
    std::fs::set_permissions(&directory, PermissionsExt::from_mode(0o700)).expect("its owner");
    let before = bus.dump(0);
    let repaired = restore(bus.clone(), &bus.model(), &directory);
    let is_restored = |repairs: &Vec<Repair>| {
        let mut repairs = repairs.iter();
        repairs.any(|repair| matches!(repair, Repair::Restored { .. }))
    };
    if repaired.as_ref().is_ok_and(|repairs| !is_restored(repairs)) {
        assert_eq!(bus.dump(0), before);
    }
    if repaired.is_ok() {
        let after = bus.dump(0);
        let again = restore(bus.clone(), &bus.model(), &directory).expect("it went well before");
        assert!(again.is_empty(), "{again:?}");
        assert_eq!(bus.dump(0), after);
    }
});
