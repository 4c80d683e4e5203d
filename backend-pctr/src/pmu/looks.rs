//! Looks at several CPUs, where all are set together and each is read by a thread that is there.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use quipu_hal::Result;

use super::lock;
use crate::abi::{MAX_COUNTERS, Status};
use crate::control::Control;
use crate::device::PctrDevice;

/// Counts how often functions are set: what was read meanwhile may be of before or after.
///
/// Even; odd while a function is being set.
#[derive(Debug, Default)]
pub(super) struct Sets(AtomicU64);

impl Sets {
    pub(super) fn now(&self) -> u64 {
        self.0.load(Ordering::Acquire)
    }

    /// Sets a function.
    pub(super) fn setting<T>(&self, set: impl FnOnce() -> T) -> T {
        self.0.fetch_add(1, Ordering::AcqRel);
        let done = set();
        self.0.fetch_add(1, Ordering::AcqRel);
        done
    }

    /// Returns true if no function was set since the number was `then`.
    pub(super) fn unchanged(&self, then: u64) -> bool {
        then.is_multiple_of(2) && self.now() == then
    }
}

/// The CPUs, and what they were last seen to hold.
#[derive(Debug)]
pub(super) struct Looks {
    /// Every CPU that threads run on, by its APIC id, in ascending order.
    cpus: Vec<u32>,
    last: Mutex<Look>,
    /// Words that some CPU may still have, for each counter.
    words: Mutex<[Words; MAX_COUNTERS]>,
    /// The last look before the counters with these bits were stopped.
    stopped: Mutex<(u32, Vec<CpuSnapshot>)>,
}

/// The words that a counter was set to since all CPUs were last looked at, and before; 0 is left out.
///
/// A set is sent to the other CPUs by an interrupt, in which each compares its word with the last one. Two sets for which it
/// takes one interrupt, to 0 and back to the word it has, do not zero its counter. A thread that gets there comes after
/// the interrupt.
#[derive(Debug, Clone, Copy, Default)]
struct Words {
    some: [u32; 2],
    number: usize,
}

impl Words {
    fn only(word: u32) -> Self {
        let mut words = Self::default();
        words.add(word);
        words
    }

    fn add(&mut self, word: u32) {
        if word != 0 && !self.may_have(word) {
            self.some[self.number % 2] = word;
            self.number += 1;
        }
    }

    /// Returns true for a word that a CPU may have, and for any once there were too many.
    fn may_have(&self, word: u32) -> bool {
        self.number > self.some.len() || self.some[..self.number].contains(&word)
    }
}

#[derive(Debug)]
struct Look {
    /// The number of sets that it is of.
    sets: u64,
    seen: Vec<CpuSnapshot>,
}

/// The result of a look at a CPU.
#[derive(Debug, Clone, Copy)]
pub(super) enum CpuSnapshot {
    /// It was not looked at.
    Unseen,
    /// No thread got there.
    OutOfReach,
    Status(Status),
}

impl Looks {
    /// Finds the CPUs of a device; those that no thread gets to are missing.
    pub(super) fn new<D: PctrDevice>(device: &D) -> Self {
        let online = device.cpus_online();
        let cpus = Mutex::new(Vec::with_capacity(online));
        device.visit_cpus(&|| {
            let Ok(cpu) = device.cpu() else { return true };
            let mut cpus = lock(&cpus);
            if !cpus.contains(&cpu) {
                cpus.push(cpu);
            }
            cpus.len() >= online
        });
        let mut cpus = cpus.into_inner().unwrap_or_else(PoisonError::into_inner);
        cpus.sort_unstable();
        let unseen = vec![CpuSnapshot::Unseen; cpus.len()];
        Self {
            last: Mutex::new(Look {
                sets: 0,
                seen: unseen.clone(),
            }),
            words: Mutex::default(),
            stopped: Mutex::new((0, unseen)),
            cpus,
        }
    }

    pub(super) fn cpus(&self) -> &[u32] {
        &self.cpus
    }

    fn position(&self, cpu: u32) -> Option<usize> {
        self.cpus.iter().position(|known| *known == cpu)
    }

    /// Notes the word that a counter was set to.
    pub(super) fn set(&self, counter: usize, word: u32) {
        lock(&self.words)[counter].add(word);
    }

    /// Returns true if some CPU may still have a word, of that counter, which is another on this CPU.
    pub(super) fn may_have(&self, counter: usize, word: u32) -> bool {
        lock(&self.words)[counter].may_have(word)
    }

