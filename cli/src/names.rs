//! Where the names of native events come from, for commands that count.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;
use quipu::hal::text;
use quipu::{Machine, NativeEvents};

use crate::events::warn_of_files_left_out;
use crate::failure::Failure;

/// Which CPU's names, and which event file.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct NameOptions {
    /// Name native events as on another CPU (`quipu list cpus`), one that takes the same bits: for a
    /// CPU that the event database does not know
    #[arg(long, value_name = "ID", help_heading = "What")]
    cpu: Option<String>,
    /// Lay an event file over the database for this run; it may have events and presets
    #[arg(long, value_name = "FILE", help_heading = "What")]
    events: Option<PathBuf>,
}

/// This machine with names that were chosen.
#[derive(Debug)]
pub(crate) struct Names {
    pub(crate) machine: Arc<Machine>,
    stand_in: Option<String>,
}

impl NameOptions {
    /// What was chosen, if anything was.
    ///
    /// # Errors
    /// When the file or the CPU cannot be used.
    pub(crate) fn choose(&self) -> Result<Option<Names>, Failure> {
        if self.cpu.is_none() && self.events.is_none() {
            return Ok(None);
        }
        self.refuse_mix_ups()?;
        let mut native = NativeEvents::new();
        if let Some(file) = &self.events {
            native = native.with_file(file);
        }
        if let Some(id) = &self.cpu {
            native = native.of_cpu(id);
        }
        native.database()?;
        warn_of_files_left_out(native.left_out());
        if self.cpu.is_some() {
            native.maps(quipu::events::Interface::Linux)?;
        }
        let own = NativeEvents::this().tables().unwrap_or_default();
        Ok(Some(Names {
            machine: Arc::new(Machine::with_native_events(Arc::new(native))),
            stand_in: self
                .cpu
                .clone()
                .filter(|id| own.iter().all(|table| table.id() != id)),
        }))
    }

    /// Refuses what was meant for -C or for -e.
    fn refuse_mix_ups(&self) -> Result<(), Failure> {
        if let Some(list) = &self.cpu
            && list.starts_with(|c: char| c.is_ascii_digit())
        {
            return Err(Failure::usage(format_args!(
                "--cpu names a kind of CPU, like intel-skl; to count on CPUs {list}, use -C {list}"
            )));
        }
        if let Some(file) = &self.events
            && !file.exists()
            && text::parse_list(&file.to_string_lossy()).is_ok()
        {
            let name = file.display();
            return Err(Failure::usage(format_args!(
                "--events wants an event file, and there is none called {name}; events are named \
                 with -e"
            )));
        }
        Ok(())
    }
}

impl Names {
    /// The CPU that stands in for the one there is.
    pub(crate) fn stand_in(&self) -> Option<&str> {
        self.stand_in.as_deref()
    }
}
