//! The simulated device that can stand in for the real one.

use std::str::FromStr;

use quipu_pctr::simulation::{Era, Level, Processor, SimMachine, parse_machine};

/// A driver's era and a CPU.
#[derive(Debug, Clone, Copy)]
pub struct Simulated {
    era: Era,
    processor: Processor,
}

impl FromStr for Simulated {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (era, processor) = parse_machine(text)?;
        Ok(Self { era, processor })
    }
}

impl Simulated {
    /// Returns a machine of one CPU.
    pub fn machine(self) -> SimMachine {
        let machine = SimMachine::new(self.era, self.processor, 1);
        machine.pass(std::time::Duration::from_millis(1));
        machine
    }

    /// Returns the CPU in the event database.
    pub fn cpu_id(self) -> Option<&'static str> {
        match self.processor {
            Processor::P5 => Some("intel-p5"),
            Processor::P6 => Some("intel-piii"),
            Processor::Core => Some("intel-core2"),
            Processor::Skylake => Some("intel-skl"),
            Processor::K8 => Some("amd-k8"),
            Processor::K10 => Some("amd-10h"),
            Processor::Zen => Some("amd-zen3"),
            _ => None,
        }
    }
}

/// Returns the event of a function.
pub fn event_of(machine: &SimMachine, word: u32) -> u8 {
    let mask = match machine.processor() {
        Processor::P5 => 0x3f,
        _ => 0xff,
    };
    (word & mask) as u8
}

/// Lets an event occur 1000 times in user mode and 10 times in the kernel.
pub fn let_it_occur(machine: &SimMachine, event: u8) {
    machine.occur(event, 0, Level::User, 1000);
    machine.occur(event, 0, Level::Kernel, 10);
}
