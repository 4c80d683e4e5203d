//! Counting CPUs on systems that count no threads there: by any backend that reaches CPUs, also the registers that are
//! used nowhere else unless they are named.

use std::sync::{Arc, OnceLock};

use quipu::{Backend, Error, EventSetBuilder, Machine, NativeEvents, Target};

use crate::code::{ENOSUPP, Outcome, refused};

/// Returns the backend over the registers of CPUs, or why it cannot be used, on systems where nothing else counts the CPU's events.
pub(crate) fn registers() -> Option<Result<Arc<dyn Backend>, Error>> {
    let has_no_other = cfg!(any(target_os = "freebsd", target_os = "dragonfly"));
    has_no_other.then(|| Machine::this().named("msr"))
}

/// Returns true if a target is of CPUs, whatever runs there.
pub(crate) fn are_counted(target: &Target) -> bool {
    matches!(
        target,
        Target::Cpu(_) | Target::CurrentCpu | Target::AllCpus
    )
}

/// Has a set of CPUs counted by their registers, too.
pub(super) fn reach(builder: &mut EventSetBuilder, target: &Target) {
    static MACHINE: OnceLock<Arc<Machine>> = OnceLock::new();
    let (true, Some(Ok(registers))) = (are_counted(target), registers()) else {
        return;
    };
    let machine = || {
        Arc::new(Machine::with_native_events(
            Arc::clone(NativeEvents::this()),
        ))
    };
    let usable = Machine::this().usable().cloned();
    builder
        .machine(Arc::clone(MACHINE.get_or_init(machine)))
        .backends(usable.chain([registers]));
}

/// Returns a code if no backend reaches CPUs.
pub(super) fn check(target: &Target) -> Outcome {
    let registers = match registers() {
        Some(Err(error)) => return Err(refused(&error)),
        Some(Ok(registers)) => Some(registers),
        None => None,
    };
    let mut backends = Machine::this().usable().cloned().chain(registers);
    match backends.any(|backend| backend.capabilities().targets.contains(target.kind())) {
        true => Ok(()),
        false => Err(ENOSUPP),
    }
}
