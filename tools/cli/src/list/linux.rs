//! The events that the kernel names: of its PMUs, and tracepoints.

use quipu::{Error, Event, Target};
use quipu_hal::PmuEvent;
use quipu_linux::sysfs::{Format, NamedEvent, Pmu, SysfsPmus};
use quipu_linux::tracefs::Tracefs;

use super::catalog::Catalog;
use super::entry::{ListedEvent, State};
use super::selection::{EventKind, ListFilter};

impl Catalog {
    /// Adds the events that the kernel's PMUs name, and how to write others.
    pub fn add_pmus(&mut self, selection: &ListFilter, pmus: &SysfsPmus) {
        if !selection.has_kind(EventKind::Pmu) && !selection.has_kind(EventKind::Raw) {
            return;
        }
        let pmus = match pmus.pmus() {
            Ok(pmus) => pmus,
            Err(error) => return self.unavailable.push((EventKind::Pmu, error)),
        };
        for pmu in pmus {
            if !pmu.formats.is_empty() {
                self.add(selection, terms_form(&pmu), &[]);
            }
            for event in &pmu.events {
                self.add(selection, pmu_event(&pmu, event), &[]);
            }
        }
    }

    /// Adds the kernel's tracepoints, or why they cannot be listed.
    pub fn add_tracepoints(&mut self, selection: &ListFilter, tracefs: Result<Tracefs, Error>) {
        let listed = tracefs.and_then(|tracefs| {
            for (system, name) in tracefs.tracepoints()? {
                let plain = format!("{system}:{name}");
                let event = Event::tracepoint(system, name);
                self.add(
                    selection,
                    ListedEvent::event(EventKind::Tracepoint, event, "").named(plain),
                    &[],
                );
            }
            Ok(())
        });
        if let Err(error) = listed {
            self.unavailable.push((EventKind::Tracepoint, error));
        }
    }
}

impl ListedEvent {
    /// Returns an entry of text with parts to fill in.
    fn form(kind: EventKind, name: impl Into<String>, description: impl Into<String>) -> Self {
        Self {
            kind,
            name: name.into(),
            aliases: &[],
            description: description.into(),
            probe: None,
            state: State::Form,
        }
    }
}

/// Returns the syntax of this PMU's events by their fields.
fn terms_form(pmu: &Pmu) -> ListedEvent {
    let field = |format: &Format| match format.field() {
        Ok(field) if field.width() == 1 => format.name.clone(),
        _ => format!("{}=N", format.name),
    };
    let terms: Vec<String> = pmu.formats.iter().map(field).collect();
    let bits = |format: &Format| format!("{} {}", format.name, format.definition);
    let bits: Vec<String> = pmu.formats.iter().map(bits).collect();
    let name = format!("{}/{}/", pmu.name, terms.join(","));
    ListedEvent::form(EventKind::Raw, name, bits.join(", "))
}

fn pmu_event(pmu: &Pmu, named: &NamedEvent) -> ListedEvent {
    let mut description = named.definition.clone();
    if !named.unit.is_empty() {
        description.push_str(&format!(", in {}", named.unit));
    }
    let event = PmuEvent::new(&pmu.name).with(&named.name);
    let parameters: Vec<&str> = named
        .definition
        .split(',')
        .filter(|term| term.ends_with("=?"))
        .collect();
    if !parameters.is_empty() {
        let name = format!("{}/{},{}/", pmu.name, named.name, parameters.join(","));
        return ListedEvent::form(EventKind::Pmu, name, description);
    }
    let mut entry = ListedEvent::event(EventKind::Pmu, event, description);
    if let (Some(cpu), Some((_, target))) = (
        pmu.cpumask.as_ref().and_then(|cpus| cpus.first()),
        &mut entry.probe,
    ) {
        *target = Target::Cpu(*cpu);
        entry.description.push_str(", of whole CPUs (-a)");
    }
    entry
}
