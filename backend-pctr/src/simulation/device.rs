//! The simulated driver: open descriptors and their ioctls.

use quipu_hal::Result;

use super::era::Processor;
use super::machine::{SimMachine, State};
use crate::abi::{self, MAX_COUNTERS, PCIOCS, Status};
use crate::device::{Claimed, Driver, Errno, PctrDevice, SetScope};
use crate::function::{P5_LIMIT, REFUSED};

/// An open descriptor of a simulated machine's `/dev/pctr`.
///
/// ```
/// use quipu_pctr::simulation::{Era, Processor, SimMachine};
/// use quipu_pctr::{Control, Discovery};
///
/// let machine = SimMachine::new(Era::I386Of2008, Processor::K8, 1);
/// let control = Control::new(machine.open_read_only())?;
/// assert_eq!(control.discover()?, Discovery::Counters(4));
/// assert!(control.set(0, 0x0041_00c0).is_err(), "it is open for reading only");
/// # Ok::<(), quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct SimDevice {
    machine: SimMachine,
    readable: bool,
    writable: bool,
}

/// The nanoseconds that a pass of the idle loop takes.
const IDLE_PASS: u64 = 1_000;

impl SimDevice {
    pub(super) fn new(machine: SimMachine, readable: bool, writable: bool) -> Self {
        Self {
            machine,
            readable,
            writable,
        }
    }

    /// Returns the machine that it belongs to.
    pub fn machine(&self) -> &SimMachine {
        &self.machine
    }

    /// Returns the status of the current CPU, as `pctrrd` does.
    fn status(&self, state: &State) -> Status {
        let cpu = &state.cpus[state.current];
        let mut status = Status {
            time_stamp: cpu.time_stamp,
            idle: Some(state.elapsed / IDLE_PASS),
            ..Status::default()
        };
        for i in 0..self.machine.era.counters(self.machine.processor) {
            status.functions[i] = cpu.select[i];
            // A Pentium's counters are read whole, others' by the masked rdpmc.
            status.counters[i] = match self.machine.processor {
                Processor::P5 => cpu.counter[i],
                _ => cpu.counter[i] & self.machine.era.shown(),
            };
        }
        status
    }

    /// `pctrsel`: sets a function, with the driver's checks in its order.
    fn set(&self, state: &mut State, counter: usize, word: u32) -> Result<(), Errno> {
        let SimMachine { era, processor, .. } = self.machine;
        let counters = era.counters(processor);
        if counters == 0 {
            return Err(Errno(era.no_counters()));
        }
        if counter >= counters {
            return Err(Errno(libc::EINVAL));
        }
        if !self.writable {
            return Err(Errno(libc::EPERM));
        }
        let refused = match processor {
            Processor::P5 => word >= P5_LIMIT,
            _ => word & REFUSED != 0,
        };
        if refused {
            return Err(Errno(libc::EINVAL));
        }
        state.log.push((counter as u8, word));
        state.crashed |= processor.kind().is_none();
        if era.scope() == SetScope::AllCpus {
            set_everywhere(state, counter, word);
        } else {
            let current = state.current;
            state.cpus[current].set(counter, word);
        }
        Ok(())
    }
}

/// The driver of 2019: a word that differs from the one set last is written here and, by an
/// interrupt, on every CPU where the select register differs when it takes that.
fn set_everywhere(state: &mut State, counter: usize, word: u32) {
    if state.driver[counter] == word {
        return;
    }
    state.driver[counter] = word;
    for (i, cpu) in state.cpus.iter_mut().enumerate() {
        if i == state.current || cpu.select[counter] != word && !state.holds_interrupts {
            cpu.set(counter, word);
        }
        cpu.is_interrupted |= i != state.current && state.holds_interrupts;
        // The enable of rdpmc comes with the first word that is not 0, and stays.
        cpu.user_rdpmc |= word != 0;
    }
}

