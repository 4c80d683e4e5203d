//! Runs a command and says what it used, as time(1) does.

use std::process::{Command, ExitCode};

use quipu_hal::{Attributes, Backend, Count, GroupSpec, Target};
use quipu_posix::{PosixBackend, Quantity};

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let program = arguments
        .next()
        .ok_or("usage: time COMMAND [ARGUMENT...]")?;

    let backend = PosixBackend::new();
    let events = [
        Quantity::TaskClock,
        Quantity::UserTime,
        Quantity::SystemTime,
        Quantity::PageFaults,
        Quantity::ContextSwitches,
        Quantity::PeakMemory,
    ];
    let spec = GroupSpec::new(events.map(Quantity::event))
        .with_attributes(Attributes::default().with_inherit(true));

    let mut child = Command::new(program).args(arguments).spawn()?;
    let mut group = backend.open(&spec, &Target::Process(i32::try_from(child.id())?))?;
    let status = child.wait()?;

    let mut counts = group.read_buf();
    group.read(&mut counts)?;
    for (info, reading) in group.members().iter().zip(&counts[0]) {
        match reading.count() {
            Count::Exact(value) => eprintln!("{value:>16} {:<5} {}", info.unit, info.name),
            _ => eprintln!("{:>16} {:<5} {}", "<not counted>", info.unit, info.name),
        }
    }
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}
