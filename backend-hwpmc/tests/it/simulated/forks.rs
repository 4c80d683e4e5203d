//! A watch for forks in the simulated system.

use quipu_hwpmc::Forks;

use super::{Conceals, Sim};

/// The forks of a process since there were so many.
pub(super) struct ForksOf(pub(super) Sim, pub(super) i32, pub(super) u64);

impl Forks for ForksOf {
    fn has_forked(&mut self) -> bool {
        let system = self.0.lock();
        let forks = system
            .processes
            .get(&self.1)
            .map_or(self.2, |process| process.forks);
        forks != self.2 && system.conceals != Conceals::Others
    }
}
