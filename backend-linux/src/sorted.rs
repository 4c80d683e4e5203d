//! Sorting what is read once.

use std::collections::BinaryHeap;

/// Returns a list in ascending order. `sort` and `sort_unstable` of each type are several kilobytes of a program; this is a
/// tenth, and is for lists that are not sorted again and again.
pub(crate) fn sorted<T: Ord>(list: Vec<T>) -> Vec<T> {
    BinaryHeap::from(list).into_sorted_vec()
}

/// Inserts a number into a list in ascending order. Returns false if it was there.
pub(crate) fn insert<T: Ord>(list: &mut Vec<T>, number: T) -> bool {
    let at = list.partition_point(|other| *other < number);
    let is_new = list.get(at) != Some(&number);
    if is_new {
        list.insert(at, number);
    }
    is_new
}
