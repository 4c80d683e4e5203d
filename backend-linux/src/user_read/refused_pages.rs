//! The PMUs whose counters' pages may not be read, so that they are mapped once and not for every group.

use std::sync::{Mutex, PoisonError};

use super::Obstacle;
use crate::event_bits::EventBits;

/// The refusals that pages of counters have shown, by PMU. One may be permitted later (the PMU's file `rdpmc`): a
/// backend that is made then finds out.
#[derive(Debug, Default)]
pub(crate) struct RefusedPages(Mutex<Vec<(u64, Obstacle)>>);

impl RefusedPages {
    /// Returns an obstacle that the page of a counter of the same PMU has shown.
    pub(crate) fn check(&self, members: &[EventBits]) -> Result<(), Obstacle> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_of = |pmu: u64| members.iter().any(|bits| bits.pmu() == pmu);
        match known.iter().find(|(pmu, _)| is_of(*pmu)) {
            Some((_, obstacle)) => Err(*obstacle),
            None => Ok(()),
        }
    }

    /// Remembers an obstacle of a group, if it is one of all counters of its only PMU.
    pub(crate) fn remember(&self, members: &[EventBits], obstacle: Obstacle) {
        let lasting = matches!(
            obstacle,
            Obstacle::NotReadable | Obstacle::AmbiguousCapabilities
        );
        let Some((first, others)) = members.split_first() else {
            return;
        };
        let pmu = first.pmu();
        if lasting && others.iter().all(|bits| bits.pmu() == pmu) {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.iter().any(|(known, _)| *known == pmu) {
                known.push((pmu, obstacle));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_hal::{Hardware, PerfConfig};

    use super::*;

    #[test]
    fn a_refusal_is_that_of_its_pmu() {
        let core = EventBits::hardware(Hardware::Cycles);
        let instructions = EventBits::hardware(Hardware::Instructions);
        // Of one kind of core of a hybrid CPU: the PMU's type is in the high half.
        let [efficient, other] = [10, 8].map(|pmu| EventBits::of(PerfConfig::new(0, pmu << 32)));
        let refused = RefusedPages::default();
        refused.remember(&[efficient], Obstacle::Mapping(libc::ENOMEM));
        refused.remember(&[efficient, core], Obstacle::NotReadable);
        refused.remember(&[], Obstacle::NotReadable);
        assert_eq!(refused.check(&[core]), Ok(()));
        assert_eq!(refused.check(&[efficient]), Ok(()));
        for _ in 0..2 {
            refused.remember(&[efficient, efficient], Obstacle::NotReadable);
        }
        assert_eq!(refused.check(&[core, other]), Ok(()));
        assert_eq!(
            refused.check(&[core, efficient]),
            Err(Obstacle::NotReadable)
        );
        refused.remember(&[core], Obstacle::AmbiguousCapabilities);
        assert_eq!(
            refused.check(&[instructions]),
            Err(Obstacle::AmbiguousCapabilities)
        );
    }
}
