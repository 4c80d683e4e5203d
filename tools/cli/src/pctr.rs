//! `quipu pctr`: OpenBSD's counters read and set by hand, with the habits of pctr(1).

mod function;
mod report;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use quipu_events::{CpuTable, Database};
use quipu_pctr::function::{self as words, ENABLE};
use quipu_pctr::{Control, CounterKind, Discovery, NodeDevice, PctrDevice};

use function::Flags;
use quipu_shell::Failure;
use quipu_shell::numbers;
use quipu_shell::terminal;
use quipu_stat::simulated::pctr::{self as simulate, Simulated};

#[derive(Debug, Args)]
#[command(
    after_help = "Without -s or -l it reads all counters. A counter that was set goes on counting,\n\
    whatever runs, until it is set again; -f 0 stops it.\n\n\
    Try:\n  \
    quipu pctr -s 0 -f INST_RETIRED -u     count instructions in user mode on counter 0\n  \
    quipu pctr -s 1 -f 29 -M -E            count loads that hit modified or exclusive lines\n  \
    quipu pctr --simulate i386-2003:p6 -l  list what a Pentium III could count"
)]
pub(crate) struct Options {
    /// Set this counter, 0 to 3
    #[arg(short, value_name = "COUNTER", requires = "function")]
    #[arg(value_parser = numbers::counter)]
    set: Option<u8>,

    /// The event to set it to: its number in hexadecimal or its name; 0 without flags stops the counter
    #[arg(short, value_name = "EVENT", requires = "set")]
    function: Option<String>,

    #[command(flatten)]
    flags: Flags,

    /// List the events
    #[arg(short, conflicts_with = "set")]
    list: bool,

    /// The device
    #[arg(long, value_name = "PATH", default_value = quipu_pctr::DEFAULT_PATH)]
    device: PathBuf,

    /// Use the events of another CPU of the event database, such as intel-p6
    #[arg(long, value_name = "ID")]
    cpu: Option<String>,

    /// Use a simulated device: a driver's era and a CPU, such as amd64-2019:core. Every event that
    /// is set then occurs 1000 times in user mode and 10 times in the kernel
    #[arg(long, value_name = "ERA:CPU", conflicts_with = "device")]
    simulate: Option<Simulated>,
}

