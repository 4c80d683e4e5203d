//! The one backend that was asked for by name.

use std::sync::Arc;

use quipu::hal::{Clock, DynBackend, VirtualPmu};
use quipu::msr::{self, MsrBus, MsrPmu};
use quipu::{Machine, Target};

use crate::failure::Failure;

use super::notes::Note;
use super::plan::{Plan, Scope};

/// A backend, and its registers where it drives bare ones.
pub(super) struct Backend {
    pub(super) counting: Arc<dyn DynBackend>,
    registers: Option<Arc<dyn Registers>>,
}

/// What bare registers tell besides counts.
trait Registers {
    /// The counters that were taken from somebody else, and from whom.
    fn taken_over(&self) -> Option<Note>;
}

impl Backend {
    /// The backend of a plan; nothing where it names none.
    pub(super) fn of(plan: &Plan) -> Result<Option<Self>, Failure> {
        let Some(name) = plan.backend.as_deref() else {
            return Ok(None);
        };
        let machine = plan.names.as_ref().map(|names| &*names.machine);
        let machine = machine.unwrap_or_else(|| Machine::this());
        if name != "msr" {
            return Ok(Some(Self {
                counting: machine.named(name)?,
                registers: None,
            }));
        }
        let options = msr::Options {
            take_enabled: plan.take_busy,
            cpus: match &plan.scope {
                Scope::Cpus(Target::Cpus(cpus)) => Some(cpus.clone()),
                _ => None,
            },
            ..msr::options()
        };
        let backend = msr::open_with(machine.native_events(), options)?;
        Ok(Some(Self::on_registers(Arc::new(backend))))
    }

    /// A backend over model-specific registers.
    pub(super) fn on_registers<B: MsrBus, C: Clock>(
        backend: Arc<VirtualPmu<MsrPmu<B>, C>>,
    ) -> Self {
        Self {
            counting: Arc::clone(&backend) as Arc<dyn DynBackend>,
            registers: Some(backend),
        }
    }

    pub(super) fn taken_over(&self) -> Option<Note> {
        self.registers.as_ref()?.taken_over()
    }
}

impl<B: MsrBus, C: Clock> Registers for VirtualPmu<MsrPmu<B>, C> {
    fn taken_over(&self) -> Option<Note> {
        let taken = self.pmu().taken_over();
        let names = taken
            .iter()
            .map(|(cpu, slot)| format!("{slot} of CPU {cpu}"));
        (!taken.is_empty()).then(|| Note {
            about: "taken".into(),
            events: names.collect(),
            text: format!(
                "enabled already, probably by {}, which counted nothing there meanwhile",
                self.pmu().bus().suspect().who
            ),
        })
    }
}
