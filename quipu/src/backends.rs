//! The backends of the machine it runs on: usable, or why not.

use std::fmt;
use std::sync::{Arc, OnceLock};

use quipu_hal::{Backend, Error, ErrorKind, Result};

use crate::{NativeEvents, SharedNativeEvents};

/// The backends of this machine, and the choice among them.
///
/// Events of the CPU's counters (generalized ones, raw words, and names that the event database has) are counted by the
/// backends that the database lists for this CPU and system (`backends`), in its order; a backend that is not listed is
/// not used for them. All other events are counted by the first backend that can. [`msr`](crate::msr) writes registers
/// past the kernel, and is used after consent alone: [`allow_registers`](Self::allow_registers), or a file of root's
/// that says `allow = ["msr"]`. [`EventSetBuilder::backends`](crate::EventSetBuilder::backends) overrides all of it.
pub struct Machine {
    pub(crate) native: SharedNativeEvents,
    backends: Vec<BackendStatus>,
    /// The backends that count together, or why there are none.
    counting: Result<Vec<Arc<dyn Backend>>>,
    allows_registers: bool,
    on_request: OnceLock<Vec<BackendStatus>>,
    pub(crate) counter_backends: OnceLock<Result<Vec<Arc<dyn Backend>>>>,
}

/// One backend: usable, or the reason why it is not.
pub struct BackendStatus {
    name: &'static str,
    /// False for a backend of another system, and for one that was left out of this build.
    pub(crate) is_of_this_system: bool,
    pub(crate) state: Result<Arc<dyn Backend>>,
}

impl Machine {
    /// Returns this machine; it is looked at once, on the first call.
    pub fn this() -> &'static Self {
        static THIS: OnceLock<Machine> = OnceLock::new();
        THIS.get_or_init(|| Self::with(NativeEvents::shared()))
    }

    pub(crate) fn with(native: SharedNativeEvents) -> Self {
        let backends = vec![linux(&native), pctr(&native), hwpmc(&native), posix()];
        Self {
            counting: counting(&backends),
            backends,
            native,
            allows_registers: false,
            on_request: OnceLock::new(),
            counter_backends: OnceLock::new(),
        }
    }

    /// Adds a backend of the program's own, before those that count no hardware, or in the place of the one with its
    /// name. Event files list it by that name.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use quipu::{EventSet, Machine, NativeEvents};
    /// # let clock = quipu_posix::PosixBackend::new();
    ///
    /// let native = Arc::new(NativeEvents::new());
    /// let machine = Machine::with_native_events(native).with_backend(Arc::new(clock));
    /// let set = EventSet::builder().machine(Arc::new(machine)).events("task-clock")?.open()?;
    /// # Ok::<(), quipu::Error>(())
    /// ```
    #[must_use]
    pub fn with_backend(mut self, backend: Arc<dyn Backend>) -> Self {
        let own = BackendStatus::new(backend.name(), Ok(backend));
        match self
            .backends
            .iter_mut()
            .find(|known| known.name == own.name)
        {
            Some(known) => *known = own,
            None if own.name == "msr" => self.on_request = OnceLock::from(vec![own]),
            None => {
                let before_posix = self.backends.iter().position(|known| known.name == "posix");
                let at = before_posix.unwrap_or(self.backends.len());
                self.backends.insert(at, own);
            }
        }
        self.counting = counting(&self.backends);
        self.counter_backends = OnceLock::new();
        self
    }

    /// Consents to backends that write registers past the kernel ([`msr`](crate::msr)), where the event database
    /// prefers them. They count whole CPUs, and taint a Linux kernel.
    #[must_use]
    pub fn allow_registers(mut self) -> Self {
        self.allows_registers = true;
        self.counter_backends = OnceLock::new();
        self
    }

    /// Returns every backend that needs no consent, with its state here.
    pub fn backends(&self) -> &[BackendStatus] {
        &self.backends
    }

    /// Returns the backends that are used only after consent, or if they are asked for by name, with their state
    /// here. They are looked at when this is first called.
    pub fn on_request(&self) -> &[BackendStatus] {
        self.on_request.get_or_init(|| vec![msr(&self.native)])
    }

    /// Returns true if the backends [on request](Self::on_request) are used where the event database prefers them: the
    /// program consents ([`allow_registers`](Self::allow_registers)), or a file of root's does.
    pub fn consents(&self) -> bool {
        self.allows_registers || self.native.allows("msr")
    }

    /// Returns the backend of a name.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if there is none of that name, or
    /// the reason why it cannot be used here.
    pub fn named(&self, name: &str) -> Result<Arc<dyn Backend>> {
        let all = || self.backends.iter().chain(self.on_request());
        match all().find(|backend| backend.name == name) {
            Some(backend) => backend.state.clone(),
            None => {
                let names: Vec<String> = all().map(|backend| backend.name.to_owned()).collect();
                let attempted = format!("use the backend {name}");
                Err(Error::new(ErrorKind::InvalidConfiguration, attempted)
                    .with_reason("unknown backend")
                    .with_hint(format!("the backends are {}", names.join(", "))))
            }
        }
    }

    /// Returns the backends that can be used here without consent, in order of preference.
    pub fn usable(&self) -> impl Iterator<Item = &Arc<dyn Backend>> {
        self.backends.iter().filter_map(|b| b.state.as_ref().ok())
    }

    /// Returns the reason why the backend that comes first on this system cannot be used, if it cannot:
    /// what it could have counted is refused for this reason, whatever another backend says of it.
    pub(crate) fn unusable_first(&self) -> Option<&Error> {
        self.backends.iter().find(|b| b.is_of_this_system)?.error()
    }

    /// Returns the backends that count together here what is not of the CPU's counters.
    ///
    /// If perf_event_open can be used, getrusage(2) is left out: it counts a command from its fork
    /// on, and would answer where perf_event_open has a reason not to.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) with every backend's reason if none is usable.
    pub fn require(&self) -> Result<Vec<Arc<dyn Backend>>> {
        self.counting.clone()
    }

    /// Returns the same without a copy.
    pub(crate) fn counting(&self) -> Result<&[Arc<dyn Backend>]> {
        self.counting.as_deref().map_err(Clone::clone)
    }
}