/// Reads, sets or lists.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Failure> {
    let table = table(options);
    if options.list {
        let table = table?;
        let kind = kind(&table)?;
        terminal::print(&report::events(&table, kind)).map_err(Failure::new)?;
        return Ok(ExitCode::SUCCESS);
    }
    match (&options.simulate, options.set) {
        (Some(simulated), None) => read(simulated.machine().open_read_only(), table.ok().as_ref())?,
        (Some(simulated), Some(counter)) => {
            let (table, machine) = (table?, simulated.machine());
            let word = set(machine.open(), &table, counter, options)?;
            simulate::let_it_occur(&machine, simulate::event_of(&machine, word));
            read(machine.open_read_only(), Some(&table))?;
        }
        (None, None) => read(
            NodeDevice::open_read_only(&options.device)?,
            table.ok().as_ref(),
        )?,
        (None, Some(counter)) => {
            let table = table?;
            set(NodeDevice::open(&options.device)?, &table, counter, options)?;
            read(NodeDevice::open_read_only(&options.device)?, Some(&table))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the events of the CPU that is meant.
fn table(options: &Options) -> Result<CpuTable, Failure> {
    let database = Database::open(None)?;
    let id = options
        .cpu
        .as_deref()
        .or_else(|| options.simulate?.cpu_id());
    if let Some(id) = id {
        return Ok(database.cpu(id)?);
    }
    if options.simulate.is_some() {
        return Err(Failure::new(
            "this CPU has no counters, at most a time stamp counter",
        ));
    }
    let tables = database.this_machine()?.into_iter();
    tables
        .last()
        .ok_or_else(|| Failure::new("this CPU could not be identified"))
}

fn kind(table: &CpuTable) -> Result<CounterKind, Failure> {
    CounterKind::of(table.model()).ok_or_else(|| {
        Failure::new(format_args!(
            "pctr(4) does not support the counters of {}",
            table.name()
        ))
    })
}

/// Returns the number of counters that the driver has.
fn counters<D: PctrDevice>(device: &D) -> Result<u8, Failure> {
    match Control::new(device.reader()?)?.discover()? {
        Discovery::Counters(number) => Ok(number),
        Discovery::NoCounters => Ok(0),
    }
}

fn read<D: PctrDevice>(device: D, table: Option<&CpuTable>) -> Result<(), Failure> {
    let number = counters(&device)?;
    let status = Control::new(device)?.read()?;
    terminal::print(&report::status(&status, number, table)).map_err(Failure::new)
}

/// Sets a counter and says to which word.
fn set<D: PctrDevice>(
    device: D,
    table: &CpuTable,
    counter: u8,
    options: &Options,
) -> Result<u32, Failure> {
    let kind = kind(table)?;
    let number = counters(&device)?;
    let control = Control::new(device)?;
    if !control.is_of(table.model()) {
        return Err(Failure::new(format_args!(
            "the events of {} are those of a CPU of another vendor or family, and setting one could end \
             the kernel",
            table.name()
        )));
    }
    if counter >= number {
        return Err(match number {
            0 => Failure::new("the driver supports no counters on this CPU"),
            _ => Failure::usage(format_args!(
                "there is no counter {counter}; the driver has {number}, from 0 on"
            )),
        });
    }
    let event = options.function.as_deref().unwrap_or_default();
    let word = function::word(event, &options.flags, counter, table, kind)?;
    let [mut gate, other, ..] = control.read()?.functions;
    let needs_gate = kind == CounterKind::P6 && counter != 0 && word != 0;
    if needs_gate && gate == 0 {
        gate = ENABLE;
    }
    words::check(kind, counter, word, gate)?;
    // Counter 0 gates both; set to its enable bit alone it counts nothing.
    if needs_gate && gate == ENABLE {
        control.set(0, ENABLE)?;
    }
    let stays_gate = kind == CounterKind::P6 && counter == 0 && word == 0 && other != 0;
    match word {
        0 if stays_gate => control.set(counter, ENABLE)?,
        0 => control.stop(counter)?,
        _ => control.set(counter, word)?,
    }
    Ok(word)
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use quipu_pctr::simulation::{Era, Level, Processor, SimMachine};

    use super::*;

    #[derive(Debug, Parser)]
    struct PctrLine {
        #[command(flatten)]
        options: Options,
    }

    fn set_on(machine: &SimMachine, arguments: &[&str]) {
        let line = [&["quipu", "--simulate", "i386-2003:p6"], arguments].concat();
        let options = PctrLine::try_parse_from(line).expect("options").options;
        let table = table(&options).expect("a table");
        let counter = options.set.expect("a counter");
        set(machine.open(), &table, counter, &options).expect("set");
    }

    /// Stopping counter 0 of a P6 does not stop the other with it.
    #[test]
    fn counter_0_of_a_p6_gates_the_other_when_it_is_stopped() {
        let machine = SimMachine::new(Era::I386Of2003, Processor::P6, 1);
        set_on(&machine, &["-s", "0", "-f", "c4"]);
        set_on(&machine, &["-s", "1", "-f", "c0"]);
        set_on(&machine, &["-s", "0", "-f", "0"]);
        assert_eq!(machine.functions(0), [ENABLE, 0x0043_00c0, 0, 0]);
        machine.occur(0xc0, 0, Level::User, 5);
        let status = Control::new(machine.open()).and_then(|control| control.read());
        assert_eq!(status.expect("read").counters, [0, 5, 0, 0]);
        set_on(&machine, &["-s", "1", "-f", "0"]);
        set_on(&machine, &["-s", "0", "-f", "0"]);
        assert_eq!(machine.functions(0), [0; 4]);
    }
}
