//! The PMUs whose counters' pages may be read, and those where they may not: found out once, and not for every group.

use std::sync::{Mutex, PoisonError};

use super::obstacle::Obstacle;
use super::pages::Pages;
use crate::events::EventBits;

/// The pages that counters have shown, or what was in the way, by PMU. Either may change later (the PMU's file `rdpmc`): a
/// page that does not allow it any more is not read; where it is permitted meanwhile, a backend that is made then finds out.
#[derive(Debug, Default)]
pub(crate) struct KnownPages(Mutex<Vec<(u64, Result<Pages, Obstacle>)>>);

impl KnownPages {
    /// Returns what the pages of a group have, if counters of the PMU of each member have shown it; `None` if not.
    ///
    /// # Errors
    /// An obstacle that a counter of the PMU of a member has shown.
    pub(crate) fn of(&self, members: &[EventBits]) -> Result<Option<Pages>, Obstacle> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = Some(Pages { have_times: true });
        for member in members {
            let pmu = member.pmu();
            let shown = known.iter().find(|(known, _)| *known == pmu);
            let shown = shown.map(|(_, shown)| *shown).transpose()?;
            all = all.zip(shown).map(|(all, pages)| Pages {
                have_times: all.have_times && pages.have_times,
            });
        }
        Ok(all)
    }

    /// Remembers what the pages of a group have shown, if it is true of all counters of its only PMU: on x86 the kernel
    /// decides for the PMU, elsewhere event by event (`config1` on ARM).
    pub(crate) fn remember(&self, members: &[EventBits], shown: Result<Pages, Obstacle>) {
        let of_the_pmu = cfg!(any(target_arch = "x86", target_arch = "x86_64"));
        let lasting = match shown {
            Ok(_) | Err(Obstacle::NotReadable) => of_the_pmu,
            Err(Obstacle::AmbiguousCapabilities) => true,
            Err(_) => false,
        };
        let Some((first, others)) = members.split_first() else {
            return;
        };
        let pmu = first.pmu();
        if lasting && others.iter().all(|bits| bits.pmu() == pmu) {
            let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !known.iter().any(|(known, _)| *known == pmu) {
                known.push((pmu, shown));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use quipu_hal::{Hardware, PerfConfig};

    use super::*;

    const OF_THE_PMU: bool = cfg!(any(target_arch = "x86", target_arch = "x86_64"));

    /// Of one kind of core of a hybrid CPU: the PMU's type is in the high half.
    fn of_core(pmu: u64) -> EventBits {
        EventBits::of(PerfConfig::new(0, pmu << 32))
    }

    #[test]
    fn a_refusal_is_that_of_its_pmu() {
        let core = EventBits::hardware(Hardware::Cycles);
        let instructions = EventBits::hardware(Hardware::Instructions);
        let [efficient, other] = [10, 8].map(of_core);
        let pages = KnownPages::default();
        pages.remember(&[efficient], Err(Obstacle::Mapping(libc::ENOMEM)));
        pages.remember(&[efficient, core], Err(Obstacle::NotReadable));
        pages.remember(&[], Err(Obstacle::NotReadable));
        assert_eq!(pages.of(&[core]), Ok(None));
        assert_eq!(pages.of(&[efficient]), Ok(None));
        for _ in 0..2 {
            pages.remember(&[efficient, efficient], Err(Obstacle::NotReadable));
        }
        assert_eq!(pages.of(&[core, other]), Ok(None));
        let expected = match OF_THE_PMU {
            true => Err(Obstacle::NotReadable),
            false => Ok(None),
        };
        assert_eq!(pages.of(&[core, efficient]), expected);
        pages.remember(&[core], Err(Obstacle::AmbiguousCapabilities));
        assert_eq!(
            pages.of(&[instructions]),
            Err(Obstacle::AmbiguousCapabilities)
        );
    }

    #[test]
    fn pages_are_known_where_the_pmu_of_each_member_has_shown_some() {
        let [efficient, other, third] = [10, 8, 4].map(of_core);
        let pages = KnownPages::default();
        let known = |have_times| OF_THE_PMU.then_some(Pages { have_times });
        pages.remember(&[efficient], Ok(Pages { have_times: true }));
        assert_eq!(pages.of(&[efficient, efficient]), Ok(known(true)));
        assert_eq!(pages.of(&[efficient, other]), Ok(None));
        pages.remember(&[other], Ok(Pages { have_times: false }));
        assert_eq!(pages.of(&[efficient, other]), Ok(known(false)));
        pages.remember(&[third], Err(Obstacle::AmbiguousCapabilities));
        let expected = Err(Obstacle::AmbiguousCapabilities);
        assert_eq!(pages.of(&[other, third]), expected);
    }
}
