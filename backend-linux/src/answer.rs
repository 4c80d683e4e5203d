//! Answers that stay as they are while the program runs.

use std::sync::atomic::{AtomicU8, Ordering};

/// An answer that is found out when it is first asked for, perhaps by several threads at once: it is the same for all, and
/// to wait for one of them, as a `OnceLock` does, would be ten times the code.
#[derive(Debug)]
pub(crate) struct Answer(AtomicU8);

const UNKNOWN: u8 = 2;

impl Answer {
    /// Returns one that is not known yet.
    pub(crate) const fn unknown() -> Self {
        Self(AtomicU8::new(UNKNOWN))
    }

    /// Returns the answer, which `find` gives if it is not known yet.
    pub(crate) fn or_find(&self, find: fn() -> bool) -> bool {
        match self.0.load(Ordering::Relaxed) {
            UNKNOWN => {
                let found = find();
                self.0.store(found.into(), Ordering::Relaxed);
                found
            }
            known => known == 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_found_out_once() {
        for found in [false, true] {
            let answer = Answer::unknown();
            assert_eq!(
                answer.or_find(if found { || true } else { || false }),
                found
            );
            assert_eq!(answer.or_find(|| unreachable!("it is known")), found);
        }
    }
}
