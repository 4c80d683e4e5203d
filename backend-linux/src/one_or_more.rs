//! Lists that are most often of one, which takes no memory of its own.

use std::mem;
use std::ops::{Deref, DerefMut};

/// A list that holds a single item in place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OneOrMore<T> {
    One([T; 1]),
    /// None or several.
    Other(Vec<T>),
}

impl<T> OneOrMore<T> {
    /// Returns an empty list for so many items.
    pub(crate) fn with_capacity(items: usize) -> Self {
        Self::Other(match items {
            1 => Vec::new(),
            several => Vec::with_capacity(several),
        })
    }

    /// Makes room for so many items in an empty list.
    pub(crate) fn reserve(&mut self, items: usize) {
        if let (Self::Other(none), 2..) = (self, items) {
            none.reserve_exact(items);
        }
    }

    /// Returns the item that it holds in place.
    #[inline(always)]
    pub(crate) fn only(&self) -> Option<&T> {
        match self {
            Self::One([only]) => Some(only),
            Self::Other(_) => None,
        }
    }

    /// Returns the item that it holds in place.
    #[inline(always)]
    pub(crate) fn only_mut(&mut self) -> Option<&mut T> {
        match self {
            Self::One([only]) => Some(only),
            Self::Other(_) => None,
        }
    }

    #[inline]
    pub(crate) fn push(&mut self, item: T) {
        match self {
            Self::Other(_) => self.put(item),
            Self::One(_) => self.push_second(item),
        }
    }

    /// Adds an item to a list that was made or [reserved](Self::reserve) for so many.
    ///
    /// # Panics
    /// If it was made for one and has that.
    #[inline]
    pub(crate) fn put(&mut self, item: T) {
        match self {
            // The list that was is not dropped: it has nothing, and the code to drop it would be in many places.
            Self::Other(none) if none.capacity() == 0 => {
                mem::forget(mem::replace(self, Self::One([item])));
            }
            Self::Other(others) => others.push(item),
            Self::One(_) => unreachable!("it has room"),
        }
    }

    #[inline]
    fn push_second(&mut self, item: T) {
        if let Self::One([first]) = mem::take(self) {
            mem::forget(mem::replace(self, Self::Other(vec![first, item])));
        }
    }
}

impl<T> Default for OneOrMore<T> {
    fn default() -> Self {
        Self::Other(Vec::new())
    }
}

impl<T> Deref for OneOrMore<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        match self {
            Self::One(one) => one,
            Self::Other(others) => others,
        }
    }
}

impl<T> DerefMut for OneOrMore<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T] {
        match self {
            Self::One(one) => one,
            Self::Other(others) => others,
        }
    }
}

impl<T> Extend<T> for OneOrMore<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, items: I) {
        items.into_iter().for_each(|item| self.push(item));
    }
}

impl<T> FromIterator<T> for OneOrMore<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        let items = items.into_iter();
        let mut list = Self::with_capacity(items.size_hint().0);
        list.extend(items);
        list
    }
}

impl<T> IntoIterator for OneOrMore<T> {
    type Item = T;
    type IntoIter = std::iter::Chain<std::option::IntoIter<T>, std::vec::IntoIter<T>>;

    fn into_iter(self) -> Self::IntoIter {
        let (one, others) = match self {
            Self::One([one]) => (Some(one), Vec::new()),
            Self::Other(others) => (None, others),
        };
        one.into_iter().chain(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_kept_in_order_and_one_in_place() {
        for items in 0..5 {
            let collected: OneOrMore<_> = (0..items).collect();
            assert_eq!(matches!(collected, OneOrMore::One(_)), items == 1);
            let mut pushed = OneOrMore::default();
            (0..items).for_each(|item| pushed.push(item));
            for mut list in [collected, pushed] {
                assert!(list.iter().copied().eq(0..items));
                list.iter_mut().for_each(|item| *item += 1);
                assert!(list.into_iter().eq(1..=items));
            }
        }
    }
}
