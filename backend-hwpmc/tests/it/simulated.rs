//! A simulated FreeBSD: processes, threads, and hwpmc(4) with what its kernel does at switches.

mod driver;
mod forks;
pub(crate) mod log;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::ThreadId;

use quipu_hwpmc::{Class, ClassOfCounters, Machine, Request, State, Task};

use self::log::Log;

/// Returns the id of this process and of its first thread.
pub(crate) fn own() -> i32 {
    std::process::id().cast_signed()
}

/// The facts that the driver or the system conceals, as a backend would that does not look for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Conceals {
    Nothing,
    /// Threads and forks, whose first turns are not counted.
    Others,
    /// A process that runs elsewhere, whose value is stale.
    Running,
    /// A process whose counters the kernel took off, as it became another user's.
    Owner,
}

#[derive(Debug, Clone)]
pub(crate) struct Sim(Arc<Mutex<System>>);

#[derive(Debug)]
pub(crate) struct System {
    conceals: Conceals,
    pub(crate) version: u32,
    pub(crate) machine: Machine,
    pub(crate) is_root: bool,
    /// The bits of a value that programmable counters keep when a thread is switched to.
    pub(crate) kept_bits: u32,
    /// True if each thread of the test is one of this process, which sleeps but for what it does.
    pub(crate) has_host_threads: bool,
    /// The select word and the capabilities that were asked for last.
    pub(crate) asked: Option<(u32, u32)>,
    /// The counters with which another program counts every process.
    pub(crate) of_others: Vec<(Class, u32)>,
    /// The process to which counters of CPUs are said to belong.
    pub(crate) owner_of_cpus: i32,
    pub(crate) software_events: Vec<(String, u32)>,
    processes: BTreeMap<i32, Process>,
    counters: BTreeMap<u32, Counter>,
    pub(crate) log: Log,
    next: i32,
    /// All that was done and passed.
    all: Done,
}

/// Instructions, and nanoseconds, which other events occur in.
#[derive(Debug, Clone, Copy, Default)]
struct Done {
    instructions: u64,
    time: u64,
}

impl Done {
    fn add(&mut self, instructions: u64, time: u64) {
        self.instructions += instructions;
        self.time += time;
    }

    /// Returns the number of an event.
    fn of(self, request: &Request) -> u64 {
        match request.select & 0xff {
            0xc0 => self.instructions,
            _ => self.time,
        }
    }
}

#[derive(Debug, Default)]
struct Process {
    threads: BTreeMap<i32, Thread>,
    has_ended: bool,
    ended_switches: u64,
    cpu_time: u64,
    owner: (u32, bool),
    /// All that it has done, and all that its children have.
    work: u64,
    parent: i32,
    forks: u64,
    /// The counters that count it.
    counted_by: BTreeSet<u32>,
}

#[derive(Debug, Default)]
struct Thread {
    runs: bool,
    switches: u64,
    cpu_time: u64,
    /// The counters that were loaded when it was switched to, and what it has done since.
    loaded: BTreeSet<u32>,
    done: Done,
}

#[derive(Debug)]
struct Counter {
    request: Request,
    row: u32,
    value: u64,
    runs: bool,
    /// The threads of this process that were switched to since it was started.
    loaded: HashSet<ThreadId>,
}

impl Sim {
    pub(crate) fn new() -> Self {
        let class = |class, counters| ClassOfCounters {
            class,
            counters,
            width: 48,
        };
        let mut system = System {
            conceals: Conceals::Nothing,
            version: 0x0903_0000,
            machine: Machine {
                cpu_type: 0x80,
                cpus: 2,
                classes: vec![
                    class(Class::INTEL, 4),
                    class(Class::INTEL_FIXED, 3),
                    class(Class::SOFTWARE, 16),
                ],
                has_amd_extended_counters: false,
            },
            is_root: false,
            kept_bits: 48,
            has_host_threads: false,
            asked: None,
            of_others: Vec::new(),
            owner_of_cpus: own(),
            software_events: vec![
                ("LOCK.FAILED".into(), 0x2_0000),
                ("PAGE_FAULT.WRITE".into(), 0x2_0003),
            ],
            processes: BTreeMap::new(),
            counters: BTreeMap::new(),
            log: Log::default(),
            next: own() + 1,
            all: Done::default(),
        };
        let mut this = Process::default();
        this.threads.insert(
            own(),
            Thread {
                runs: true,
                ..Thread::default()
            },
        );
        system.processes.insert(own(), this);
        Self(Arc::new(Mutex::new(system)))
    }

