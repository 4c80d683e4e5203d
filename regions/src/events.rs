//! The events that are counted in all regions of the process.

use std::sync::OnceLock;

use quipu::{Error, ErrorKind, EventSet, EventSetBuilder, Result};

use crate::exit::EVENTS_VARIABLE;

/// The events that are counted unless the program or its user says otherwise. What cannot be counted is in the report with its reason.
const USUAL: &str = "task-clock,page-faults,instructions,cycles";

static CHOSEN: OnceLock<Result<EventSetBuilder>> = OnceLock::new();

/// Chooses the events that regions count, written as for `quipu stat -e`. The user's choice by the variable
/// `QUIPU_REGION_EVENTS` goes before that of the program.
///
/// ```
/// quipu_regions::choose_events("{page-faults,task-clock}")?;
/// let faults = quipu_regions::region!("fill");
/// let filled = vec![1u8; 1 << 20];
/// # Ok::<(), quipu::Error>(())
/// ```
///
/// # Errors
/// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if the text is malformed, or a region was entered already.
pub fn choose_events(events: &str) -> Result<()> {
    let mut own = parsed(events)?;
    let mut is_first = false;
    CHOSEN.get_or_init(|| {
        is_first = true;
        match of_user() {
            Some(of_user) => of_user,
            None => Ok(std::mem::replace(&mut own, EventSet::builder())),
        }
    });
    match is_first {
        true => Ok(()),
        false => Err(Error::new(
            ErrorKind::InvalidConfiguration,
            "choose the events of regions",
        )
        .with_reason("a region was entered before, or they were chosen already")),
    }
}

fn of_user() -> Option<Result<EventSetBuilder>> {
    let events = quipu_environment::text(EVENTS_VARIABLE)?;
    let named =
        |error: Error| error.with_hint(format!("the events are those of {EVENTS_VARIABLE}"));
    (!events.is_empty()).then(|| parsed(&events).map_err(named))
}

fn parsed(events: &str) -> Result<EventSetBuilder> {
    let mut builder = EventSet::builder();
    builder.events(events)?;
    builder.user_mode_fallback(true).cpu_fallback(true);
    Ok(builder)
}

/// Opens the events in the calling thread.
pub(crate) fn open() -> Result<EventSet> {
    let chosen = CHOSEN.get_or_init(|| of_user().unwrap_or_else(|| parsed(USUAL)));
    chosen.as_ref().map_err(Clone::clone)?.open()
}
