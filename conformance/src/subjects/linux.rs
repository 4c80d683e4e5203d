//! Linux: exact workloads from the memory management and from debug registers.

use std::fs;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quipu_hal::{
    Attributes, Breakpoint, DynBackend, Event, EventSpec, Filter, GroupSpec, Hardware, PmuEvent,
    Software, Target,
};

use super::pages;
use crate::{Subject, Workload};

/// A backend of Linux, counting the calling thread.
///
/// Exact events are page faults (a fault for each untouched page of an anonymous mapping, taken in
/// user mode by writing to it, in the kernel by reading a file into it) and executions of the first
/// instruction of a function, where the machine has breakpoints.
pub struct LinuxSubject {
    backend: Arc<dyn DynBackend>,
    exact: Vec<EventSpec>,
    instructions: Option<EventSpec>,
    steady: Option<EventSpec>,
    slots: Option<usize>,
}

impl LinuxSubject {
    /// The subject around a backend.
    pub fn new(backend: Arc<dyn DynBackend>) -> Self {
        let mut subject = Self {
            backend,
            exact: Vec::new(),
            instructions: None,
            steady: None,
            slots: None,
        };
        let landmark = Breakpoint::execute(landmark as fn(u64) as usize as u64);
        subject.exact.push(user(Software::PageFaults));
        let breakpoint = user(landmark);
        if subject.opens(&breakpoint) {
            subject.exact.push(breakpoint);
        }
        subject.instructions = Some(user(Hardware::Instructions)).filter(|e| subject.opens(e));
        // Emulators may count nothing but cycles.
        let cycles = || Some(user(Hardware::Cycles)).filter(|e| subject.opens(e));
        subject.steady = subject.instructions.clone().or_else(cycles);
        subject.slots = subject.steady.as_ref().and_then(|event| subject.fit(event));
        pages::warm_up();
        subject
    }

    fn opens(&self, event: &EventSpec) -> bool {
        let spec = GroupSpec::single(event.clone());
        self.backend.open(&spec, &self.target()).is_ok()
    }
}

impl LinuxSubject {
    /// How many counters of an event fit onto the PMU at once, with those that others have there. The
    /// kernel opens a group that would fit if nobody else counted (`validate_group`), so that opening
    /// says too little.
    fn fit(&self, event: &EventSpec) -> Option<usize> {
        const MANY: usize = 64;
        let pinned = Attributes {
            pinned: true,
            ..Attributes::default()
        };
        let counts = |members: &usize| {
            let spec = GroupSpec::new(vec![event.clone(); *members]).with_attributes(pinned);
            let Ok(mut group) = self.backend.open(&spec, &self.target()) else {
                return false;
            };
            self.pass(self.rotation_interval());
            let mut buf = group.read_buf();
            group.read(&mut buf).is_ok()
        };
        let most = (1..MANY).take_while(counts).last()?;
        (most < MANY - 1).then_some(most)
    }
}

fn user(event: impl Into<Event>) -> EventSpec {
    EventSpec::new(event).with_filter(Filter::USER_ONLY)
}

/// What the breakpoint is set on.
#[inline(never)]
fn landmark(round: u64) {
    black_box(round);
}

impl Subject for LinuxSubject {
    fn backend(&self) -> &dyn DynBackend {
        &*self.backend
    }

    fn target(&self) -> Target {
        Target::CurrentThread
    }

    fn exact_events(&self) -> Vec<EventSpec> {
        self.exact.clone()
    }

    fn workload(&self, event: &EventSpec, times: u64) -> Option<Workload> {
        self.workload_at(event, Filter::USER, times)
    }

    fn workload_at(&self, event: &EventSpec, level: Filter, times: u64) -> Option<Workload> {
        match event.event {
            Event::Software(Software::PageFaults) => pages::page_faults(level, times),
            Event::Breakpoint(_) if level == Filter::USER => {
                Some(Box::new(move || (0..times).for_each(landmark)))
            }
            _ => None,
        }
    }

    fn has_other_causes(&self, event: &EventSpec) -> bool {
        event.event == Software::PageFaults.into()
    }

    fn pass(&self, nanoseconds: u64) {
        let (start, long) = (Instant::now(), Duration::from_nanos(nanoseconds));
        while start.elapsed() < long {
            black_box(0);
        }
    }

    fn slot_event(&self) -> Option<EventSpec> {
        self.steady.clone()
    }

    fn counted_loop(&self, rounds: u64) -> Option<(EventSpec, Workload)> {
        let event = self.instructions.clone()?;
        Some((event, Box::new(move || (0..rounds).for_each(landmark))))
    }

    fn slots(&self) -> Option<usize> {
        self.slots
    }

    fn unsupported_events(&self) -> Vec<Event> {
        vec![
            PmuEvent::new("no_such_pmu").with("no_such_event").into(),
            Event::Named("no-such-event".into()),
        ]
    }

    fn resources(&self) -> Option<u64> {
        let open = fs::read_dir("/proc/self/fd").ok()?.filter_map(Result::ok);
        let counters = open.filter(|entry| is_counter(&entry.path()));
        u64::try_from(counters.count()).ok()
    }

    fn inheritable_resources(&self) -> Option<u64> {
        /// `O_CLOEXEC` in the octal digits of `/proc/self/fdinfo` (proc(5)); the same on every
        /// architecture but alpha, parisc and sparc.
        const CLOEXEC: u32 = 0o2_000_000;
        let mut inheritable = 0;
        for entry in fs::read_dir("/proc/self/fd").ok()?.filter_map(Result::ok) {
            if !is_counter(&entry.path()) {
                continue;
            }
            let info = std::path::Path::new("/proc/self/fdinfo").join(entry.file_name());
            let info = fs::read_to_string(info).ok()?;
            let flags = info.lines().find_map(|line| line.strip_prefix("flags:"))?;
            let flags = u32::from_str_radix(flags.trim(), 8).ok()?;
            inheritable += u64::from(flags & CLOEXEC == 0);
        }
        Some(inheritable)
    }

    fn thread_id(&self) -> Option<i32> {
        Some(rustix::thread::gettid().as_raw_nonzero().get())
    }
}

fn is_counter(fd: &std::path::Path) -> bool {
    fs::read_link(fd).is_ok_and(|target| target.to_string_lossy().contains("perf_event"))
}
