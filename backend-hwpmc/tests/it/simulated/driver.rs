//! The calls of hwpmc(4) on the simulated system.

use std::collections::HashSet;
use std::os::fd::BorrowedFd;
use std::thread;

use nix::errno::Errno;
use quipu_hwpmc::{
    Class, ClassOfCounters, Driver, Forks, Held, Machine, PmcId, Request, Row, Task,
};

use super::forks::ForksOf;
use super::{Conceals, Counter, Sim, own};

impl Driver for Sim {
    fn version(&self) -> Result<u32, Errno> {
        Ok(self.lock().version)
    }

    fn machine(&self) -> Result<Machine, Errno> {
        Ok(self.lock().machine.clone())
    }

    fn rows(&self, cpu: u32) -> Result<Vec<Row>, Errno> {
        let system = self.lock();
        let of_class = |known: &ClassOfCounters| {
            let class = known.class;
            (0..known.counters).map(move |row| (class, row))
        };
        let rows = system.machine.classes.iter().flat_map(of_class);
        let held = |row| {
            let mut taken = system.counters.values();
            let counter = taken.find(|counter| (counter.request.class, counter.row) == row);
            match counter.map(|counter| counter.request.cpu) {
                None => Held::Free,
                Some(None) => Held::ForProcesses,
                Some(Some(on)) => Held::ForCpus {
                    owner: (on == cpu).then_some(system.owner_of_cpus),
                },
            }
        };
        Ok(rows
            .map(|row| Row {
                class: row.0,
                held: held(row),
            })
            .collect())
    }

    fn software_events(&self) -> Result<Vec<(String, u32)>, Errno> {
        Ok(self.lock().software_events.clone())
    }

    fn allocate(&self, request: &Request) -> Result<PmcId, Errno> {
        let mut system = self.lock();
        system.asked = Some((request.select, request.capabilities));
        if request.cpu.is_some() && !system.is_root {
            return Err(Errno::EPERM);
        }
        let class = system
            .machine
            .classes
            .iter()
            .find(|known| known.class == request.class);
        let rows = class.map_or(0, |known| known.counters);
        let has_event = |number| system.software_events.iter().any(|known| known.1 == number);
        let allowed = |row: &u32| match (request.class, request.select & 0xffff) {
            (Class::SOFTWARE, _) => has_event(request.select),
            // Each fixed counter has its event, and instructions are counted by one programmable counter.
            (Class::INTEL_FIXED, 0xc0) => *row == 0,
            (Class::INTEL_FIXED, 0x3c) => *row == 1,
            (Class::INTEL_FIXED, _) => *row == 2,
            (Class::INTEL, 0xc0) => *row == 1,
            _ => true,
        };
        let is_taken = |row: &u32| {
            system.counters.values().any(|counter| {
                (counter.request.class, counter.row) == (request.class, *row)
                    && (counter.request.cpu == request.cpu
                        || counter.request.cpu.is_none() != request.cpu.is_none())
            })
        };
        let row = (0..rows)
            .filter(allowed)
            .find(|row| !is_taken(row))
            .ok_or(Errno::EINVAL)?;
        let id = system.next.cast_unsigned();
        system.next += 1;
        let counter = Counter {
            request: *request,
            row,
            value: 0,
            runs: false,
            loaded: HashSet::new(),
        };
        system.counters.insert(id, counter);
        Ok(PmcId(id))
    }

    fn attach(&self, id: PmcId, pid: i32) -> Result<(), Errno> {
        let mut system = self.lock();
        let counter = system.counters.get(&id.0).ok_or(Errno::EINVAL)?;
        let is_taken = system
            .of_others
            .contains(&(counter.request.class, counter.row));
        let process = system
            .processes
            .get_mut(&pid)
            .filter(|process| !process.has_ended);
        let process = process.ok_or(Errno::ESRCH)?;
        if is_taken {
            return Err(Errno::EBUSY);
        }
        process.counted_by.insert(id.0);
        Ok(())
    }

    fn set(&self, id: PmcId, value: u64) -> Result<(), Errno> {
        let mut system = self.lock();
        let counter = system.counters.get_mut(&id.0).ok_or(Errno::EINVAL)?;
        counter.value = value;
        Ok(())
    }