    /// Looks at CPUs, at each as early as a thread gets there, and returns what was seen of every CPU.
    ///
    /// Another thread may set functions meanwhile: then it is of before or after.
    pub(super) fn look<D: PctrDevice>(
        &self,
        control: &Control<D>,
        sets: &Sets,
        wanted: &[u32],
    ) -> Result<Vec<CpuSnapshot>> {
        // One at a time: two would keep each other from the CPUs.
        let mut last = lock(&self.last);
        let (then, device) = (sets.now(), control.device());
        let wants: Vec<bool> = self.cpus.iter().map(|cpu| wanted.contains(cpu)).collect();
        let seen = Mutex::new((vec![CpuSnapshot::Unseen; self.cpus.len()], Ok(())));
        device.visit_cpus(&|| {
            let Ok(cpu) = device.cpu() else { return true };
            if let Some(at) = self.position(cpu).filter(|&at| wants[at])
                && matches!(lock(&seen).0[at], CpuSnapshot::Unseen)
            {
                let read = control.read();
                // A thread that was moved meanwhile does not know which CPU it has read.
                let stayed = device.cpu().is_ok_and(|now| now == cpu);
                let mut seen = lock(&seen);
                match read {
                    Ok(status) if stayed && matches!(seen.0[at], CpuSnapshot::Unseen) => {
                        seen.0[at] = CpuSnapshot::Status(status);
                    }
                    Ok(_) => {}
                    Err(error) => {
                        seen.1 = Err(error);
                        return true;
                    }
                }
            }
            let seen = lock(&seen);
            let is_open = |(seen, wanted)| wanted && matches!(seen, &CpuSnapshot::Unseen);
            !seen.0.iter().zip(wants.iter().copied()).any(is_open)
        });
        let (mut seen, result) = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (seen, _) in seen.iter_mut().zip(&wants).filter(|(_, wanted)| **wanted) {
            if let CpuSnapshot::Unseen = seen {
                *seen = CpuSnapshot::OutOfReach;
            }
        }
        if let [CpuSnapshot::Status(first), others @ ..] = &*seen
            && others
                .iter()
                .all(|seen| matches!(seen, CpuSnapshot::Status(_)))
            && sets.unchanged(then)
        {
            *lock(&self.words) = first.functions.map(Words::only);
        }
        if sets.unchanged(then) && last.sets == then {
            // Another thread's snapshots of the others are still right, and it may be about to read them.
            for ((seen, before), wanted) in seen.iter_mut().zip(&last.seen).zip(&wants) {
                if !wanted {
                    *seen = *before;
                }
            }
        }
        *last = Look {
            sets: then,
            seen: seen.clone(),
        };
        result.map(|()| seen)
    }

    /// Looks at every CPU, and returns the first that no thread gets to.
    pub(super) fn look_at_all<D: PctrDevice>(
        &self,
        control: &Control<D>,
        sets: &Sets,
    ) -> Result<Option<u32>> {
        let seen = self.look(control, sets, &self.cpus)?;
        let mut looked = self.cpus.iter().zip(&seen);
        Ok(looked.find_map(|(&cpu, seen)| matches!(seen, CpuSnapshot::OutOfReach).then_some(cpu)))
    }

    /// Returns the status of a CPU as the last look has shown it, or a new one if functions were set since;
    /// `None` if no thread gets there.
    pub(super) fn status<D: PctrDevice>(
        &self,
        control: &Control<D>,
        sets: &Sets,
        cpu: u32,
    ) -> Result<Option<Status>> {
        let seen = match (self.seen(cpu, sets), self.position(cpu)) {
            (CpuSnapshot::Unseen, Some(at)) => self.look(control, sets, &[cpu])?[at],
            (seen, _) => seen,
        };
        Ok(match seen {
            CpuSnapshot::Status(status) => Some(status),
            CpuSnapshot::OutOfReach | CpuSnapshot::Unseen => None,
        })
    }

    /// Returns what the last look has shown of a CPU, if no function was set since.
    fn seen(&self, cpu: u32, sets: &Sets) -> CpuSnapshot {
        let last = lock(&self.last);
        match self.position(cpu) {
            Some(at) if sets.unchanged(last.sets) => last.seen[at],
            _ => CpuSnapshot::Unseen,
        }
    }

    /// Keeps the last look, because counters are about to be stopped.
    pub(super) fn keep(&self, counters: u32, sets: &Sets) {
        let last = lock(&self.last);
        let seen = match sets.unchanged(last.sets) {
            true => last.seen.clone(),
            false => vec![CpuSnapshot::Unseen; self.cpus.len()],
        };
        *lock(&self.stopped) = (counters, seen);
    }

    /// Forgets at what counters were stopped, because they are about to be started.
    pub(super) fn forget(&self, counters: u32) {
        lock(&self.stopped).0 &= !counters;
    }

    /// Returns what was seen of a CPU before counters were stopped, if they all were.
    pub(super) fn stopped(&self, cpu: u32, counters: u32) -> Option<CpuSnapshot> {
        let stopped = lock(&self.stopped);
        let at = self.position(cpu)?;
        (counters != 0 && stopped.0 & counters == counters).then(|| stopped.1[at])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simulation::{Era, Processor, SimMachine};

    #[test]
    fn a_cpu_is_reached_while_functions_are_set() {
        let machine = SimMachine::new(Era::Amd64Of2019, Processor::Zen, 3);
        let (control, sets) = (Control::new(machine.open()).unwrap(), Sets::default());
        let looks = Looks::new(control.device());
        // As if another thread did nothing else: no look is of one state of all functions.
        let status = |cpu| sets.setting(|| looks.status(&control, &sets, cpu).unwrap());
        for cpu in [0, 2, 4] {
            assert!(status(cpu).is_some());
        }
        machine.keep_off(Some(1));
        assert!(status(2).is_none());
    }

    #[test]
    fn a_look_at_one_cpu_keeps_what_was_seen_of_another() {
        let machine = SimMachine::new(Era::Amd64Of2019, Processor::Zen, 2);
        let (control, sets) = (Control::new(machine.open()).unwrap(), Sets::default());
        let looks = Looks::new(control.device());
        looks.look(&control, &sets, &[0, 2]).unwrap();
        looks.look(&control, &sets, &[0]).unwrap();
        assert!(matches!(looks.seen(2, &sets), CpuSnapshot::Status(_)));
        sets.setting(|| ());
        looks.look(&control, &sets, &[0]).unwrap();
        assert!(matches!(looks.seen(2, &sets), CpuSnapshot::Unseen));
    }
}
