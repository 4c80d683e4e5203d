//! Reading the counters of a kernel group on many threads at once: nothing is remembered from one read to the next.

use std::sync::Arc;

use super::call::{Opened, ReadFailure};
use super::pages::SharedPages;
use crate::user_page::Times;

/// The words of a read that are kept on the stack: those of 16 members.
const FEW_WORDS: usize = 35;

/// A reader of the open counters of a kernel group.
#[derive(Debug)]
pub(crate) struct Reader {
    opened: Arc<Opened>,
    pages: Option<SharedPages>,
}

impl Reader {
    pub(super) fn new(opened: Arc<Opened>, pages: Option<SharedPages>) -> Self {
        Self { opened, pages }
    }

    /// Reads every member, without a system call if that is possible on this thread at this moment. `found` takes each by
    /// its position, with its value and times; of those that it takes more than once, the last are right.
    pub(crate) fn read(&self, mut found: impl FnMut(usize, u64, Times)) -> Result<(), ReadFailure> {
        if let Some(pages) = &self.pages
            && pages.read(&mut found)
        {
            return Ok(());
        }
        let unchanged = |times| times;
        match [0; FEW_WORDS].get_mut(..self.opened.words()) {
            Some(words) => self.opened.read(words, unchanged, found),
            None => self
                .opened
                .read(&mut vec![0; self.opened.words()], unchanged, found),
        }
    }
}
