//! The backends for events of the CPU's counters: those that the event database lists for this CPU, in its order.

use std::sync::Arc;

use quipu_hal::{Backend, Error, ErrorKind, Event, Result};

use crate::{BackendStatus, Machine};

/// The ways to override the choice, and to consent.
const CONSENT: &str = "`quipu stat --backend msr -C LIST` counts with them, on CPUs, and so does `--allow-msr` where the \
                       event database prefers them";

impl Machine {
    /// Returns true if an event is one of the CPU's counters: the backends that the event database lists count it. Names
    /// of the system itself (`PMU/terms/`, tracepoints, probes) are not.
    pub(crate) fn is_of_counters(&self, event: &Event) -> bool {
        match event {
            Event::Hardware(_) | Event::Cache(_) | Event::Raw(_) => true,
            Event::Named(name) => self.native.has_event(name),
            _ => false,
        }
    }

    /// Returns the backends for events of the CPU's counters, in the order in which they are tried. If the database does
    /// not know the CPU, or lists nothing for it on this system, these are [all](Self::require).
    ///
    /// # Errors
    /// As [`require`](Self::require); why the backends that are listed cannot be used, if none can.
    pub fn for_counters(&self) -> Result<&[Arc<dyn Backend>]> {
        let chosen = self.counter_backends.get_or_init(|| self.choose());
        chosen.as_deref().map_err(Clone::clone)
    }

    /// Returns the registers that could not be put back by any backend that was used
    /// ([`Backend::restore_failures`]).
    pub fn restore_failures(&self) -> Vec<Error> {
        let chosen = self.counter_backends.get().and_then(|c| c.as_ref().ok());
        // Those that count other events too are among the usable ones.
        let by_consent = chosen.into_iter().flatten();
        let by_consent =
            by_consent.filter(|b| self.usable().all(|usable| usable.name() != b.name()));
        let used = self.usable().chain(by_consent);
        used.flat_map(Backend::restore_failures).collect()
    }

    fn choose(&self) -> Result<Vec<Arc<dyn Backend>>> {
        let listed = self.native.listed_backends().unwrap_or_default();
        if listed.is_empty() {
            let mut backends = self.require()?;
            if self.consents() {
                let allowed = self.on_request().iter();
                backends.extend(allowed.filter_map(|status| status.backend().cloned()));
            }
            return Ok(backends);
        }
        let mut usable = Vec::new();
        let mut obstacles = Vec::new();
        for name in &listed {
            match self.listed(name) {
                Ok(backend) => usable.push(backend),
                Err(error) => obstacles.push(error),
            }
        }
        match usable.is_empty() {
            false => Ok(usable),
            true => Err(none_usable(&listed, obstacles)),
        }
    }

    /// Returns the backend of a listed name, or why events of the CPU's counters are not counted with it.
    fn listed(&self, name: &str) -> Result<Arc<dyn Backend>, Obstacle> {
        let is_it = |status: &&BackendStatus| status.name() == name;
        if let Some(status) = self.backends().iter().find(is_it) {
            return status
                .state
                .clone()
                .map_err(|error| match status.is_of_this_system {
                    true => Obstacle::Refused(error),
                    false => Obstacle::Other(reason_of(&error)),
                });
        }
        match self.on_request().iter().find(is_it) {
            None => Err(Obstacle::Other(
                "this program has no backend of that name".to_owned(),
            )),
            Some(status) => match &status.state {
                Ok(backend) if self.consents() => Ok(Arc::clone(backend)),
                Err(error) if self.consents() => Err(Obstacle::Refused(error.clone())),
                state => Err(Obstacle::Consent(state.as_ref().err().cloned())),
            },
        }
    }

    /// Returns the reason why the CPU's counters are not counted with here unless a backend is named, on systems where
    /// only such a backend reaches them.
    pub(crate) fn counts_by_name_only(&self) -> Option<Error> {
        if !cfg!(any(target_os = "freebsd", target_os = "dragonfly")) || self.consents() {
            return None;
        }
        let registers = self.on_request().first()?;
        Some(needs_consent(registers.error()))
    }
}

/// The reason why a listed backend is not used.
enum Obstacle {
    /// It is of this system, and cannot be used.
    Refused(Error),
    /// It writes registers without consent to that, and perhaps cannot be used with consent either.
    Consent(Option<Error>),
    /// It is of another system, or unknown.
    Other(String),
}

/// Returns the error if no backend of a list can be used: that of the first of this system, which its user would expect.
fn none_usable(listed: &[&str], obstacles: Vec<Obstacle>) -> Error {
    let mut reasons = Vec::new();
    let mut consent = None;
    for (name, obstacle) in listed.iter().zip(obstacles) {
        match obstacle {
            Obstacle::Refused(error) => return error,
            Obstacle::Consent(error) => {
                consent.get_or_insert_with(|| needs_consent(error.as_ref()));
            }
            Obstacle::Other(reason) => reasons.push(format!("{name}: {reason}")),
        }
    }
    consent.unwrap_or_else(|| {
        let listed = listed.join(", ");
        Error::new(ErrorKind::UnsupportedFeature, "count events of the CPU")
            .with_reason(format!(
                "the event database lists {listed} for it on this system ({})",
                reasons.join("; ")
            ))
            .with_hint(
                "`quipu info` shows the choice; an event file, or naming a backend, changes it",
            )
    })
}

fn reason_of(error: &Error) -> String {
    error.reason().unwrap_or(error.attempted()).to_owned()
}

/// Returns the refusal of events that the registers of CPUs count, after consent, or why these cannot either.
fn needs_consent(obstacle: Option<&Error>) -> Error {
    let kind = obstacle.map_or(ErrorKind::UnsupportedFeature, Error::kind);
    let error = Error::new(kind, "count events of the CPU");
    let Some(obstacle) = obstacle else {
        return error
            .with_reason(
                "only its registers reach them here, which are written after consent alone",
            )
            .with_hint(CONSENT);
    };
    let hint = match obstacle.hint() {
        Some(hint) => format!("{hint}; then {CONSENT}"),
        None => CONSENT.to_owned(),
    };
    error
        .with_reason(format!(
            "only its registers reach them here, and these: {}",
            reason_of(obstacle)
        ))
        .with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_that_need_consent_are_refused_with_how_to_give_it_and_what_is_in_its_way() {
        let usable = needs_consent(None);
        assert_eq!(usable.kind(), ErrorKind::UnsupportedFeature);
        let hint = usable.hint().unwrap_or_default();
        assert!(hint.starts_with("`quipu stat --backend msr -C LIST`"));
        let obstacle = Error::new(ErrorKind::NoPermission, "open /dev/cpuctl0")
            .with_reason("registers are for root only")
            .with_hint("run it as root");
        let refused = needs_consent(Some(&obstacle));
        assert_eq!(refused.kind(), ErrorKind::NoPermission);
        let reason = refused.reason().unwrap_or_default();
        assert!(reason.ends_with("registers are for root only"));
        let hint = refused.hint().unwrap_or_default();
        assert!(hint.starts_with("run it as root; then `quipu stat --backend msr"));
    }
}
