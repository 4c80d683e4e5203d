//! Samples that are added up as they are taken.

use std::mem;
use std::path::Path;

use quipu_perf_data::RecordedEvent;
use quipu_shell::Failure;

use super::super::options::Options;
use super::super::profile::Profile;
use super::super::sort::USUAL;
use super::super::stacks::KnownChains;
use super::Loading;

/// As many lists of functions have numbers at once.
const MOST_LISTS: usize = 1 << 18;
/// Parts of a sample that are counted, so that few samples age too.
const PARTS: u64 = 256;

impl Loading {
    /// Returns the state before the first sample, for stacks by process name, file and function.
    #[cfg_attr(
        target_os = "freebsd",
        allow(dead_code, reason = "no thread of this process is sampled there")
    )]
    pub(crate) fn of_stacks(events: &[RecordedEvent], names: &[String]) -> Result<Self, Failure> {
        let options = Options::with_callers_of(Path::new(""));
        let selection = options.selection()?;
        Ok(Self::new(&options, (selection, &USUAL), events, names))
    }

    /// Adds what has been sampled since the last time to the stacks.
    pub(crate) fn gather(&mut self) {
        for (event, of_event) in self.profile.events.iter_mut().zip(&mut self.events) {
            let weights = of_event.gather(event);
            for (stack, mut weight) in weights.iter() {
                weight.samples *= PARTS;
                event.stacks.add(stack, weight);
            }
        }
        if self.profile.stacks.lists.len() > MOST_LISTS {
            let events = self.profile.events.iter_mut();
            self.profile
                .stacks
                .shrink_to(events.map(|event| &mut event.stacks));
            self.chains = KnownChains::default();
            self.by_thread.clear();
            self.known.clear();
            self.by_id.clear();
        }
    }

    /// Returns what has been gathered. Stacks have their samples in parts, of which [`whole_samples`] makes samples.
    pub(crate) fn profile(&self) -> &Profile {
        &self.profile
    }

    /// Has what was sampled so far weigh less, or nothing, and forgets what has no weight.
    pub(crate) fn age(&mut self, zero: bool) {
        self.gather();
        for event in &mut self.profile.events {
            event.total.age(zero);
            let least = event.total.least_remembered();
            for (stack, mut weight) in mem::take(&mut event.stacks).iter() {
                weight.age(zero);
                if weight.period >= least {
                    event.stacks.add(stack, weight);
                }
            }
        }
    }
}

/// Returns the number of samples that so many parts are.
pub(crate) fn whole_samples(parts: u64) -> u64 {
    (parts + PARTS / 2) / PARTS
}