    fn start(&self, id: PmcId) -> Result<(), Errno> {
        let mut system = self.lock();
        let kept = (1 << system.kept_bits) - 1;
        let counter = system.counters.get_mut(&id.0).ok_or(Errno::EINVAL)?;
        counter.runs = true;
        if counter.request.class == Class::INTEL {
            counter.value &= kept;
        }
        counter.loaded.insert(thread::current().id());
        // The owner is switched to once more if it counts itself.
        let this = &system.processes[&own()];
        if this.counted_by.contains(&id.0) && !system.has_host_threads {
            system.sleep(own(), own());
            system.wake(own(), own());
        }
        Ok(())
    }

    fn read(&self, id: PmcId) -> Result<u64, Errno> {
        let system = self.lock();
        let counter = system.counters.get(&id.0).ok_or(Errno::EINVAL)?;
        if counter.request.cpu.is_some() {
            return Ok(system.all.of(&counter.request));
        }
        let is_loaded = !system.processes[&own()].counted_by.contains(&id.0)
            || counter.loaded.contains(&thread::current().id());
        assert!(
            is_loaded,
            "the kernel stops: the CPU of the thread has not loaded the counter"
        );
        let first = &system.processes[&own()].threads[&own()];
        let running = match first.loaded.contains(&id.0) {
            true => first.done.of(&counter.request),
            false => 0,
        };
        // A counter of 48 bits.
        Ok((counter.value + running) & ((1 << 48) - 1))
    }

    fn switch(&self) -> Result<(), Errno> {
        for counter in self.lock().counters.values_mut() {
            counter.loaded.insert(thread::current().id());
        }
        Ok(())
    }

    fn stop(&self, id: PmcId) -> Result<(), Errno> {
        let mut system = self.lock();
        system.counters.get_mut(&id.0).ok_or(Errno::EINVAL)?.runs = false;
        Ok(())
    }

    fn open_log(&self, to: BorrowedFd<'_>) -> Result<(), Errno> {
        self.lock().log.open(to)
    }

    fn close_log(&self) -> Result<(), Errno> {
        self.lock().log.close()
    }

    fn flush_log(&self) -> Result<(), Errno> {
        self.lock().log.flush()
    }

    fn mark_log(&self, mark: u32) -> Result<(), Errno> {
        self.lock().log.mark(mark)
    }

    fn lost(&self) -> Result<u32, Errno> {
        Ok(self.lock().log.lost)
    }

    fn release(&self, id: PmcId) -> Result<(), Errno> {
        let mut system = self.lock();
        for process in system.processes.values_mut() {
            process.counted_by.remove(&id.0);
        }
        system.counters.remove(&id.0).ok_or(Errno::EINVAL)?;
        if system.counters.is_empty() {
            system.log.forget();
        }
        Ok(())
    }

    fn process(&self, pid: i32) -> Result<Task, Errno> {
        let system = self.lock();
        let process = system.processes.get(&pid).ok_or(Errno::ESRCH)?;
        Ok(system.task(process, None))
    }

    fn threads(&self, pid: i32, each: &mut dyn FnMut(i32, &Task)) -> Result<(), Errno> {
        let system = self.lock();
        let process = system.processes.get(&pid).ok_or(Errno::ESRCH)?;
        if system.conceals == Conceals::Others {
            // As if there were one thread, which has had all switches.
            let mut all = system.task(process, None);
            if process.has_ended {
                all.switches /= 2;
            }
            each(pid, &all);
            return Ok(());
        }
        for (id, thread) in &process.threads {
            each(*id, &system.task(process, Some(thread)));
        }
        Ok(())
    }

    fn own_thread(&self) -> i32 {
        let has_host_threads = self.lock().has_host_threads;
        match has_host_threads {
            true => self.host_thread(),
            false => own(),
        }
    }

    fn watch_forks(&self, pid: i32) -> Result<Box<dyn Forks>, Errno> {
        let system = self.lock();
        let forks = system.processes.get(&pid).ok_or(Errno::ESRCH)?.forks;
        Ok(Box::new(ForksOf(self.clone(), pid, forks)))
    }

    fn current_cpu(&self) -> Result<u32, Errno> {
        Ok(0)
    }

    fn own_pid(&self) -> i32 {
        own()
    }

    fn own_cpu_time(&self) -> Result<u64, Errno> {
        Ok(self.lock().processes[&own()].cpu_time)
    }

    fn wall_time(&self) -> Result<u64, Errno> {
        Ok(self.lock().all.time)
    }
}
