//! The backends of the machine it runs on: usable, or why not.

use std::fmt;
use std::sync::{Arc, OnceLock};

use quipu_hal::{Backend, Error, ErrorKind, Result};

use crate::{NativeEvents, SharedNativeEvents};

/// The backends of this machine, in order of preference.
pub struct Machine {
    pub(crate) native: SharedNativeEvents,
    backends: Vec<BackendStatus>,
    /// The backends that count together, or why there are none.
    counting: Result<Vec<Arc<dyn Backend>>>,
    on_request: OnceLock<Vec<BackendStatus>>,
}

/// One backend: usable, or the reason why it is not.
pub struct BackendStatus {
    name: &'static str,
    is_of_this_system: bool,
    state: Result<Arc<dyn Backend>>,
}

impl Machine {
    /// Returns this machine; it is looked at once, on the first call.
    pub fn this() -> &'static Self {
        static THIS: OnceLock<Machine> = OnceLock::new();
        THIS.get_or_init(|| Self::with(NativeEvents::shared()))
    }

    /// Returns this machine with other native events: of an event file, or of another CPU.
    #[cfg(feature = "events")]
    pub fn with_native_events(native: Arc<NativeEvents>) -> Self {
        Self::with(native)
    }

    fn with(native: SharedNativeEvents) -> Self {
        let backends = vec![linux(&native), pctr(&native), posix()];
        Self {
            counting: counting(&backends),
            backends,
            native,
            on_request: OnceLock::new(),
        }
    }

    /// Returns the native events of this machine.
    #[cfg(feature = "events")]
    pub fn native_events(&self) -> &NativeEvents {
        &self.native
    }

    /// Returns every backend Quipu knows, with its state here.
    pub fn backends(&self) -> &[BackendStatus] {
        &self.backends
    }

    /// Returns the backends that are used only if they are asked for by name, with their state here. They
    /// are looked at when this is first called.
    pub fn on_request(&self) -> &[BackendStatus] {
        self.on_request.get_or_init(|| vec![msr(&self.native)])
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

    /// Returns the backends that can be used here, in order of preference.
    pub fn usable(&self) -> impl Iterator<Item = &Arc<dyn Backend>> {
        self.backends.iter().filter_map(|b| b.state.as_ref().ok())
    }

    /// Returns the reason why the backend that comes first on this system cannot be used, if it cannot:
    /// what it could have counted is refused for this reason, whatever another backend says of it.
    pub(crate) fn unusable_first(&self) -> Option<&Error> {
        self.backends.iter().find(|b| b.is_of_this_system)?.error()
    }

    /// Returns the reason why hardware events are not counted here unless a backend is named, on systems where
    /// only such a backend reaches the counters.
    pub(crate) fn counts_by_name_only(&self) -> Option<Error> {
        if !cfg!(any(target_os = "freebsd", target_os = "dragonfly")) {
            return None;
        }
        let msr = self.on_request().iter().find(|b| b.name == "msr")?;
        Some(by_name_only(msr.error()))
    }

    /// Returns the backends that count together here.
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

/// Returns the refusal of events that the registers of CPUs count, if they are asked for by name, or why these
/// cannot either.
fn by_name_only(obstacle: Option<&Error>) -> Error {
    const COUNTS: &str = "quipu stat --backend msr -C LIST counts them, on CPUs";
    let kind = obstacle.map_or(ErrorKind::NoSuchDevice, Error::kind);
    let error = Error::new(kind, "count events of the CPU");
    let Some(obstacle) = obstacle else {
        return error
            .with_reason("this system has no interface for them but registers, which are written by name only")
            .with_hint(COUNTS);
    };
    let hint = match obstacle.hint() {
        Some(hint) => format!("{hint}; then {COUNTS}"),
        None => COUNTS.to_owned(),
    };
    error
        .with_reason(format!(
            "this system has no interface for them but registers, and these: {}",
            obstacle.reason().unwrap_or(obstacle.attempted())
        ))
        .with_hint(hint)
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
        if #[cfg(all(feature = "msr", unix))] {
            let open = crate::msr::open_with(native, crate::msr::options());
            BackendStatus::new("msr", open.map(|msr| Arc::new(msr) as Arc<dyn Backend>))
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
        if #[cfg(all(feature = "pctr", target_os = "openbsd"))] {
            let path = std::path::Path::new(quipu_pctr::DEFAULT_PATH);
            let native = Arc::clone(native);
            let open = move || {
                let events = native.maps(quipu_events::Interface::Pctr).ok();
                quipu_pctr::open(path, events.and_then(|events| events.into_iter().next()))
            };
            let device = quipu_pctr::OnDemand::new(path, open);
            BackendStatus::new("pctr", device.map(|pctr| Arc::new(pctr) as Arc<dyn Backend>))
        } else {
            let _ = native;
            BackendStatus::missing("pctr", "use pctr(4)", cfg!(target_os = "openbsd"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_count_by_name_only_are_refused_with_that_name_and_what_is_in_its_way() {
        let usable = by_name_only(None);
        assert_eq!(usable.kind(), ErrorKind::NoSuchDevice);
        assert!(
            usable
                .hint()
                .is_some_and(|hint| hint.starts_with("quipu stat --backend msr -C LIST"))
        );
        let obstacle = Error::new(ErrorKind::NoPermission, "open /dev/cpuctl0")
            .with_reason("registers are for root only")
            .with_hint("run it as root");
        let refused = by_name_only(Some(&obstacle));
        assert_eq!(refused.kind(), ErrorKind::NoPermission);
        assert!(
            refused
                .reason()
                .is_some_and(|reason| reason.ends_with("registers are for root only"))
        );
        assert!(
            refused.hint().is_some_and(
                |hint| hint.starts_with("run it as root; then quipu stat --backend msr")
            )
        );
    }
}
