//! The backend of a device that is opened when an event first asks for it.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use nix::unistd::{AccessFlags, access};
use quipu_hal::{
    Backend, Capabilities, Error, ErrorKind, Event, Features, Filter, Group, GroupSpec, Result,
    Simultaneity, Target, TargetKinds,
};

use crate::device::{Driver, SetScope};
use crate::node::{cpus_online, open_error, refuse_hazard, this_driver};

/// A backend that opens its device when a group first asks for a hardware event, and not before: on some CPUs
/// the driver stops the kernel when the device is read, and most of what a program asks for is not in it.
///
/// Its [capabilities](Backend::capabilities) are those of the kernel and of the permissions of the node. The number of
/// counters is not among them, since only the driver knows it.
pub struct OnDemand<B, F> {
    capabilities: Capabilities,
    open: F,
    opened: OnceLock<Result<B>>,
}

impl<B: Backend, F: Fn() -> Result<B> + Send + Sync> OnDemand<B, F> {
    /// Returns a backend that `open` opens, of the device node at `path`, which is looked at without being opened.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) if there is no such node, or it must not be opened on this CPU
    /// ([`OPEN_ANYWAY`](crate::OPEN_ANYWAY)); [`NoPermission`](ErrorKind::NoPermission) if it may not be read.
    pub fn new(path: &Path, open: F) -> Result<Self> {
        access(path, AccessFlags::R_OK)
            .map_err(|e| open_error(format!("open {}", path.display()), &e.into()))?;
        refuse_hazard()?;
        let writable = access(path, AccessFlags::W_OK).is_ok();
        Ok(Self {
            capabilities: capabilities(this_driver(), cpus_online(), writable),
            open,
            opened: OnceLock::new(),
        })
    }
}

impl<B: Backend, F: Fn() -> Result<B> + Send + Sync> Backend for OnDemand<B, F> {
    fn name(&self) -> &'static str {
        "pctr"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        let software = |event: &Event| {
            matches!(
                event,
                Event::Software(_)
                    | Event::Breakpoint(_)
                    | Event::Tracepoint { .. }
                    | Event::Probe(_)
            )
        };
        if let Some(at) = spec.members.iter().position(|m| software(&m.event)) {
            let attempted = format!("count {}", spec.members[at].event);
            return Err(Error::new(ErrorKind::UnsupportedEvent, attempted)
                .with_reason("pctr(4) counts hardware events only")
                .with_member(at));
        }
        match self.opened.get_or_init(&self.open) {
            Ok(backend) => backend.open(spec, target),
            Err(error) => Err(error.clone()),
        }
    }

    fn restore_failures(&self) -> Vec<Error> {
        match self.opened.get() {
            Some(Ok(backend)) => backend.restore_failures(),
            _ => Vec::new(),
        }
    }

    fn give_back(&self) {
        if let Some(Ok(backend)) = self.opened.get() {
            backend.give_back();
        }
    }
}

impl<B, F> fmt::Debug for OnDemand<B, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnDemand")
            .field("capabilities", &self.capabilities)
            .field("is_open", &self.opened.get().is_some())
            .finish_non_exhaustive()
    }
}

/// Returns what the backend will be able to do, as far as it is known without the device.
fn capabilities(driver: Driver, cpus: usize, writable: bool) -> Capabilities {
    let mut capabilities = Capabilities::none();
    capabilities.targets = TargetKinds::CURRENT_CPU;
    capabilities.features = Features::PINNED | Features::EXCLUSIVE | Features::MULTIPLEXING;
    if driver.scope == SetScope::AllCpus || cpus == 1 {
        capabilities.targets |= TargetKinds::CPU | TargetKinds::ALL_CPUS;
        capabilities.features |= Features::ANY_THREAD;
    }
    if writable {
        capabilities.features |= Features::HARDWARE_EVENTS;
    }
    capabilities.filters = Filter::LEVELS;
    capabilities.simultaneity = Simultaneity::Sequential;
    capabilities
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use quipu_hal::{Hardware, Software};

    use super::*;
    use crate::simulation::{Era, Processor, SimMachine};

    #[test]
    fn the_device_is_opened_for_hardware_events_only_and_once() {
        let times = AtomicUsize::new(0);
        let open = || {
            times.fetch_add(1, Ordering::Relaxed);
            let machine = SimMachine::new(Era::Amd64Of2019, Processor::Core, 1);
            crate::with_device(machine.open(), None, machine.clock())
        };
        let backend = OnDemand::new(Path::new("/dev/null"), open).unwrap();
        assert!(backend.restore_failures().is_empty());
        let asked = |event: Event| backend.open(&GroupSpec::new([event]), &Target::CurrentCpu);
        for event in [
            Software::PageFaults.into(),
            Event::tracepoint("sched", "sched_switch"),
        ] {
            let refused = asked(event).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::UnsupportedEvent);
            assert_eq!(refused.member(), Some(0));
        }
        assert_eq!(times.load(Ordering::Relaxed), 0);
        // Without a map it knows the time stamp counter only.
        assert!(asked(Hardware::Cycles.into()).is_err());
        assert!(asked(Event::Named("tsc".into())).is_ok());
        assert_eq!(times.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn a_node_that_is_not_there_or_not_ours_is_told_by_its_name() {
        let open = || -> Result<Box<dyn Backend>> { unreachable!() };
        let error = OnDemand::new(Path::new("/nonexistent/pctr"), open).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSuchDevice);
        assert!(error.to_string().contains("/nonexistent/pctr"), "{error}");
    }

    #[test]
    fn one_cpu_is_all_cpus() {
        use crate::device::Arch;
        let old = Driver::new(Arch::Amd64, SetScope::ThisCpu);
        let new = Driver::new(Arch::Amd64, SetScope::AllCpus);
        let whole = |driver, cpus| {
            let targets = capabilities(driver, cpus, true).targets;
            targets.contains(TargetKinds::ALL_CPUS)
        };
        assert!(whole(old, 1) && whole(new, 1) && whole(new, 2));
        assert!(!whole(old, 2));
        let read_only = capabilities(new, 1, false).features;
        assert!(!read_only.contains(Features::HARDWARE_EVENTS));
    }
}
