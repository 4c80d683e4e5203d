//! Chains that were not unwound, for a note.

/// Copies of stacks that are not unwound.
#[derive(Debug, Default)]
pub(super) struct NotUnwound {
    /// Those of programs of 32 bits.
    pub(super) bits_32: u64,
    /// Those of an architecture that is not known.
    pub(super) other: u64,
}

impl NotUnwound {
    /// Returns what is to be said of them.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let kinds = [
            (self.bits_32, "programs of 32 bits"),
            (self.other, "a machine that is neither x86_64 nor aarch64"),
        ];
        let some = kinds.into_iter().filter(|(samples, _)| *samples > 0);
        some.map(|(samples, of)| {
            format!("{samples} copies of stacks of {of} are not unwound: there are no callers")
        })
    }
}
