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

    /// Remembers an obstacle of a group, if it is one of all counters of its only PMU: on x86 the kernel decides for the
    /// PMU, elsewhere event by event (`config1` on ARM).
    pub(crate) fn remember(&self, members: &[EventBits], obstacle: Obstacle) {
        let of_the_pmu = cfg!(any(target_arch = "x86", target_arch = "x86_64"));
        let lasting = match obstacle {
            Obstacle::NotReadable => of_the_pmu,
            Obstacle::AmbiguousCapabilities => true,
            _ => false,
        };
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
        let of_the_pmu = cfg!(any(target_arch = "x86", target_arch = "x86_64"));
        let expected = match of_the_pmu {
            true => Err(Obstacle::NotReadable),
            false => Ok(()),
        };
        assert_eq!(refused.check(&[core, efficient]), expected);
        refused.remember(&[core], Obstacle::AmbiguousCapabilities);
        assert_eq!(
            refused.check(&[instructions]),
            Err(Obstacle::AmbiguousCapabilities)
        );
    }
}
