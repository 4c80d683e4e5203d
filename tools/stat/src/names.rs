//! The source of the names of native events, for commands that count.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use quipu::{Machine, NativeEvents};
use quipu_text::NoNames;

use quipu_shell::Failure;
use quipu_shell::event_files::warn_of_files_left_out;

/// The options that choose the source.
#[derive(Debug, Clone, Default, Args)]
pub struct NameOptions {
    /// Use the native events of another CPU (`quipu list cpus`), one with the same encodings: for a
    /// CPU that is not in the event database
    #[arg(long, value_name = "ID", help_heading = "What")]
    cpu: Option<String>,
    /// Use an event file on top of the database for this run; it may define events and presets
    #[arg(long, value_name = "FILE", help_heading = "What")]
    events: Option<PathBuf>,
    /// Consent to raw counter registers (msr), which are written past the kernel and count whole CPUs,
    /// where the event database prefers them
    #[arg(long, conflicts_with_all = ["backend", "simulate"], help_heading = "Where")]
    allow_msr: bool,
}

/// This machine with the chosen source of names.
#[derive(Debug)]
pub struct Names {
    pub(crate) machine: Arc<Machine>,
    assumed_cpu: Option<String>,
}

impl NameOptions {
    /// Returns the chosen source, if one was chosen.
    ///
    /// # Errors
    /// When the file or the CPU cannot be used.
    pub(crate) fn choose(&self) -> Result<Option<Names>, Failure> {
        if self.cpu.is_none() && self.events.is_none() && !self.allow_msr {
            return Ok(None);
        }
        self.check_usage()?;
        let mut native = NativeEvents::new();
        if let Some(file) = &self.events {
            native = native.with_file(file);
        }
        if let Some(id) = &self.cpu {
            native = native.for_cpu(id);
        }
        native.database()?;
        warn_of_files_left_out(native.skipped_files());
        if self.cpu.is_some() {
            native.maps(quipu_events::Interface::Linux)?;
        }
        let own = NativeEvents::this().tables().unwrap_or_default();
        let mut machine = Machine::with_native_events(Arc::new(native));
        if self.allow_msr {
            machine = machine.allow_registers();
        }
        Ok(Some(Names {
            machine: Arc::new(machine),
            assumed_cpu: self
                .cpu
                .clone()
                .filter(|id| own.iter().all(|table| table.id() != id)),
        }))
    }

    /// Refuses values that were meant for -C or for -e.
    fn check_usage(&self) -> Result<(), Failure> {
        if let Some(list) = &self.cpu
            && list.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(Failure::usage(format_args!(
                "--cpu names a kind of CPU, like intel-skl; to count on CPUs {list}, use -C {list}"
            )));
        }
        if let Some(file) = &self.events
            && file.try_exists().is_ok_and(|exists| !exists)
            && quipu_text::parse(&file.to_string_lossy(), &NoNames).is_ok()
        {
            let name = file.display();
            return Err(Failure::usage(format_args!(
                "--events takes an event file, and {name} does not exist; to name events, use -e"
            )));
        }
        Ok(())
    }
}

impl Names {
    /// Returns the chosen native events, by default those of this machine.
    pub(crate) fn native(chosen: Option<&Self>) -> &NativeEvents {
        chosen.map_or(NativeEvents::this(), |names| names.machine.native_events())
    }

    /// Returns the CPU whose events are used in place of those of this machine.
    pub(crate) fn assumed_cpu(&self) -> Option<&str> {
        self.assumed_cpu.as_deref()
    }
}