/// Returns those of some backends that count together.
fn counting(backends: &[BackendStatus]) -> Result<Vec<Arc<dyn Backend>>> {
    let is_linux = |backend: &BackendStatus| backend.name == "linux" && backend.state.is_ok();
    let beside_linux = backends.iter().any(is_linux);
    let mut usable = Vec::with_capacity(backends.len());
    for status in backends {
        if let Ok(backend) = &status.state
            && !(beside_linux && status.name == "posix")
        {
            usable.push(Arc::clone(backend));
        }
    }
    if !usable.is_empty() {
        return Ok(usable);
    }
    let mut reasons = String::new();
    for backend in backends {
        if let Err(error) = &backend.state {
            let between = if reasons.is_empty() { "" } else { "; " };
            reasons += &format!("{between}{}: {error:#}", backend.name);
        }
    }
    Err(Error::new(ErrorKind::NoSuchDevice, "find a backend for this machine").with_reason(reasons))
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.backends).finish()
    }
}

impl BackendStatus {
    fn new(name: &'static str, state: Result<Arc<dyn Backend>>) -> Self {
        Self {
            name,
            is_of_this_system: true,
            state,
        }
    }

    /// Returns a backend of another system, or one that was built without; `attempted` completes
    /// "cannot".
    fn missing(name: &'static str, attempted: &str, is_of_this_system: bool) -> Self {
        let reason = match is_of_this_system {
            true => "Quipu was built without it",
            false => "not on this system",
        };
        let error = Error::new(ErrorKind::NoSuchDevice, attempted).with_reason(reason);
        Self {
            is_of_this_system: false,
            ..Self::new(name, Err(error))
        }
    }

    /// Returns the backend's name: `linux`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Returns the backend, if it can be used here.
    pub fn backend(&self) -> Option<&Arc<dyn Backend>> {
        self.state.as_ref().ok()
    }

    /// Returns the reason why it cannot be used here, if it cannot.
    pub fn error(&self) -> Option<&Error> {
        self.state.as_ref().err()
    }
}

