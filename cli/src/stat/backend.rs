//! The backends that a plan names.

use std::sync::Arc;

use quipu::Target;
use quipu::hal::{Clock, DynBackend, VirtualPmu};
use quipu::msr::{self, MsrBus, MsrPmu};

use crate::failure::Failure;

use super::notes::Note;
use super::plan::{Plan, Scope};

/// What to count with.
#[derive(Default)]
pub(super) struct Backends {
    /// Those to try, in order; nothing where they are simply those of the machine.
    pub(super) counting: Option<Vec<Arc<dyn DynBackend>>>,
    registers: Option<Arc<dyn Registers>>,
}

/// What bare registers tell besides counts.
trait Registers {
    /// The counters that were taken from somebody else, and from whom.
    fn taken_over(&self) -> Option<Note>;
}

impl Backends {
    /// The backends of a plan.
    pub(super) fn of(plan: &Plan) -> Result<Self, Failure> {
        if plan.requests.is_empty() {
            return Ok(Self::default());
        }
        if let Some(simulated) = &plan.simulated {
            return Ok(Self {
                counting: Some(simulated.backends()),
                registers: None,
            });
        }
        match plan.backend.as_slice() {
            [] => Ok(Self::default()),
            [name] if name == "msr" => {
                let options = msr::Options {
                    take_enabled: plan.take_busy,
                    cpus: match &plan.scope {
                        Scope::Cpus(Target::Cpus(cpus)) => Some(cpus.clone()),
                        _ => None,
                    },
                    ..msr::options()
                };
                let native = plan.machine().native_events();
                let backend = msr::open_with(native, options)?;
                Ok(Self::on_registers(Arc::new(backend)))
            }
            names => {
                let named = names.iter().map(|name| plan.machine().named(name));
                Ok(Self {
                    counting: Some(named.collect::<quipu::Result<_>>()?),
                    registers: None,
                })
            }
        }
    }

    /// A backend over model-specific registers.
    pub(super) fn on_registers<B: MsrBus, C: Clock>(
        backend: Arc<VirtualPmu<MsrPmu<B>, C>>,
    ) -> Self {
        Self {
            counting: Some(vec![Arc::clone(&backend) as Arc<dyn DynBackend>]),
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
