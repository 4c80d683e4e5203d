//! Samples whose frames of user mode come later, when their thread is back there
//! (`PERF_RECORD_CALLCHAIN_DEFERRED`, `include/uapi/linux/perf_event.h`).

use foldhash::HashMap;
use quipu_perf_data::record::CallchainDeferred;
use quipu_perf_data::{RawRecord, Sample};

/// `PERF_CONTEXT_USER_DEFERRED`.
const USER_DEFERRED: u64 = -640_i64 as u64;
/// The offset of the size in the header of a record.
const SIZE_AT: usize = 6;

/// The samples that wait, by their threads and the cookies of their frames.
#[derive(Debug, Default)]
pub(super) struct Deferred {
    waiting: HashMap<(i32, u64), Vec<Vec<u8>>>,
}

impl Deferred {
    /// Keeps a sample whose frames come later; returns false if it has them.
    pub(super) fn keep(&mut self, record: RawRecord<'_>, sample: &Sample<'_>) -> bool {
        let Some(cookie) = cookie_of(sample) else {
            return false;
        };
        let thread = sample.thread().map_or(-1, |thread| thread.tid);
        let waiting = self.waiting.entry((thread, cookie)).or_default();
        waiting.push(record.bytes().to_vec());
        true
    }

    /// Returns the samples of a thread that waited for these frames. Their chains still say where the frames go.
    pub(super) fn take(&mut self, thread: i32, cookie: u64) -> Vec<Vec<u8>> {
        self.waiting.remove(&(thread, cookie)).unwrap_or_default()
    }

    /// Returns the samples whose frames never came.
    pub(super) fn rest(&mut self) -> Vec<Vec<u8>> {
        let all = std::mem::take(&mut self.waiting);
        all.into_values().flatten().collect()
    }
}

/// Returns the cookie of the frames that come later: the last of a chain, after its marker.
fn cookie_of(sample: &Sample<'_>) -> Option<u64> {
    let entries = sample.callchain()?.entries();
    let marker = entries.len().checked_sub(2)?;
    let is_deferred = entries.get(marker) == Some(USER_DEFERRED);
    is_deferred.then(|| entries.get(marker + 1)).flatten()
}

/// Returns a sample with its frames in the place of the marker and the cookie; `None` where they do not fit into a record.
pub(super) fn with_frames(
    record: RawRecord<'_>,
    sample: &Sample<'_>,
    frames: &CallchainDeferred<'_>,
) -> Option<Vec<u8>> {
    let (entries, frames) = (sample.callchain()?.entries(), frames.callchain.entries());
    let start = entries.bytes().as_ptr().addr() - record.bytes().as_ptr().addr();
    let marker = entries.len().checked_sub(2)?;
    let (kept, end) = (start + 8 * marker, start + 8 * entries.len());
    let bytes = record.bytes();
    let whole = [bytes.get(..kept)?, frames.bytes(), bytes.get(end..)?];
    let mut whole = whole.concat();
    let count = (marker + frames.len()) as u64;
    whole
        .get_mut(start - 8..start)?
        .copy_from_slice(&count.to_ne_bytes());
    let size = u16::try_from(whole.len()).ok()?;
    whole
        .get_mut(SIZE_AT..SIZE_AT + 2)?
        .copy_from_slice(&size.to_ne_bytes());
    Some(whole)
}
