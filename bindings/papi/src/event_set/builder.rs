//! Builders of the facade's event sets. On systems that count no threads, CPUs are counted by any backend that reaches them,
//! also by the registers that are used nowhere else unless they are named.

use std::sync::{Arc, OnceLock};

use quipu::{Backend, Error, EventSet, EventSetBuilder, Machine, NativeEvents, Target};

use crate::boundary::call::refused;
use crate::code::{ENOSUPP, Outcome};

/// Returns a description of what is counted of a target, in user mode where no more is permitted. The counters of the BSDs are
/// those of CPUs, which are counted in the place of the thread.
pub(crate) fn counted_here(target: Target) -> EventSetBuilder {
    let mut builder = EventSet::builder();
    reach(&mut builder, &target);
    builder.target(target).user_mode_fallback(true);
    builder.cpu_fallback(cfg!(not(target_os = "linux")));
    builder
}

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
fn reach(builder: &mut EventSetBuilder, target: &Target) {
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
pub(crate) fn check(target: &Target) -> Outcome {
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
