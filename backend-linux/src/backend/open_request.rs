//! One request to open a group, in every part of its target.

use std::collections::BTreeSet;

use quipu_hal::{
    Error, ErrorKind, EventInfo, EventSpec, Group as _, GroupSpec, MaxRate, Part, Result, Target,
};

use crate::counter_test::CounterTest;
#[cfg(feature = "names")]
use crate::events::condition;
use crate::events::{EventSource, Placement, Rates};
use crate::group::kernel_group::KernelGroup;
use crate::group::open_part::{extend_part, open_part};
use crate::group::{LinuxGroup, open_error, overflow};
use crate::read::{KnownPages, Obstacle};
use crate::sys::{OpenFailure, perf_event_open};
use crate::targets::{self, Attachment, PlannedPart, plan};

/// The most listings of the threads of a process until no new one appears.
const MOST_LISTINGS: usize = 100;

/// The parts of a target that were opened, and a kernel group for each.
type OpenParts = (Vec<Part>, Vec<KernelGroup>);

/// One call of [`LinuxBackend::open_group`](crate::LinuxBackend::open_group), its members resolved.
pub(super) struct OpenRequest<'a> {
    pub(super) spec: &'a GroupSpec,
    pub(super) target: &'a Target,
    pub(super) events: &'a EventSource,
    pub(super) rates: &'a Rates,
    pub(super) placements: &'a [Placement],
    /// The core PMUs that have counters which do not count.
    pub(super) dead_counters: Vec<&'static CounterTest>,
    pub(super) infos: &'a [EventInfo],
    /// Why the counters may not be read in user space.
    pub(super) user_reads: Result<(), Obstacle>,
    pub(super) known_pages: &'a KnownPages,
}

impl OpenRequest<'_> {
    /// Returns the parts of the target, and a kernel group for each.
    pub(super) fn open_everywhere(&self) -> Result<OpenParts> {
        let attachments = targets::attachments(self.target)?;
        let expected = attachments.list.len();
        let mut opened = (Vec::with_capacity(expected), Vec::with_capacity(expected));
        let mut planned = self.open_at(&attachments.list, &mut opened)?;
        if let Target::Process(pid) = self.target
            && !self.spec.attributes.inherit
        {
            let known = attachments
                .list
                .iter()
                .filter_map(|attachment| attachment.part.thread);
            planned += self.open_new_threads(*pid, known.collect(), &mut opened)?;
        }
        if !opened.0.is_empty() {
            return Ok(opened);
        }
        let names: Vec<_> = self.spec.members.iter().map(EventSpec::to_string).collect();
        let attempted = format!("open {} on {}", names.join(","), self.target);
        Err(if planned == 0 {
            Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("no CPU of the target can count all of these events")
        } else {
            Error::new(ErrorKind::NoSuchTarget, attempted).with_reason("it has ended")
        })
    }

    /// Opens the group in the threads that have appeared since, until there are none. Returns the number of parts planned.
    fn open_new_threads(
        &self,
        pid: i32,
        mut known: BTreeSet<i32>,
        opened: &mut OpenParts,
    ) -> Result<usize> {
        let mut planned = 0;
        for _ in 0..MOST_LISTINGS {
            // The process may have ended; what was counted of it is still there to be read.
            let mut threads = targets::threads_of(pid).unwrap_or_default();
            threads.retain(|tid| known.insert(*tid));
            if threads.is_empty() {
                break;
            }
            let new: Vec<_> = threads.into_iter().map(targets::thread).collect();
            planned += self.open_at(&new, opened)?;
        }
        Ok(planned)
    }

    /// Refuses a part that needs more counters than count on its core PMU.
    fn check_counters(&self, part: &PlannedPart) -> Result<()> {
        let core = part.part.core.as_deref();
        let of_part = |test: &&&CounterTest| core.is_none_or(|core| core == test.pmu);
        let Some(test) = self.dead_counters.iter().find(of_part) else {
            return Ok(());
        };
        let takes = |placement: &&Placement| self.events.core_pmus().give_counter(placement);
        let needed = self.placements.iter().filter(takes).count();
        if needed > test.counting {
            return Err(test.refusal(needed));
        }
        Ok(())
    }

    /// Opens the group at each of these attachments, and adds what it opens; returns the number of parts planned.
    fn open_at(
        &self,
        attachments: &[Attachment],
        (parts, groups): &mut OpenParts,
    ) -> Result<usize> {
        let cores = self.events.core_pmus().of(self.placements);
        let planned = plan(self.placements, cores, attachments);
        let number = planned.len();
        for mut part in planned {
            self.check_counters(&part)?;
            if self.user_reads.is_ok() {
                part.request_user_reads();
            }
            match open_part(self.spec, &part, perf_event_open) {
                Ok(source) => {
                    let mut group = KernelGroup::new(source, part.has_live());
                    self.set_up(&mut group, &part, 0)?;
                    self.map_pages(&mut group, &part);
                    parts.push(part.part);
                    groups.push(group);
                }
                Err(refused)
                    if refused.failure == OpenFailure::Errno(libc::ESRCH)
                        && matches!(self.target, Target::Process(_)) => {}
                Err(refused) => {
                    // The counters that did open may be what there was no room beside.
                    groups.clear();
                    let (spec, target) = (self.spec, self.target);
                    return Err(open_error::explain(
                        &refused,
                        spec,
                        target,
                        &part,
                        self.events,
                    ));
                }
            }
        }
        Ok(number)
    }

    /// Maps the pages of a part that was just opened, where it may be read in user space.
    fn map_pages(&self, group: &mut KernelGroup, part: &PlannedPart) {
        let known = self
            .user_reads
            .and_then(|()| self.known_pages.of(&part.bits));
        match known {
            Ok(known) => {
                let shown = group.read_in_user_space(known);
                if known.is_none() {
                    self.known_pages.remember(&part.bits, shown);
                }
            }
            Err(obstacle) => group.read_by_calls(obstacle),
        }
    }

    /// Sets up the counters of a part from this member on, which have just been opened.
    fn set_up(&self, group: &mut KernelGroup, part: &PlannedPart, first: usize) -> Result<()> {
        group.send_signals(self.spec, &part.bits)?;
        for i in first..part.bits.len() {
            #[cfg(feature = "names")]
            if let Some(fd) = group.fds().of(i) {
                condition::set(fd, &self.spec.members[i]).map_err(|e| e.with_member(i))?;
            }
            // What its map says itself, or else.
            let rate = match self.infos[i].max_rate {
                Some(rate) => MaxRate::per_second(rate),
                None => self.rates.of(&part.bits[i], self.events),
            };
            group.set_max_rate(i, rate);
        }
        Ok(())
    }

    /// Opens the members that a group lacks, where all are in the one part that it has; it knows only its first ones then.
    pub(super) fn extend(&self, group: &mut LinuxGroup) -> Option<()> {
        let attachments = targets::attachments(self.target).ok()?;
        let cores = self.events.core_pmus().of(self.placements);
        let mut parts = plan(self.placements, cores, &attachments.list);
        let mut part = parts.pop_if(|part| group.parts() == [part.part.clone()])?;
        if !parts.is_empty() || overflow::is_asked_for(self.spec) {
            return None;
        }
        self.check_counters(&part).ok()?;
        if self.user_reads.is_ok() {
            part.request_user_reads();
        }
        let first = group.members().len();
        let kernel_group = group.only_kernel_group()?;
        extend_part(kernel_group, self.spec, &part, perf_event_open).ok()?;
        self.set_up(kernel_group, &part, first).ok()
    }
}

#[cfg(all(test, feature = "counter-test"))]
mod tests;
