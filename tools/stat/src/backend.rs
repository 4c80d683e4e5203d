//! The backends that a plan names.

use std::sync::Arc;

use quipu::Target;
use quipu::msr::{self, MsrBus, MsrPmu};
use quipu_hal::{Backend, ErrorKind};
use quipu_pmu::VirtualPmu;

use quipu_shell::Failure;
use quipu_shell::target::Scope;

use super::plan::Plan;

/// The backends to count with.
#[derive(Default)]
pub struct Backends {
    /// The backends to try, in order; `None` for those of the machine.
    pub(super) counting: Option<Vec<Arc<dyn Backend>>>,
    registers: Option<Arc<dyn RegisterBackend>>,
}

/// Information of bare registers besides counts.
trait RegisterBackend {
    /// Returns the counters that were taken from another program, if there are any.
    fn taken_over(&self) -> Option<TakenOver>;
}

/// Counters that another program had enabled.
pub struct TakenOver {
    pub counters: Vec<String>,
    /// The program that probably had.
    pub owner: String,
}

impl Backends {
    /// Opens the backends of a plan.
    pub fn of(plan: &Plan) -> Result<Self, Failure> {
        if plan.requests.is_empty() {
            return Ok(Self::default());
        }
        if let Some(simulated) = &plan.simulated {
            return Ok(Self::these(simulated.backends()));
        }
        match plan.backend.as_slice() {
            [] => Ok(Self::default()),
            [name] if name == "msr" => {
                let mut options = msr::options();
                options.take_enabled = plan.take_busy;
                if let Scope::Cpus(Target::Cpus(cpus)) = &plan.scope {
                    options.cpus = Some(cpus.clone());
                }
                let native = plan.machine().native_events();
                let backend = msr::open_with(native, options)?;
                let mut backends = Self::on_registers(Arc::new(backend));
                if plan.counts_child() {
                    let posix = plan.machine().named("posix");
                    backends.counting.get_or_insert_default().extend(posix.ok());
                }
                Ok(backends)
            }
            names => {
                let named = names.iter().map(|name| {
                    plan.machine().named(name).map_err(|e| match e.hint() {
                        Some(hint) if e.kind() == ErrorKind::InvalidConfiguration => {
                            Failure::new(format_args!("unknown backend `{name}`; {hint}"))
                        }
                        _ => e.into(),
                    })
                });
                Ok(Self::these(named.collect::<Result<_, Failure>>()?))
            }
        }
    }

    /// Returns these backends, to be tried in order.
    pub fn these(backends: Vec<Arc<dyn Backend>>) -> Self {
        Self {
            counting: Some(backends),
            registers: None,
        }
    }

    /// Returns a backend over model-specific registers.
    pub fn on_registers<B: MsrBus>(backend: Arc<VirtualPmu<MsrPmu<B>>>) -> Self {
        Self {
            counting: Some(vec![Arc::clone(&backend) as Arc<dyn Backend>]),
            registers: Some(backend),
        }
    }

    /// Returns the counters that were taken from another program.
    pub fn taken_over(&self) -> Option<TakenOver> {
        self.registers.as_ref()?.taken_over()
    }

    /// Returns a warning for each register that could not be restored after everything was closed,
    /// and with `-v` the log of a simulated device.
    pub fn restore_warnings(&self, plan: &Plan) -> Vec<String> {
        if plan.requests.is_empty() {
            return Vec::new();
        }
        let failures: Vec<_> = match &self.counting {
            Some(backends) => backends
                .iter()
                .flat_map(Backend::restore_failures)
                .collect(),
            None => plan.machine().restore_failures(),
        };
        let mut lines: Vec<String> = failures.iter().map(|e| format!("{e:#}")).collect();
        if let Some(simulated) = plan.simulated.as_ref().filter(|_| plan.verbose > 0) {
            lines.extend(simulated.log());
        }
        lines
    }
}

impl<B: MsrBus> RegisterBackend for VirtualPmu<MsrPmu<B>> {
    fn taken_over(&self) -> Option<TakenOver> {
        let taken = self.pmu().taken_over();
        let names = taken
            .iter()
            .map(|(cpu, slot)| format!("{slot} of CPU {cpu}"));
        (!taken.is_empty()).then(|| TakenOver {
            counters: names.collect(),
            owner: self.pmu().bus().likely_owner().name,
        })
    }
}
