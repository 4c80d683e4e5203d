//! The shortest form: count what a closure does.

use quipu_hal::{Count, Error, ErrorKind, Result};

use crate::{Counts, EventSet, IntoGroups};

/// The output of a closure, and the counts of the time it ran.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Measurement<T> {
    /// The output of the closure.
    pub output: T,
    /// The counts, event by event in request order.
    pub counts: Counts,
}

/// Counts events on the calling thread while `code` runs.
///
/// An event that cannot be counted has its error in the counts. Where
/// counting in the kernel is not permitted, user mode only is counted, and the event says so
/// ([`SetEvent::fell_back_to_user`](crate::SetEvent::fell_back_to_user)).
///
/// ```
/// let m = quipu::measure("page-faults,task-clock", || vec![1u8; 1 << 20])?;
/// println!("{:?} faults for {} bytes", m.total("page-faults")?, m.output.len());
/// # Ok::<(), quipu::Error>(())
/// ```
///
/// # Errors
/// If the text is malformed or the machine has no backend at all.
pub fn measure<T>(events: impl IntoGroups, code: impl FnOnce() -> T) -> Result<Measurement<T>> {
    let mut set = EventSet::builder()
        .events(events)?
        .user_mode_fallback(true)
        .open()?;
    let mut counts = set.counts();
    set.enable()?;
    let output = code();
    set.disable()?;
    set.read(&mut counts)?;
    Ok(Measurement { output, counts })
}

impl<T> Measurement<T> {
    /// Returns the total of an event, by the name it was asked for.
    ///
    /// # Errors
    /// The reason why it could not be counted; [`UnsupportedEvent`](ErrorKind::UnsupportedEvent) if it was not
    /// asked for.
    pub fn total(&self, name: &str) -> Result<Count, Error> {
        match self.counts.by_name(name) {
            Some(event) => event.total(),
            None => Err(Error::new(
                ErrorKind::UnsupportedEvent,
                format!("find the count of {name}"),
            )
            .with_reason("it is not among the events asked for")),
        }
    }
}