impl PctrDevice for SimDevice {
    fn ioctl(&self, word: u32, argument: &mut [u8]) -> Result<(), Errno> {
        let mut state = self.machine.lock();
        state.calls += 1;
        if let Some((at, cpu)) = state.move_in_call
            && at == state.calls
        {
            state.current = cpu;
        }
        if let Some((at, errno)) = state.fault
            && at == state.calls
        {
            state.fault = None;
            return Err(Errno(errno));
        }
        if argument.len() != abi::argument_size(word) {
            return Err(Errno(libc::EFAULT));
        }
        if !self.readable && !self.writable {
            return Err(Errno(libc::EBADF));
        }
        let era = self.machine.era;
        if word == era.layout().read_word() {
            argument.copy_from_slice(&self.status(&state).to_bytes(era.layout()));
            return Ok(());
        }
        let counter = PCIOCS[..era.set_requests()].iter().position(|w| *w == word);
        let (Some(counter), Ok(bytes)) = (counter, <[u8; 4]>::try_from(&*argument)) else {
            return Err(Errno(libc::EINVAL));
        };
        self.set(&mut state, counter, u32::from_le_bytes(bytes))
    }

    fn cpu(&self) -> Result<u32> {
        let mut state = self.machine.lock();
        state.looks += 1;
        let looks = state.looks;
        if let Some(i) = state.moves.iter().position(|(at, _)| *at < looks) {
            state.current = state.moves.swap_remove(i).1;
        }
        Ok(2 * state.current as u32)
    }

    fn is_writable(&self) -> bool {
        self.writable
    }

    fn reader(&self) -> Result<Self> {
        Ok(self.machine.open_read_only())
    }

    fn driver(&self) -> Driver {
        Driver {
            arch: self.machine.era.arch(),
            scope: self.machine.era.scope(),
        }
    }

    fn identity(&self) -> Option<(String, u16)> {
        let (vendor, family, _) = self.machine.processor.identity()?;
        Some((vendor.to_owned(), family))
    }

    fn cpus_online(&self) -> usize {
        self.machine.lock().cpus.len()
    }

    /// Moves all threads through the CPUs, those apart that are out of reach, and back.
    fn visit_cpus(&self, visit: &(dyn Fn() -> bool + Sync)) {
        if visit() {
            return;
        }
        let (current, cpus, out_of_reach) = {
            let mut state = self.machine.lock();
            state.sweeps += 1;
            (state.current, state.cpus.len(), state.out_of_reach)
        };
        for cpu in (0..cpus).filter(|cpu| Some(*cpu) != out_of_reach) {
            self.machine.move_to(cpu);
            if visit() {
                break;
            }
        }
        self.machine.move_to(current);
    }

    fn claim(&self, counter: u8) -> Result<(), Claimed> {
        match self.claimed(counter) {
            Some(claimed) => Err(claimed),
            None => {
                self.machine.lock().own_claims |= 1 << counter;
                Ok(())
            }
        }
    }

    fn unclaim(&self, counter: u8) {
        self.machine.lock().own_claims &= !(1 << counter);
    }

    fn claimed(&self, counter: u8) -> Option<Claimed> {
        let mut state = self.machine.lock();
        match &mut state.claim_ends {
            Some((0, ended)) => {
                let ended = *ended;
                state.claims[ended] = None;
                state.claim_ends = None;
            }
            Some((looks, _)) => *looks -= 1,
            None => {}
        }
        let pid = state.claims[usize::from(counter)]?;
        Some(Claimed { pid: Some(pid) })
    }

    fn rdpmc(&self, counter: u8) -> u64 {
        let mut state = self.machine.lock();
        let current = state.current;
        let cpu = &state.cpus[current];
        if !cpu.user_rdpmc || usize::from(counter) >= MAX_COUNTERS {
            state.faulted = true;
            return 0;
        }
        let value = cpu.counter[usize::from(counter)];
        state.user_reads += 1;
        if let Some(interruption) = state.interruptions.pop() {
            state.interrupt(interruption);
        }
        value
    }

    fn rdtsc(&self) -> u64 {
        let state = self.machine.lock();
        state.cpus[state.current].time_stamp
    }
}
