//! The revisions of a core that a metric is for.

/// Revisions of a core of Arm: those before one, or that one and later ones.
///
/// ```
/// use quipu_events_format::Revisions;
///
/// let later = Revisions::parse(">= r0p3").unwrap();
/// assert!(!later.include(0x410f_d492) && later.include(0x410f_d493) && later.include(0x411f_d490));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Revisions {
    /// Major and minor: the variant and the revision of `MIDR_EL1`.
    first: (u8, u8),
    are_before: bool,
}

impl Revisions {
    /// Parses `< r0p3` or `>= r0p3`; `None` where the text is neither.
    pub fn parse(text: &str) -> Option<Self> {
        let (operator, revision) = text.split_once(' ')?;
        let (major, minor) = revision.strip_prefix('r')?.split_once('p')?;
        let are_before = match operator {
            "<" => true,
            ">=" => false,
            _ => return None,
        };
        Some(Self {
            first: (major.parse().ok()?, minor.parse().ok()?),
            are_before,
        })
    }

    /// Returns true if they include the revision in a main id register.
    pub fn include(self, midr: u64) -> bool {
        let revision = ((midr >> 20 & 0xf) as u8, (midr & 0xf) as u8);
        (revision < self.first) == self.are_before
    }
}
