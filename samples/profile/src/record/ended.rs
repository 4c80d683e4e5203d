//! Programs whose exec(2) ended the counters of an ordinary user: they have no samples.
//!
//! The kernel names the thread, and ends its counters before it maps anything of the program (`begin_new_exec` in
//! `fs/exec.c`). So the thread seems to exit between its name and its first mapping.

use std::collections::{BTreeSet, HashMap};

use quipu_linux::sampling::Record;
use quipu_shell::tasks::COUNTERS_END;

/// The threads that execute programs, and those that seem to have exited before they mapped one.
///
/// Records of one thread come from the rings of several CPUs, in any order.
#[derive(Debug, Default)]
pub(super) struct EndedCounters {
    /// By thread: the time of its last exec(2), and the name that it got.
    executed: HashMap<i32, (u64, Vec<u8>)>,
    /// By thread: the time of its last mapping.
    mapped: HashMap<i32, u64>,
    ended: Vec<Ended>,
}

#[derive(Debug)]
struct Ended {
    thread: i32,
    /// The times of exec(2) and of the end.
    times: (u64, u64),
    name: Vec<u8>,
}

impl EndedCounters {
    /// Takes note of a record of this time.
    pub(super) fn note(&mut self, record: &Record<'_>, time: u64) {
        match record {
            Record::Comm(comm) if comm.is_exec => {
                let thread = comm.thread.tid;
                if self.mapped.get(&thread).is_none_or(|mapped| *mapped < time) {
                    self.executed.insert(thread, (time, comm.name.to_owned()));
                }
            }
            Record::Mapping(mapping) => {
                let thread = mapping.thread.tid;
                self.mapped.insert(thread, time);
                self.executed.remove(&thread);
                self.ended.retain(|ended| {
                    ended.thread != thread || !(ended.times.0..=ended.times.1).contains(&time)
                });
            }
            Record::Exit(task) => {
                let thread = task.thread.tid;
                self.mapped.remove(&thread);
                if let Some((executed, name)) = self.executed.remove(&thread)
                    && executed <= time
                {
                    let times = (executed, time);
                    self.ended.push(Ended {
                        thread,
                        times,
                        name,
                    });
                }
            }
            _ => {}
        }
    }

    /// Returns what is to be said of the programs that were not sampled, if there are any.
    pub(super) fn remark(&self) -> Option<String> {
        let names: BTreeSet<_> = self.ended.iter().map(|ended| &ended.name).collect();
        if names.is_empty() {
            return None;
        }
        let names: Vec<_> = names
            .into_iter()
            .map(|name| String::from_utf8_lossy(name))
            .collect();
        let names = names.join(", ");
        Some(format!(
            "not sampled: {names}: {COUNTERS_END}; as root, sample whole CPUs (-a)"
        ))
    }
}

#[cfg(test)]
mod tests {
    use quipu_linux::sampling::record::kind;
    use quipu_linux::sampling::{RawRecord, RecordLayout, SampleType};

    use super::*;

    /// Notes records of thread 7, each a kind and a time.
    fn ended(records: &[(u32, u64)]) -> Option<String> {
        const EXEC: u16 = 1 << 13;
        let layout = RecordLayout::new(SampleType::empty());
        let mut ended = EndedCounters::default();
        for (kind, time) in records {
            let (misc, body) = match *kind {
                kind::COMM => (EXEC, [&words(&[7, 7]), &b"ping\0\0\0\0"[..]].concat()),
                kind::EXIT => (0, [words(&[7, 3, 7, 3]), vec![0; 8]].concat()),
                _ => (
                    0,
                    [words(&[7, 7]), vec![0; 24], b"/bin/p\0\0".to_vec()].concat(),
                ),
            };
            let mut bytes = kind.to_ne_bytes().to_vec();
            bytes.extend(misc.to_ne_bytes());
            bytes.extend((body.len() as u16 + 8).to_ne_bytes());
            bytes.extend(body);
            let raw = RawRecord::at_start(&bytes).expect("whole");
            ended.note(&raw.decode(&layout).expect("good"), *time);
        }
        ended.remark()
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_ne_bytes()).collect()
    }

    #[test]
    fn a_thread_that_ends_before_it_maps_its_program_lost_its_counters() {
        use kind::{COMM, EXIT, MMAP};
        let ping = ended(&[(COMM, 10), (EXIT, 11)]).expect("it ended");
        assert!(
            ping.starts_with("not sampled: ping: the kernel ends"),
            "{ping}"
        );
        // In the end of another program of the same thread.
        assert!(ended(&[(COMM, 2), (MMAP, 3), (COMM, 10), (EXIT, 11)]).is_some());
        assert_eq!(ended(&[(COMM, 10), (MMAP, 11), (EXIT, 12)]), None);
        // Each from the ring of another CPU.
        assert_eq!(ended(&[(COMM, 10), (EXIT, 12), (MMAP, 11)]), None);
        assert_eq!(ended(&[(MMAP, 11), (COMM, 10), (EXIT, 12)]), None);
        assert_eq!(ended(&[(MMAP, 11), (EXIT, 12), (COMM, 10)]), None);
        assert_eq!(ended(&[(EXIT, 12), (MMAP, 11), (COMM, 10)]), None);
    }
}
