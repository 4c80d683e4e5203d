//! Says what a device is, and counts the time stamp on the CPU this runs on: of the device at a path,
//! or of a simulated one.

use std::path::Path;
use std::time::Duration;

use quipu_hal::{Backend, Event, GroupSpec, Result, Target};
use quipu_pctr::simulation::{Era, Processor, SimMachine};
use quipu_pctr::{PctrDevice, PctrPmu};
use quipu_pmu::{Pmu, VirtualPmu};

fn main() -> Result<()> {
    match std::env::args_os().nth(1) {
        Some(path) => {
            let backend = quipu_pctr::open(Path::new(&path), None)?;
            show(&backend, || std::thread::sleep(Duration::from_millis(10)))
        }
        None => {
            let machine = SimMachine::new(Era::Amd64Of2019, Processor::K8, 1);
            machine.pass(Duration::from_millis(1));
            let backend = quipu_pctr::with_device(machine.open(), None, machine.clock())?;
            show(&backend, || machine.pass(Duration::from_millis(10)))
        }
    }
}

/// Prints what there is, and what was counted while `work` was done.
fn show<D: PctrDevice>(backend: &VirtualPmu<PctrPmu<D>>, work: impl FnOnce()) -> Result<()> {
    let pmu = backend.pmu();
    println!("this is CPU {}", pmu.current_cpu()?);
    for slot in pmu.slots() {
        println!("{slot}, {} bits", slot.width);
    }
    let spec = GroupSpec::single(Event::Named("tsc".into()));
    let mut group = backend.open(&spec, &Target::CurrentCpu)?;
    work();
    let mut counts = group.read_buf();
    group.read(&mut counts)?;
    println!("tsc: {:?}", counts[0][0].count());
    Ok(())
}