impl fmt::Debug for BackendStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.as_ref().map(Backend::capabilities);
        f.debug_struct("BackendStatus")
            .field("name", &self.name)
            .field("state", &state)
            .finish()
    }
}

/// Returns perf_event_open(2) with the native events of this CPU, if the database knows it.
fn linux(native: &SharedNativeEvents) -> BackendStatus {
    cfg_if::cfg_if! {
        if #[cfg(all(feature = "linux", target_os = "linux"))] {
            BackendStatus::new("linux", linux_with(native).map(|linux| Arc::new(linux) as Arc<dyn Backend>))
        } else {
            let _ = native;
            BackendStatus::missing("linux", "use perf_event_open", cfg!(target_os = "linux"))
        }
    }
}

#[cfg(all(feature = "linux", target_os = "linux"))]
pub(crate) fn linux_with(native: &SharedNativeEvents) -> Result<quipu_linux::LinuxBackend> {
    cfg_if::cfg_if! {
        if #[cfg(feature = "events")] {
            let native = Arc::clone(native);
            quipu_linux::LinuxBackend::new()
                .map(|backend| backend.with_event_maps(move || native.linux_maps()))
        } else {
            let _ = native;
            quipu_linux::LinuxBackend::new()
        }
    }
}

/// Returns perf_event_open(2) with the native events of this machine, as itself: for what Linux alone
/// offers.
///
/// # Errors
/// As [`LinuxBackend::new`](quipu_linux::LinuxBackend::new).
#[cfg(all(feature = "linux", target_os = "linux"))]
pub fn linux_backend() -> Result<quipu_linux::LinuxBackend> {
    linux_with(NativeEvents::this())
}

/// Returns the model-specific registers, with the native events of this CPU.
fn msr(native: &SharedNativeEvents) -> BackendStatus {
    cfg_if::cfg_if! {
        if #[cfg(any(
            all(feature = "msr", unix),
            target_os = "freebsd",
            target_os = "dragonfly",
        ))] {
            let open = crate::msr::open_with(native, crate::msr::options());
            BackendStatus::new("msr", open.map(crate::end_of_process::gives_back))
        } else {
            let _ = native;
            BackendStatus::missing("msr", "use model-specific registers", cfg!(unix))
        }
    }
}

/// Returns the device with the functions of this CPU, which is opened when a hardware event asks for it; without
/// functions it still has the time stamp counter.
fn pctr(native: &SharedNativeEvents) -> BackendStatus {
    cfg_if::cfg_if! {
        if #[cfg(target_os = "openbsd")] {
            let path = std::path::Path::new(quipu_pctr::DEFAULT_PATH);
            let native = Arc::clone(native);
            let open = move || {
                let events = native.maps(quipu_events::Interface::Pctr).ok();
                quipu_pctr::open(path, events.and_then(|events| events.into_iter().next()))
            };
            let device = quipu_pctr::OnDemand::new(path, open);
            BackendStatus::new("pctr", device.map(crate::end_of_process::gives_back))
        } else {
            let _ = native;
            BackendStatus::missing("pctr", "use pctr(4)", false)
        }
    }
}

#[cfg(target_os = "freebsd")]
pub(crate) fn hwpmc_with(
    native: &SharedNativeEvents,
) -> Result<quipu_hwpmc::HwpmcBackend<quipu_hwpmc::Hwpmc>> {
    let driver = quipu_hwpmc::Hwpmc::open()?;
    let events = native.of_only_core(quipu_events::Interface::Other("hwpmc"))?;
    quipu_hwpmc::HwpmcBackend::new(driver, events)
}

/// Returns hwpmc(4) with the native events of this machine, as itself: for what FreeBSD alone offers.
///
/// # Errors
/// [`NoSuchDevice`](quipu_hal::ErrorKind::NoSuchDevice) if the module is not loaded; else as
/// [`HwpmcBackend::new`](quipu_hwpmc::HwpmcBackend::new).
#[cfg(target_os = "freebsd")]
pub fn hwpmc_backend() -> Result<quipu_hwpmc::HwpmcBackend<quipu_hwpmc::Hwpmc>> {
    hwpmc_with(NativeEvents::this())
}

