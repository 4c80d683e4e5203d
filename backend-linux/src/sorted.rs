//! Sorting what is read once.

use std::collections::BinaryHeap;

/// Returns a list in ascending order. `sort` and `sort_unstable` of each type are several kilobytes of a program; this is a
/// tenth, and is for lists that are not sorted again and again.
pub(crate) fn sorted<T: Ord>(list: Vec<T>) -> Vec<T> {
    BinaryHeap::from(list).into_sorted_vec()
}
