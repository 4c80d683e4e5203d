//! The end of an engine, or of the process: registers do not end with it, and are given back.

use std::mem;
use std::sync::{Arc, PoisonError};

use super::engine::{Core, Engine};
use super::schedule::Schedule;
use crate::Pmu;

impl<P: Pmu> Engine<P> {
    /// Stops what counts, and gives back the counters that open groups have.
    pub(super) fn give_back(&self) {
        if !self.core.is_here() {
            return;
        }
        for cpu in 0..self.core.schedules() {
            // An error has no receiver here.
            let _ = self.on_cpu(cpu, move |core| {
                core.with(cpu, Schedule::give_back);
                Ok(())
            });
        }
    }
}

impl<P: Pmu> Drop for Engine<P> {
    /// In a forked process the registers are left alone, by the driver too, and threads that are not there are not
    /// waited for.
    fn drop(&mut self) {
        if !self.core.is_here() {
            mem::forget(mem::take(&mut self.threads));
            mem::forget(Arc::clone(&self.core));
        }
    }
}

impl<P: Pmu> Drop for Core<P> {
    /// Tries once more where giving back failed.
    fn drop(&mut self) {
        for cpu in &mut self.cpus {
            let schedule = cpu.schedule.get_mut();
            let schedule = schedule.unwrap_or_else(PoisonError::into_inner);
            schedule.release(&self.pmu, cpu.number);
        }
    }
}