/// Returns hwpmc(4) with the native events of this CPU.
fn hwpmc(native: &SharedNativeEvents) -> BackendStatus {
    cfg_if::cfg_if! {
        if #[cfg(target_os = "freebsd")] {
            BackendStatus::new("hwpmc", hwpmc_with(native).map(|hwpmc| Arc::new(hwpmc) as Arc<dyn Backend>))
        } else {
            let _ = native;
            BackendStatus::missing("hwpmc", "use hwpmc(4)", false)
        }
    }
}

/// Returns getrusage(2). It is last, because the others count the same more closely: in the kernel, or
/// from exec on.
fn posix() -> BackendStatus {
    cfg_if::cfg_if! {
        if #[cfg(all(feature = "posix", unix))] {
            BackendStatus::new("posix", Ok(Arc::new(quipu_posix::PosixBackend::new())))
        } else {
            BackendStatus::missing("posix", "use getrusage", cfg!(unix))
        }
    }
}

#[cfg(all(test, feature = "event-files"))]
mod tests {
    use quipu_hal::{Event, EventSpec, GroupSpec, Hardware, Target};
    use quipu_scripted::Scripted;

    use super::*;
    use crate::{EventSet, SetEvent};

    fn backend(name: &'static str) -> Arc<dyn Backend> {
        let refuse =
            |_: &GroupSpec, _: &Target| Err(Error::new(ErrorKind::UnsupportedEvent, "open it"));
        Arc::new(Scripted::new(name, refuse))
    }

    fn usable(name: &'static str) -> BackendStatus {
        BackendStatus::new(name, Ok(backend(name)))
    }

    fn unusable(name: &'static str) -> BackendStatus {
        let error = Error::new(ErrorKind::NoPermission, "open it")
            .with_reason(format!("{name} is for root"));
        BackendStatus::new(name, Err(error))
    }

    fn machine(backends: Vec<BackendStatus>) -> Machine {
        Machine {
            counting: counting(&backends),
            backends,
            native: Arc::default(),
            allows_registers: false,
            on_request: OnceLock::from(vec![unusable("msr")]),
            counter_backends: OnceLock::new(),
        }
    }

