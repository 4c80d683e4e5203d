//! Bringing records into the order of their times.

/// Records waiting for those that may still come before them.
///
/// Every buffer of a recording is in order by itself. Each round reads all buffers once; when a round
/// ends, nothing can come any more that is older than the newest record of the round before, so all up
/// to there is handed out (`ordered_events__flush`, `tools/perf/util/ordered-events.c`). Records of the
/// same time stay in the order they came in.
///
/// ```
/// use quipu_perf_data::TimeOrder;
///
/// let mut order = TimeOrder::new();
/// for time in [1, 3, 2] {
///     order.push(time, &[time as u8]);
/// }
/// let mut seen = Vec::new();
/// order.finish(|record| {
///     seen.extend_from_slice(record);
///     Ok::<_, std::convert::Infallible>(())
/// })?;
/// assert_eq!(seen, [1, 2, 3]);
/// # Ok::<_, std::convert::Infallible>(())
/// ```
#[derive(Debug, Default)]
pub struct TimeOrder {
    bytes: Vec<u8>,
    waiting: Vec<Waiting>,
    /// The newest time so far.
    newest: u64,
    /// The newest time when the round before ended.
    complete: u64,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    time: u64,
    start: usize,
    end: usize,
}

impl TimeOrder {
    /// Nothing waits yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes in a record of a time.
    pub fn push(&mut self, time: u64, record: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(record);
        self.waiting.push(Waiting {
            time,
            start,
            end: self.bytes.len(),
        });
        self.newest = self.newest.max(time);
    }

    /// A round has ended: hands out what is complete, in order.
    ///
    /// # Errors
    /// The first that `sink` returns; what it has not seen by then is lost.
    pub fn finish_round<E>(&mut self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let limit = self.complete;
        self.complete = self.newest;
        self.hand_out(limit, sink)
    }

    /// Nothing comes any more: hands out the rest, in order.
    ///
    /// # Errors
    /// The first that `sink` returns.
    pub fn finish<E>(mut self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        self.hand_out(u64::MAX, sink)
    }

    fn hand_out<E>(
        &mut self,
        limit: u64,
        mut sink: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), E> {
        // Stable, and quick on what is mostly in order.
        self.waiting.sort_by_key(|record| record.time);
        let ready = self.waiting.partition_point(|record| record.time <= limit);
        let rest = self.waiting.split_off(ready);
        let ready = std::mem::replace(&mut self.waiting, rest);
        for record in ready {
            sink(&self.bytes[record.start..record.end])?;
        }
        let mut kept = Vec::with_capacity(self.bytes.len().min(1 << 16));
        for record in &mut self.waiting {
            let start = kept.len();
            kept.extend_from_slice(&self.bytes[record.start..record.end]);
            (record.start, record.end) = (start, kept.len());
        }
        self.bytes = kept;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn push(order: &mut TimeOrder, times: &[u8]) {
        for &time in times {
            order.push(time.into(), &[time]);
        }
    }

    fn round(order: &mut TimeOrder) -> Vec<u8> {
        let mut seen = Vec::new();
        let Ok(()) = order.finish_round(|record| -> Result<(), Infallible> {
            seen.extend_from_slice(record);
            Ok(())
        });
        seen
    }

    #[test]
    fn a_round_is_handed_out_when_the_next_one_ends() {
        let mut order = TimeOrder::new();
        // Two buffers, the second read a moment later.
        push(&mut order, &[1, 3, 5, 2, 4, 6]);
        assert_eq!(round(&mut order), []);
        push(&mut order, &[7, 9, 8]);
        assert_eq!(round(&mut order), [1, 2, 3, 4, 5, 6]);
        assert_eq!(round(&mut order), [7, 8, 9]);
        push(&mut order, &[12, 11]);
        let mut rest = Vec::new();
        let Ok(()) = order.finish(|record| -> Result<(), Infallible> {
            rest.extend_from_slice(record);
            Ok(())
        });
        assert_eq!(rest, [11, 12]);
    }

    #[test]
    fn the_same_time_keeps_the_order() {
        let mut order = TimeOrder::new();
        for record in [b"b", b"a", b"c"] {
            order.push(1, record);
        }
        round(&mut order);
        assert_eq!(round(&mut order), b"bac");
    }
}
