//! An open group of the virtual PMU.

use std::fmt;
use std::sync::Arc;
use std::thread::ThreadId;
use std::time::Duration;

use quipu_hal::{Attributes, EventInfo, Group, Part, ReadBuf, Result, Simultaneity};

use super::engine::{Engine, Reader};
use super::looks::Looks;
use super::refusals::wrong_thread;
use super::scheduled_group::{Member, ScheduledGroup};
use crate::Pmu;
use crate::clock::nanoseconds;
use crate::pmu::free_running;

/// A group of counters on the slots of a [`Pmu`], in a part for each CPU.
///
/// Made by [`VirtualPmu`](crate::VirtualPmu). Dropping it closes it; the last one on a CPU puts back
/// what was found there. A group that only the measuring thread can drive has to be dropped by that
/// thread; elsewhere its registers cannot be reached, and stay as they are until the backend and all
/// its groups are gone.
///
/// A forked process (fork(2)) has no part in the registers: there, calls are refused as those of another thread are, and
/// dropping the group leaves it to the process that opened it.
pub struct VirtualGroup<P: Pmu> {
    engine: Arc<Engine<P>>,
    members: Vec<EventInfo>,
    parts: Arc<[Part]>,
    scheduled: Vec<Arc<ScheduledGroup>>,
    reader: Reader,
    thread: Option<ThreadId>,
}

impl<P: Pmu> VirtualGroup<P> {
    pub(super) fn open(
        engine: &Arc<Engine<P>>,
        infos: Vec<EventInfo>,
        members: &Arc<[Member]>,
        cpus: &[u32],
        attributes: &Attributes,
    ) -> Result<Self> {
        let core = &engine.core;
        let mut group = Self {
            thread: core.enter()?,
            reader: Reader::new(infos.len(), cpus.len()),
            engine: Arc::clone(engine),
            members: infos,
            parts: cpus.iter().map(|&cpu| Part::on_cpu(cpu)).collect(),
            scheduled: Vec::with_capacity(cpus.len()),
        };
        let together = core.pmu.sets_all_cpus();
        let shared = free_running(core.pmu.slots());
        let needs_looks = members.iter().any(|member| member.allowed & shared == 0);
        let longest = core
            .pmu
            .look_interval()
            .filter(|_| needs_looks)
            .map(nanoseconds);
        for cpus in cpus.chunks(if together { cpus.len() } else { 1 }) {
            let schedule = core.position(cpus[0]).unwrap_or(0);
            let members = Arc::clone(members);
            let (pinned, exclusive) = (attributes.pinned, attributes.exclusive);
            let looks = Looks::new(longest);
            let scheduled = ScheduledGroup::new(schedule, cpus, members, pinned, exclusive, looks);
            let scheduled = Arc::new(scheduled);
            engine.open(&scheduled)?;
            group.scheduled.push(scheduled);
        }
        if !attributes.disabled {
            group.enable()?;
        }
        Ok(group)
    }

    fn check_caller(&self, attempted: &str) -> Result<()> {
        self.engine.core.check_process(attempted)?;
        self.check_thread(attempted)
    }

    fn check_thread(&self, attempted: &str) -> Result<()> {
        match self.thread {
            Some(thread) if thread != std::thread::current().id() => Err(wrong_thread(attempted)),
            _ => Ok(()),
        }
    }
}

impl<P: Pmu> fmt::Debug for VirtualGroup<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualGroup")
            .field("members", &self.members)
            .field("parts", &self.parts)
            .field("scheduled", &self.scheduled)
            .finish_non_exhaustive()
    }
}

impl<P: Pmu> Group for VirtualGroup<P> {
    fn members(&self) -> &[EventInfo] {
        &self.members
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn simultaneity(&self) -> Simultaneity {
        self.engine.core.pmu.simultaneity()
    }

    fn rotation_interval(&self) -> Option<Duration> {
        let core = &self.engine.core;
        let intervals = self.scheduled.iter().map(|group| core.interval(group.cpu));
        intervals.max().map(Duration::from_nanos)
    }

    fn read_buf(&self) -> ReadBuf {
        ReadBuf::new(self.members.len(), Arc::clone(&self.parts))
    }

    fn enable(&mut self) -> Result<()> {
        self.check_caller("enable a group")?;
        let mut started: Vec<&Arc<ScheduledGroup>> = Vec::with_capacity(self.scheduled.len());
        for group in &self.scheduled {
            match self.engine.enable(group) {
                Ok(true) => started.push(group),
                Ok(false) => {}
                Err(e) => {
                    for group in started {
                        // The first error is the one to return.
                        let _ = self.engine.disable(group);
                    }
                    return Err(e);
                }
            }
        }
        Ok(())
    }

    fn disable(&mut self) -> Result<()> {
        self.check_caller("disable a group")?;
        let mut result = Ok(());
        for group in &self.scheduled {
            let done = self.engine.disable(group);
            result = result.and(done);
        }
        result
    }

    fn reset(&mut self) -> Result<()> {
        self.check_caller("reset a group")?;
        for group in &self.scheduled {
            self.engine.reset(group)?;
        }
        Ok(())
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        self.check_thread("read a group")?;
        out.check_shape(self.members.len(), &self.parts)?;
        let mut part = 0;
        for group in &self.scheduled {
            self.engine.begin_read(group, &mut self.reader)?;
            for at in 0..group.cpus.len() {
                let out = &mut out[part];
                self.engine.read(group, at, &mut self.reader, part, out)?;
                part += 1;
            }
        }
        Ok(())
    }
}

impl<P: Pmu> Drop for VirtualGroup<P> {
    fn drop(&mut self) {
        if !self.engine.core.is_here() {
            return;
        }
        for group in &self.scheduled {
            // The error has no caller to go to; the registers are restored all the same.
            let _ = self.engine.disable(group);
            self.engine.close(group);
        }
        self.engine.core.leave();
    }
}
