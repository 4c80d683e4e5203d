//! Knowledge of the names on a machine, which decides how some text reads.

use quipu_hal::{Event, Result};

/// The names of a machine's events, as far as they decide how text reads.
///
/// Event databases implement it. [`NoNames`] stands for none.
///
/// ```
/// use quipu_hal::Event;
/// use quipu_text::{EventNames, NoNames, parse_list};
///
/// /// A CPU whose event `L2_LD` has a unit mask `I`.
/// struct PentiumPro;
///
/// impl EventNames for PentiumPro {
///     fn ends_in_mask(&self, name: &str) -> bool {
///         name == "L2_LD:I"
///     }
/// }
///
/// let groups = parse_list("L2_LD:I", &PentiumPro)?;
/// assert_eq!(groups[0].members[0].event, Event::Named("L2_LD:I".into()));
/// // Without that, I is the modifier: not while the CPU idles.
/// let groups = parse_list("L2_LD:I", &NoNames)?;
/// assert_eq!(groups[0].members[0].event, Event::Named("L2_LD".into()));
/// # Ok::<(), quipu_hal::Error>(())
/// ```
pub trait EventNames {
    /// Returns true if the last part of a name, after its last `:`, is a unit mask of the event that the name
    /// begins with, and so no modifier of the same letters. By default none is.
    fn ends_in_mask(&self, name: &str) -> bool {
        let _ = name;
        false
    }

    /// Returns the generalized event that a name stands for where no event of the CPU has it:
    /// [in another letter case](crate::libpfm4::in_any_case). By default it stands for none.
    fn generalized(&self, name: &str) -> Option<Event> {
        let _ = name;
        None
    }

    /// Returns the tracepoints that a pattern with `*` and `?` stands for. By default there are none, and the pattern
    /// stays as it is, a name that nothing has.
    ///
    /// # Errors
    /// If the tracepoints cannot be listed, or none fits.
    fn tracepoints(&self, pattern: &str) -> Result<Vec<String>> {
        let _ = pattern;
        Ok(Vec::new())
    }
}

/// No knowledge of names.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoNames;

impl EventNames for NoNames {}
