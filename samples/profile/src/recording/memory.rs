//! The memory that a recording may take: small files must not need much of it.

use quipu_symbols::Symbolizer;

/// Bytes that any recording may take, and as many more for each byte of it that was read. A table that grows takes three
/// times its memory for a moment.
const MOST: u64 = 400_000_000;
const OF_EACH_BYTE: u64 = 16;
/// As many more for each byte of the files that were read for names.
const OF_EACH_BYTE_OF_FILES: u64 = 4;
/// Bytes of records between two looks.
const STEP: usize = 1 << 20;

/// The memory that a recording takes.
#[derive(Debug)]
pub(super) struct Memory {
    /// Bytes that it may take, where a person says so.
    named: Option<u64>,
    /// Bytes that this process took before.
    before: u64,
    /// Bytes of records since the last look.
    since: usize,
    /// Bytes of the file that were read.
    pub(super) read: u64,
}

impl Memory {
    /// As many bytes a record counts as that is no sample: what it changes may take more than it.
    pub(super) const OF_STATE: usize = 4096;

    /// Returns that of a recording that may take so many megabytes.
    pub(super) fn of_recording(named: Option<u64>) -> Self {
        Self {
            named: named.map(|megabytes| megabytes.saturating_mul(1_000_000)),
            before: taken().unwrap_or(0),
            since: 0,
            read: 0,
        }
    }

    /// Takes note of so many bytes of records. Returns a sentence on what the recording takes if that is more than it may.
    #[inline]
    pub(super) fn excess(&mut self, bytes: usize, names: &Symbolizer) -> Option<String> {
        self.since += bytes;
        match self.since < STEP {
            true => None,
            false => self.look(names),
        }
    }

    #[cold]
    fn look(&mut self, names: &Symbolizer) -> Option<String> {
        self.since = 0;
        let taken = taken()?.saturating_sub(self.before);
        let is_more = match self.named {
            Some(most) => taken > most,
            None => {
                let most = MOST.saturating_add(OF_EACH_BYTE.saturating_mul(self.read));
                let files = || OF_EACH_BYTE_OF_FILES.saturating_mul(names.bytes_of_files());
                taken > most && taken > most.saturating_add(files())
            }
        };
        let (megabytes, read) = (taken / 1_000_000, self.read);
        is_more.then(|| {
            format!(
                "after {read} bytes it takes {megabytes} MB of memory, more than such a file should: what was read until then is \
                 reported; --max-memory {} reads more",
                megabytes * 4
            )
        })
    }
}

/// Returns the bytes of memory that this process has and that no file is in, where the system says (proc_pid_status(5)).
fn taken() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn what_takes_more_than_it_may_is_noticed() {
        let names = Symbolizer::new();
        let mut memory = Memory::of_recording(Some(8));
        assert_eq!(memory.excess(STEP, &names), None);
        let kept = vec![1_u8; 32 << 20];
        assert_eq!(memory.excess(STEP - 1, &names), None);
        let excess = memory.excess(1, &names).expect("more than 8 MB");
        assert!(excess.contains("--max-memory"), "{excess}");
        let mut unnamed = Memory::of_recording(None);
        assert_eq!(unnamed.excess(STEP, &names), None);
        drop(kept);
    }
}
