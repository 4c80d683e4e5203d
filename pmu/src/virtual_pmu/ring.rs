//! The ring of groups that take turns: a doubly linked list in a vector, in which every change takes the same time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::scheduled_group::ScheduledGroup;

/// Enabled groups of one schedule that are not pinned, in the order of their turns.
#[derive(Debug, Default)]
pub(super) struct Ring {
    nodes: Vec<Node>,
    /// The positions of nodes without a group.
    free: Vec<usize>,
    /// The position of the group that has the first choice; it means nothing while there is none.
    front: usize,
}

#[derive(Debug)]
struct Node {
    group: Option<Arc<ScheduledGroup>>,
    previous: usize,
    next: usize,
}

impl Ring {
    /// Returns the number of groups.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - self.free.len()
    }

    /// Adds a group that is in no ring, whose turn comes last.
    pub(super) fn push_back(&mut self, group: Arc<ScheduledGroup>) {
        let alone = self.len() == 0;
        let at = self.free.pop().unwrap_or(self.nodes.len());
        let (previous, next) = match alone {
            true => (at, at),
            false => (self.nodes[self.front].previous, self.front),
        };
        group.place_in_ring.store(at, Ordering::Relaxed);
        let node = Node {
            group: Some(group),
            previous,
            next,
        };
        match self.nodes.get_mut(at) {
            Some(free) => *free = node,
            None => self.nodes.push(node),
        }
        self.nodes[previous].next = at;
        self.nodes[next].previous = at;
        if alone {
            self.front = at;
        }
    }

    /// Removes a group, if it is in this ring.
    pub(super) fn remove(&mut self, group: &Arc<ScheduledGroup>) {
        let at = group.place_in_ring.load(Ordering::Relaxed);
        let is_it = |node: &&mut Node| matches!(&node.group, Some(own) if Arc::ptr_eq(own, group));
        let Some(node) = self.nodes.get_mut(at).filter(is_it) else {
            return;
        };
        node.group = None;
        let (previous, next) = (node.previous, node.next);
        self.nodes[previous].next = next;
        self.nodes[next].previous = previous;
        self.free.push(at);
        if self.front == at {
            self.front = next;
        }
    }

    /// Makes the second group the first, and the first the last.
    pub(super) fn turn(&mut self) {
        if let Some(front) = self.nodes.get(self.front) {
            self.front = front.next;
        }
    }

    /// Returns the groups in the order of their turns.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Arc<ScheduledGroup>> {
        let mut at = self.front;
        (0..self.len()).filter_map(move |_| {
            let node = &self.nodes[at];
            at = node.next;
            node.group.as_ref()
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::virtual_pmu::looks::Looks;

    /// A queue of the same groups is the oracle, over every order of changes that a small generator makes.
    #[test]
    fn a_ring_does_what_a_queue_does() {
        let group = |_| {
            Arc::new(ScheduledGroup::new(
                0,
                &[0],
                Arc::new([]),
                false,
                false,
                Looks::new(None),
            ))
        };
        let groups: Vec<_> = (0..7).map(group).collect();
        let mut ring = Ring::default();
        let mut queue: Vec<usize> = Vec::new();
        let mut random = 1u64;
        for _ in 0..10_000 {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let chosen = (random >> 33) as usize % 7;
            match (random >> 60) % 3 {
                0 if !queue.contains(&chosen) => {
                    ring.push_back(Arc::clone(&groups[chosen]));
                    queue.push(chosen);
                }
                1 => {
                    ring.remove(&groups[chosen]);
                    queue.retain(|&other| other != chosen);
                }
                _ if !queue.is_empty() => {
                    ring.turn();
                    queue.rotate_left(1);
                }
                _ => ring.turn(),
            }
            let expected = queue.iter().map(|&i| Arc::as_ptr(&groups[i]));
            assert!(ring.iter().map(Arc::as_ptr).eq(expected), "{queue:?}");
            assert_eq!(ring.len(), queue.len());
        }
        // Places are used again.
        assert!(ring.nodes.len() <= 7, "{}", ring.nodes.len());
    }
}
