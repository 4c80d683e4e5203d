//! Totals of subjects that have ended, kept so that one that comes back goes on from there.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use crate::series::Labels;
use crate::subject::Total;

type Key = (Labels, Arc<str>);

/// The totals of what ended last; the oldest are forgotten.
#[derive(Default)]
pub(crate) struct Retired {
    totals: HashMap<Key, Total>,
    /// The keys from the oldest on, perhaps of totals that were taken.
    order: VecDeque<Key>,
}

impl Retired {
    /// The most totals that are kept.
    const MOST: usize = 10_000;

    pub(crate) fn keep(&mut self, labels: &Labels, event: &Arc<str>, total: Total) {
        let key = (Arc::clone(labels), Arc::clone(event));
        self.order.push_back(key.clone());
        self.totals.insert(key, total);
        while self.order.len() > Self::MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.totals.remove(&oldest);
        }
    }

    /// Takes the total of an event of a subject, if it is still there.
    pub(crate) fn take(&mut self, labels: &Labels, event: &Arc<str>) -> Option<Total> {
        let key = (Arc::clone(labels), Arc::clone(event));
        let total = self.totals.remove(&key)?;
        self.order.retain(|kept| *kept != key);
        Some(total)
    }
}
