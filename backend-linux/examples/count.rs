//! Counts what a little work costs, with the backend alone.

use quipu_hal::{Group, GroupSpec, Result, Software, Target};
use quipu_linux::LinuxBackend;

fn main() -> Result<()> {
    let backend = LinuxBackend::new()?;
    let events = [
        Software::TaskClock,
        Software::PageFaults,
        Software::ContextSwitches,
    ];
    let mut group = backend.open_group(&GroupSpec::new(events), &Target::CurrentThread)?;
    let mut before = group.read_buf();
    let mut after = group.read_buf();

    group.read(&mut before)?;
    let pages = vec![1u8; 1 << 20];
    group.read(&mut after)?;
    drop(pages);

    for (member, info) in group.members().iter().enumerate() {
        let spent = after[0][member].since(&before[0][member]);
        println!("{:?} {} {}", spent.count(), info.unit, info.name);
    }
    Ok(())
}
