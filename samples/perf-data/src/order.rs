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
    chunks: Vec<Chunk>,
    /// Positions of chunks of which no record waits.
    free: Vec<u32>,
    /// The chunk that takes records in, and its position.
    filling: Chunk,
    filling_at: u32,
    waiting: Vec<Waiting>,
    /// The newest time so far.
    newest: u64,
    /// The newest time when the round before ended.
    complete: u64,
}

/// Bytes of a chunk that takes records in. The longest record has 64 KiB.
const CHUNK: usize = 128 << 10;

/// Memory for records, which is given back when the last of them is handed out.
#[derive(Debug, Default)]
struct Chunk {
    bytes: Vec<u8>,
    /// The number of its records that wait.
    waiting: usize,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    time: u64,
    chunk: u32,
    start: u32,
    len: u32,
}

impl TimeOrder {
    /// Returns an order without records.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a record with its time.
    #[inline]
    pub fn push(&mut self, time: u64, record: &[u8]) {
        if self.filling.bytes.len() + record.len() > self.filling.bytes.capacity() {
            self.begin_chunk(record.len());
        }
        let start = self.filling.bytes.len();
        self.filling.bytes.extend_from_slice(record);
        self.filling.waiting += 1;
        self.waiting.push(Waiting {
            time,
            chunk: self.filling_at,
            start: start as u32,
            len: record.len() as u32,
        });
        self.newest = self.newest.max(time);
    }

    /// Makes an empty chunk with room for a record the one that takes records in.
    #[cold]
    fn begin_chunk(&mut self, len: usize) {
        let at = self.free.pop().unwrap_or_else(|| {
            self.chunks.push(Chunk::default());
            self.chunks.len() as u32 - 1
        });
        let mut next = std::mem::take(&mut self.chunks[at as usize]);
        next.bytes.reserve(CHUNK.max(len));
        self.put_back();
        (self.filling, self.filling_at) = (next, at);
    }

    /// Puts the chunk that takes records in to the others.
    fn put_back(&mut self) {
        let at = self.filling_at as usize;
        if let Some(place) = self.chunks.get_mut(at)
            && self.filling.bytes.capacity() > 0
        {
            *place = std::mem::take(&mut self.filling);
            if place.waiting == 0 {
                self.give_back(at as u32);
            }
        }
    }

    fn give_back(&mut self, at: u32) {
        /// As many empty chunks keep their memory for the next round.
        const KEPT: usize = 64;
        let chunk = &mut self.chunks[at as usize];
        match self.free.len() < KEPT {
            true => chunk.bytes.clear(),
            false => chunk.bytes = Vec::new(),
        }
        self.free.push(at);
    }

    /// Ends a round: hands out, in order, the records before which none can come any more.
    ///
    /// # Errors
    /// The first that `sink` returns; what it has not seen by then is lost.
    pub fn finish_round<E>(&mut self, sink: impl FnMut(&[u8]) -> Result<(), E>) -> Result<(), E> {
        let limit = self.complete;
        self.complete = self.newest;
        self.hand_out(limit, sink)
    }

    /// Ends the recording: hands out the remaining records in order.
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
        self.put_back();
        // Stable, and quick on what is mostly in order.
        self.waiting.sort_by_key(|record| record.time);
        let ready = self.waiting.partition_point(|record| record.time <= limit);
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut outcome = Ok(());
        for record in waiting.drain(..ready) {
            let (start, len) = (record.start as usize, record.len as usize);
            let chunk = &mut self.chunks[record.chunk as usize];
            if outcome.is_ok() {
                outcome = sink(&chunk.bytes[start..start + len]);
            }
            chunk.waiting -= 1;
            if chunk.waiting == 0 {
                self.give_back(record.chunk);
            }
        }
        self.waiting = waiting;
        outcome
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
    fn memory_of_what_was_handed_out_is_used_again() {
        let mut order = TimeOrder::new();
        let record = [7; 1000];
        let (mut pushed, mut seen) = (0, 0);
        for time in 0..100_000 {
            order.push(time, &record);
            pushed += 1;
            if time % 500 == 0 {
                let Ok(()) = order.finish_round(|record| -> Result<(), Infallible> {
                    assert_eq!(record, [7; 1000]);
                    seen += 1;
                    Ok(())
                });
            }
        }
        assert!(seen < pushed && pushed - seen <= 1500);
        assert!(order.chunks.len() <= 20, "{} chunks", order.chunks.len());
        order.push(0, &[1; 3 * CHUNK]);
        let mut longest = 0;
        let Ok(()) = order.finish(|record| -> Result<(), Infallible> {
            longest = longest.max(record.len());
            seen += 1;
            Ok(())
        });
        assert_eq!((seen, longest), (pushed + 1, 3 * CHUNK));
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