    pub(crate) fn concealing(self, conceals: Conceals) -> Self {
        self.lock().conceals = conceals;
        self
    }

    /// Returns the thread of this process that the calling one is.
    fn host_thread(&self) -> i32 {
        static NEXT: AtomicI32 = AtomicI32::new(1 << 24);
        thread_local!(static ID: i32 = NEXT.fetch_add(1, Relaxed));
        let id = ID.with(|id| *id);
        let mut system = self.lock();
        let process = system.processes.get_mut(&own()).expect("this process");
        process.threads.entry(id).or_default();
        id
    }

    /// The calling thread does so many instructions in a time, and sleeps again.
    pub(crate) fn occur(&self, amount: u64, time: u64) {
        let thread = self.host_thread();
        let mut system = self.lock();
        system.sleep(own(), own());
        system.wake(own(), thread);
        system.run(own(), thread, amount, time);
        system.sleep(own(), thread);
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, System> {
        self.0.lock().expect("no panic in the simulation")
    }
}

impl System {
    /// Makes a process that sleeps, of one thread, and returns its id.
    pub(crate) fn asleep(&mut self) -> i32 {
        let pid = self.fork(own());
        self.sleep(pid, pid);
        self.processes.get_mut(&own()).expect("it is there").forks = 0;
        pid
    }

    /// A process forks: the child runs, and is not counted in its first turn.
    pub(crate) fn fork(&mut self, parent: i32) -> i32 {
        let pid = self.next;
        self.next += 1;
        let of = self.processes.get_mut(&parent).expect("the parent");
        of.forks += 1;
        let inherited = of.counted_by.iter();
        let counted_by = inherited
            .filter(|id| {
                self.counters
                    .get(id)
                    .is_some_and(|counter| counter.request.descendants)
            })
            .copied()
            .collect();
        let mut child = Process {
            parent,
            counted_by,
            ..Process::default()
        };
        child.threads.insert(
            pid,
            Thread {
                runs: true,
                ..Thread::default()
            },
        );
        self.processes.insert(pid, child);
        pid
    }

    /// A process makes a thread, which runs and is not counted in its first turn.
    pub(crate) fn spawn(&mut self, pid: i32) -> i32 {
        let id = self.next;
        self.next += 1;
        let process = self.processes.get_mut(&pid).expect("the process");
        process.threads.insert(
            id,
            Thread {
                runs: true,
                ..Thread::default()
            },
        );
        id
    }

    /// A thread is switched to.
    pub(crate) fn wake(&mut self, pid: i32, thread: i32) {
        let process = self.processes.get_mut(&pid).expect("the process");
        let loaded = process.counted_by.clone();
        let thread = process.threads.get_mut(&thread).expect("the thread");
        if !thread.runs {
            (thread.runs, thread.loaded) = (true, loaded);
        }
    }

    /// A running thread does so many instructions, one in a nanosecond.
    pub(crate) fn work(&mut self, pid: i32, thread: i32, amount: u64) {
        self.run(pid, thread, amount, amount);
    }

    /// A running thread does instructions in a time.
    pub(crate) fn run(&mut self, pid: i32, thread: i32, amount: u64, time: u64) {
        self.all.add(amount, time);
        let process = self.processes.get_mut(&pid).expect("the process");
        let thread = process.threads.get_mut(&thread).expect("the thread");
        assert!(thread.runs, "it runs");
        thread.done.add(amount, time);
        thread.cpu_time += time;
        process.cpu_time += time;
        process.work += amount;
    }

