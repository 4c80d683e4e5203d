//! The queue of messages that are to be sent: bounded, so that the oldest are lost while the receiver is away.

use std::collections::VecDeque;

use hyper::body::Bytes;

/// A message.
#[derive(Debug, Clone)]
pub(crate) struct Batch {
    pub(crate) bytes: Bytes,
    pub(crate) points: u64,
}

/// Messages from the oldest to the newest.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    batches: VecDeque<Batch>,
    bytes: usize,
}

impl Queue {
    /// The most bytes that wait.
    const MOST: usize = 16 << 20;

    /// Adds a message, and returns the number of points that had to go for it.
    pub(crate) fn push(&mut self, batch: Batch) -> u64 {
        self.bytes += batch.bytes.len();
        self.batches.push_back(batch);
        let mut lost = 0;
        while self.bytes > Self::MOST
            && self.batches.len() > 1
            && let Some(oldest) = self.pop()
        {
            lost += oldest.points;
        }
        lost
    }

    /// Takes the oldest message.
    pub(crate) fn pop(&mut self) -> Option<Batch> {
        let batch = self.batches.pop_front()?;
        self.bytes -= batch.bytes.len();
        Some(batch)
    }

    /// Puts a message back that was taken and not sent.
    pub(crate) fn put_back(&mut self, batch: Batch) {
        self.bytes += batch.bytes.len();
        self.batches.push_front(batch);
    }

    /// Takes all, and returns the number of their points.
    pub(crate) fn clear(&mut self) -> u64 {
        let points = self.batches.drain(..).map(|batch| batch.points).sum();
        self.bytes = 0;
        points
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_lost_and_counted_where_there_is_no_room() {
        let mut queue = Queue::default();
        let batch = |points| Batch {
            bytes: vec![0; Queue::MOST / 4].into(),
            points,
        };
        let lost: u64 = (1..=6).map(|points| queue.push(batch(points))).sum();
        assert_eq!(lost, 1 + 2);
        assert_eq!(queue.pop().map(|batch| batch.points), Some(3));
        assert_eq!(queue.push(batch(7)), 0);
        assert_eq!(queue.clear(), 4 + 5 + 6 + 7);
        assert!(queue.pop().is_none() && queue.bytes == 0);
    }
}
