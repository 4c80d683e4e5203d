//! The backends of the machine it runs on: usable, or why not.

use std::fmt;
use std::sync::{Arc, OnceLock};

use quipu_hal::{DynBackend, Error, ErrorKind, Result};

use crate::NativeEvents;

/// The backends of this machine, in order of preference.
pub struct Machine {
    native: Arc<NativeEvents>,
    backends: Vec<BackendStatus>,
    on_request: OnceLock<Vec<BackendStatus>>,
}

/// One backend: usable, or the reason why it is not.
pub struct BackendStatus {
    name: &'static str,
    is_of_this_system: bool,
    state: Result<Arc<dyn DynBackend>>,
}

impl Machine {
    /// This machine; looked at once, on the first call.
    pub fn this() -> &'static Self {
        static THIS: OnceLock<Machine> = OnceLock::new();
        THIS.get_or_init(|| Self::with_native_events(Arc::clone(NativeEvents::this())))
    }

    /// This machine with other native events: of an event file, or of another CPU.
    pub fn with_native_events(native: Arc<NativeEvents>) -> Self {
        Self {
            backends: vec![linux(&native), pctr(&native), posix()],
            native,
            on_request: OnceLock::new(),
        }
    }

    /// The native events of this machine.
    pub fn native_events(&self) -> &NativeEvents {
        &self.native
    }

    /// Every backend Quipu knows, with its state here.
    pub fn backends(&self) -> &[BackendStatus] {
        &self.backends
    }

    /// The backends that are used only when they are asked for by name, with their state here. They
    /// are looked at when this is first called.
    pub fn on_request(&self) -> &[BackendStatus] {
        self.on_request.get_or_init(|| vec![msr(&self.native)])
    }

    /// The backend of a name.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when there is none of that name, or
    /// why it cannot be used here.
    pub fn named(&self, name: &str) -> Result<Arc<dyn DynBackend>> {
        let all = || self.backends.iter().chain(self.on_request());
        match all().find(|backend| backend.name == name) {
            Some(backend) => backend.state.clone(),
            None => {
                let names: Vec<_> = all().map(|backend| backend.name).collect();
                let attempted = format!("use the backend {name}");
                Err(Error::new(ErrorKind::InvalidConfiguration, attempted)
                    .with_reason("there is none of that name")
                    .with_hint(format!("the backends are {}", names.join(", "))))
            }
        }
    }

    /// The backends that can be used here, in order of preference.
    pub fn usable(&self) -> impl Iterator<Item = &Arc<dyn DynBackend>> {
        self.backends.iter().filter_map(|b| b.state.as_ref().ok())
    }

    /// Why the backend that comes first on this system cannot be used, if that is so: what it could
    /// have counted is refused for this reason, whatever another backend says of it.
    pub(crate) fn unusable_first(&self) -> Option<&Error> {
        self.backends.iter().find(|b| b.is_of_this_system)?.error()
    }

    /// The backends that count together here, or one error that says why there is none.
    ///
    /// Where perf_event_open can be used, getrusage(2) is left out: it counts a command from its fork
    /// on, and would answer where perf_event_open has a reason not to.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) with every backend's reason when none is usable.
    pub fn require(&self) -> Result<Vec<Arc<dyn DynBackend>>> {
        let mut usable: Vec<_> = self.usable().cloned().collect();
        if usable.iter().any(|backend| backend.name() == "linux") {
            usable.retain(|backend| backend.name() != "posix");
        }
        if !usable.is_empty() {
            return Ok(usable);
        }
        let reasons: Vec<String> = self
            .backends
            .iter()
            .filter_map(|b| Some(format!("{}: {:#}", b.name, b.error()?)))
            .collect();
        Err(
            Error::new(ErrorKind::NoSuchDevice, "find a backend for this machine")
                .with_reason(reasons.join("; ")),
        )
    }
}

impl fmt::Debug for Machine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.backends).finish()
    }
}

impl BackendStatus {
    fn new<B: DynBackend + 'static>(name: &'static str, state: Result<B>) -> Self {
        Self {
            name,
            is_of_this_system: true,
            state: state.map(|b| Arc::new(b) as Arc<dyn DynBackend>),
        }
    }

    /// A backend of another system; `attempted` completes "cannot".
    fn elsewhere(name: &'static str, attempted: &str) -> Self {
        let error = Error::new(ErrorKind::NoSuchDevice, attempted);
        Self {
            name,
            is_of_this_system: false,
            state: Err(error.with_reason("not on this system")),
        }
    }

    /// The backend's name: `linux`.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// The backend, when it can be used here.
    pub fn backend(&self) -> Option<&Arc<dyn DynBackend>> {
        self.state.as_ref().ok()
    }

    /// Why it cannot be used here.
    pub fn error(&self) -> Option<&Error> {
        self.state.as_ref().err()
    }
}

impl fmt::Debug for BackendStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state.as_ref().map(|b| b.capabilities());
        f.debug_struct("BackendStatus")
            .field("name", &self.name)
            .field("state", &state)
            .finish()
    }
}

/// perf_event_open with the native events of this CPU, where the database knows it.
#[cfg(target_os = "linux")]
fn linux(native: &Arc<NativeEvents>) -> BackendStatus {
    BackendStatus::new("linux", linux_with(native))
}

#[cfg(target_os = "linux")]
fn linux_with(native: &Arc<NativeEvents>) -> Result<quipu_linux::LinuxBackend> {
    let native = Arc::clone(native);
    quipu_linux::LinuxBackend::new()
        .map(|backend| backend.with_event_maps(move || native.maps(quipu_events::Interface::Linux)))
}

/// perf_event_open(2) with the native events of this machine, as itself: for what Linux alone offers.
///
/// # Errors
/// As [`LinuxBackend::new`](quipu_linux::LinuxBackend::new).
#[cfg(target_os = "linux")]
pub fn linux_backend() -> Result<quipu_linux::LinuxBackend> {
    linux_with(NativeEvents::this())
}

#[cfg(not(target_os = "linux"))]
fn linux(_: &Arc<NativeEvents>) -> BackendStatus {
    BackendStatus::elsewhere("linux", "use perf_event_open")
}

#[cfg(unix)]
fn msr(native: &NativeEvents) -> BackendStatus {
    BackendStatus::new("msr", crate::msr::open_with(native, crate::msr::options()))
}

#[cfg(not(unix))]
fn msr(_: &NativeEvents) -> BackendStatus {
    BackendStatus::elsewhere("msr", "use model-specific registers")
}

/// The device with the functions of this CPU; without them there still is the time stamp counter.
#[cfg(target_os = "openbsd")]
fn pctr(native: &NativeEvents) -> BackendStatus {
    let path = std::path::Path::new(quipu_pctr::DEFAULT_PATH);
    let events = native.maps(quipu_events::Interface::Pctr).ok();
    let first = events.and_then(|events| events.into_iter().next());
    BackendStatus::new("pctr", quipu_pctr::open(path, first))
}

#[cfg(not(target_os = "openbsd"))]
fn pctr(_: &NativeEvents) -> BackendStatus {
    BackendStatus::elsewhere("pctr", "use pctr(4)")
}

/// Last, because the others count the same more closely: in the kernel, or from exec on.
#[cfg(unix)]
fn posix() -> BackendStatus {
    BackendStatus::new("posix", Ok(quipu_posix::PosixBackend::new()))
}

#[cfg(not(unix))]
fn posix() -> BackendStatus {
    BackendStatus::elsewhere("posix", "use getrusage")
}