    /// A running thread is switched from.
    pub(crate) fn sleep(&mut self, pid: i32, thread: i32) {
        let process = self.processes.get_mut(&pid).expect("the process");
        let thread = process.threads.get_mut(&thread).expect("the thread");
        if !thread.runs {
            return;
        }
        for id in &thread.loaded {
            if let Some(counter) = self.counters.get_mut(id).filter(|counter| counter.runs) {
                counter.value += thread.done.of(&counter.request);
            }
        }
        (thread.runs, thread.done) = (false, Done::default());
        thread.loaded.clear();
        thread.switches += 1;
    }

    /// A thread ends; with the last one its process does.
    pub(crate) fn end(&mut self, pid: i32, thread: i32) {
        self.sleep(pid, thread);
        let process = self.processes.get_mut(&pid).expect("the process");
        let ending = process.threads.get_mut(&thread).expect("the thread");
        // To end it is switched from once more.
        ending.switches += 1;
        let switches = ending.switches;
        match process.threads.len() {
            1 => {
                process.has_ended = true;
                // The kernel adds them to the process, and leaves them in the thread.
                process.ended_switches += switches;
            }
            _ => {
                process.ended_switches += switches;
                process.threads.remove(&thread);
            }
        }
    }

    /// A process executes a program that makes it another user's: the kernel takes counters off it.
    pub(crate) fn change_owner(&mut self, pid: i32) {
        let threads: Vec<i32> = self.processes[&pid].threads.keys().copied().collect();
        for thread in threads {
            let runs = self.processes[&pid].threads[&thread].runs;
            self.sleep(pid, thread);
            if runs {
                self.wake(pid, thread);
            }
        }
        let process = self.processes.get_mut(&pid).expect("the process");
        process.owner.1 = true;
        process.counted_by.clear();
        for thread in process.threads.values_mut() {
            thread.loaded.clear();
        }
    }

    /// The process was waited for.
    pub(crate) fn reap(&mut self, pid: i32) {
        self.processes.remove(&pid);
    }

    /// Returns all that a process has done, with children made since it was made.
    pub(crate) fn truth(&self, pid: i32, with_children: bool) -> u64 {
        let own = self.processes.get(&pid).map_or(0, |process| process.work);
        let children = self
            .processes
            .iter()
            .filter(|(_, process)| with_children && process.parent == pid);
        own + children
            .map(|(child, _)| self.truth(*child, true))
            .sum::<u64>()
    }

    pub(crate) fn threads_of(&self, pid: i32) -> Vec<(i32, bool)> {
        let process = self
            .processes
            .get(&pid)
            .filter(|process| !process.has_ended);
        let threads = process.into_iter().flat_map(|process| &process.threads);
        threads.map(|(id, thread)| (*id, thread.runs)).collect()
    }

    pub(crate) fn children_of(&self, pid: i32) -> Vec<i32> {
        let alive = self
            .processes
            .iter()
            .filter(|(_, process)| process.parent == pid && !process.has_ended);
        alive.map(|(child, _)| *child).collect()
    }

    /// Returns the number of counters that are taken.
    pub(crate) fn taken(&self) -> usize {
        self.counters.len()
    }

    fn task(&self, process: &Process, thread: Option<&Thread>) -> Task {
        let running = process.threads.values().any(|thread| thread.runs);
        let live: u64 = process.threads.values().map(|thread| thread.switches).sum();
        Task {
            state: match (
                process.has_ended,
                thread.map_or(running, |thread| thread.runs),
            ) {
                (true, _) => State::Ended,
                (false, true) if self.conceals == Conceals::Running => State::Asleep,
                (false, true) => State::Running,
                (false, false) => State::Asleep,
            },
            switches: match thread {
                Some(thread) => thread.switches,
                None => process.ended_switches + live,
            },
            cpu_time: thread.map_or(process.cpu_time, |thread| thread.cpu_time),
            children_time: 0,
            started: (i64::from(process.parent), 0),
            owner: match self.conceals {
                Conceals::Owner => (1_000, false),
                _ => process.owner,
            },
        }
    }
}