    fn names<'a>(backends: impl IntoIterator<Item = &'a Arc<dyn Backend>>) -> Vec<&'static str> {
        backends.into_iter().map(Backend::name).collect()
    }

    fn known(machine: &Machine) -> Vec<&'static str> {
        machine.backends().iter().map(BackendStatus::name).collect()
    }

    #[test]
    fn all_usable_backends_count_but_getrusage_beside_perf_event_open() {
        for (backends, count) in [
            (
                vec![usable("linux"), usable("own"), usable("posix")],
                &["linux", "own"][..],
            ),
            (
                vec![unusable("linux"), usable("own"), usable("posix")],
                &["own", "posix"],
            ),
            (
                vec![usable("own"), unusable("other"), usable("posix")],
                &["own", "posix"],
            ),
            (vec![usable("posix")], &["posix"]),
        ] {
            let machine = machine(backends);
            assert_eq!(names(&machine.require().unwrap()), count);
            assert_eq!(names(machine.counting().unwrap()), count);
        }
        let none = machine(vec![unusable("linux"), unusable("posix")]);
        assert_eq!(none.usable().count(), 0);
        let error = none.require().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NoSuchDevice);
        let reason = error.reason().unwrap();
        let (first, second) = reason.split_once("; ").unwrap();
        assert!(
            first.starts_with("linux: cannot open it") && second.starts_with("posix: "),
            "{reason}"
        );
        assert!(
            first.contains("linux is for root") && second.contains("posix is for root"),
            "{reason}"
        );
    }

    #[test]
    fn a_backend_of_the_programs_own_is_before_getrusage_or_in_the_place_of_its_name() {
        let machine = machine(vec![unusable("linux"), usable("other"), usable("posix")]);
        let machine = machine.with_backend(backend("own"));
        assert_eq!(known(&machine), ["linux", "other", "own", "posix"]);
        let machine = machine.with_backend(backend("linux"));
        assert_eq!(known(&machine), ["linux", "other", "own", "posix"]);
        assert!(machine.backends()[0].error().is_none());
        assert_eq!(names(machine.usable()), ["linux", "other", "own", "posix"]);
        assert_eq!(
            names(&machine.require().unwrap()),
            ["linux", "other", "own"]
        );
        assert!(machine.on_request()[0].error().is_some());
        // Registers are written on request only.
        let machine = machine.with_backend(backend("msr"));
        assert_eq!(known(&machine), ["linux", "other", "own", "posix"]);
        assert!(machine.on_request()[0].backend().is_some());
        assert_eq!(machine.named("msr").unwrap().name(), "msr");
        assert_eq!(machine.named("own").unwrap().name(), "own");
        let unknown = machine.named("nobody").map(drop).unwrap_err();
        assert_eq!(
            unknown.hint(),
            Some("the backends are linux, other, own, posix, msr")
        );
    }

    #[test]
    fn a_backend_that_is_not_there_is_of_another_system_or_was_left_out() {
        for (is_of_this_system, reason) in [
            (true, "Quipu was built without it"),
            (false, "not on this system"),
        ] {
            let status = BackendStatus::missing("other", "use it", is_of_this_system);
            let error = status.error().unwrap();
            assert_eq!(
                (error.kind(), error.reason()),
                (ErrorKind::NoSuchDevice, Some(reason))
            );
            assert!(!status.is_of_this_system && status.backend().is_none());
        }
    }

    /// An event that no usable backend has may be one of the backend that cannot be used.
    #[test]
    fn an_event_that_is_not_found_is_refused_for_the_backend_that_cannot_be_used() {
        let refusal = |first: BackendStatus, event: Event| {
            let missing = BackendStatus::missing("other", "use it", false);
            let machine = machine(vec![missing, first, usable("own")]);
            let mut builder = EventSet::builder();
            builder
                .machine(Arc::new(machine))
                .events(EventSpec::new(event))
                .unwrap();
            let set = builder.open().unwrap();
            set.events()
                .iter()
                .find_map(SetEvent::error)
                .unwrap()
                .clone()
        };
        let named = || Event::Named("no-such-event".to_owned());
        let denied = refusal(unusable("linux"), named());
        assert_eq!(
            (denied.kind(), denied.reason()),
            (ErrorKind::NoPermission, Some("linux is for root"))
        );
        for event in [named(), Event::Hardware(Hardware::Cycles)] {
            let refused = refusal(usable("linux"), event);
            // Where only registers reach the CPU's counters, these are named.
            if !cfg!(any(target_os = "freebsd", target_os = "dragonfly")) {
                assert_eq!(
                    (refused.kind(), refused.attempted()),
                    (ErrorKind::UnsupportedEvent, "open it")
                );
            }
        }
    }

    /// Without consent the obstacle is told with how to give it; with consent it is the error itself.
    #[test]
    fn registers_that_cannot_be_used_are_refused_for_their_own_reason() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let systems = ["linux", "openbsd", "freebsd", "dragonfly", "netbsd"];
        let systems = systems
            .map(|system| format!("{system} = [\"msr\"]"))
            .join(", ");
        let text = format!("[[cpu]]\nid = \"amd-zen4\"\nbackends = {{ {systems} }}\n");
        std::fs::write(file.path(), text).unwrap();
        let native = NativeEvents::new()
            .for_cpu("amd-zen4")
            .with_file(file.path());
        let mut machine = machine(vec![usable("own")]);
        machine.native = Arc::new(native);
        let refused = machine.for_counters().unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::NoPermission);
        assert_eq!(refused.attempted(), "count events of the CPU");
        assert!(
            refused.reason().unwrap().ends_with("msr is for root"),
            "{refused}"
        );
        let machine = machine.allow_registers();
        let refused = machine.for_counters().unwrap_err();
        assert_eq!(refused.attempted(), "open it");
        assert_eq!(refused.reason(), Some("msr is for root"));
    }
}
