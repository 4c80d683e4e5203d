//! The log of the simulated driver: records in a buffer, which another thread writes into the pipe when it is flushed.

use std::fs::File;
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use nix::errno::Errno;
use quipu_hwpmc::Sampling;

use super::System;

/// Ticks of the log's clock in a second.
pub(crate) const FREQUENCY: u64 = 2_000_000_000;

#[derive(Debug, Default)]
pub(crate) struct Log {
    /// Takes the buffers that are to be written.
    queue: Option<Sender<Vec<u8>>>,
    /// True once one was closed; the driver opens no other before the process has no counters.
    was_closed: bool,
    buffer: Vec<u8>,
    /// The interrupts and records that were lost.
    pub(crate) lost: u32,
    /// True if all buffers wait to be written when the next mark is set.
    pub(crate) is_full: bool,
}

impl Log {
    pub(crate) fn open(&mut self, to: BorrowedFd<'_>) -> Result<(), Errno> {
        if self.queue.is_some() {
            return Err(Errno::EBUSY);
        }
        if self.was_closed {
            return Err(Errno::ENOMEM);
        }
        let mut pipe = File::from(to.try_clone_to_owned().map_err(|_| Errno::EBADF)?);
        let (queue, buffers) = channel::<Vec<u8>>();
        thread::spawn(move || {
            buffers
                .iter()
                .try_for_each(|buffer| pipe.write_all(&buffer))
        });
        self.queue = Some(queue);
        let [low, high] = words(FREQUENCY);
        self.put(3, 100, &[0x0903_0000, 0x80, low, high]);
        self.flush()
    }

    pub(crate) fn close(&mut self) -> Result<(), Errno> {
        self.was_closed = true;
        self.buffer.clear();
        self.queue.take().map(drop).ok_or(Errno::EINVAL)
    }

    /// The last counter of the process was given back.
    pub(crate) fn forget(&mut self) {
        self.was_closed &= self.queue.is_some();
    }

    pub(crate) fn flush(&mut self) -> Result<(), Errno> {
        let queue = self.queue.as_ref().ok_or(Errno::EINVAL)?;
        let buffer = std::mem::take(&mut self.buffer);
        queue.send(buffer).map_err(|_| Errno::EPIPE)
    }

    pub(crate) fn mark(&mut self, mark: u32) -> Result<(), Errno> {
        if std::mem::take(&mut self.is_full) {
            return Err(Errno::ENOMEM);
        }
        self.put(13, 0, &[mark, 0]);
        Ok(())
    }

    /// A counter has interrupted a thread.
    pub(crate) fn sample(
        &mut self,
        counter: u32,
        pid: i32,
        ticks: u64,
        flags: u32,
        chain: &[usize],
    ) {
        let mut body = vec![pid.cast_unsigned(), pid.cast_unsigned() + 1, counter, flags];
        for address in chain {
            let bytes = address.to_ne_bytes();
            body.extend(
                bytes
                    .chunks_exact(4)
                    .map(|word| u32::from_ne_bytes(word.try_into().expect("four"))),
            );
        }
        self.put(16, ticks, &body);
    }

    pub(crate) fn fork(&mut self, parent: i32, child: i32) {
        self.put(11, 0, &[parent.cast_unsigned(), child.cast_unsigned()]);
    }

    /// A process has executed a program.
    pub(crate) fn exec(&mut self, pid: i32, ticks: u64, entry: usize, path: &str) {
        let bytes = entry.to_ne_bytes();
        let mut bytes = [&bytes[..], path.as_bytes()].concat();
        bytes.resize((bytes.len() + 1).next_multiple_of(4), 0);
        let mut body = vec![pid.cast_unsigned(), 0];
        let words = bytes.chunks_exact(4);
        body.extend(words.map(|word| u32::from_ne_bytes(word.try_into().expect("four"))));
        self.put(9, ticks, &body);
    }

    /// Something that is no record.
    pub(crate) fn garble(&mut self) {
        self.buffer.extend_from_slice(&[0; 32]);
    }

    fn put(&mut self, kind: u32, ticks: u64, body: &[u32]) {
        let len = 16 + 4 * body.len() as u32;
        let [low, high] = words(ticks);
        let head = [0xee << 24 | kind << 16 | len, 0, low, high];
        let all = head.iter().chain(body);
        self.buffer.extend(all.flat_map(|word| word.to_ne_bytes()));
    }
}

/// Returns the words of a number as they are in memory.
fn words(number: u64) -> [u32; 2] {
    let [a, b, c, d, e, f, g, h] = number.to_ne_bytes();
    [
        u32::from_ne_bytes([a, b, c, d]),
        u32::from_ne_bytes([e, f, g, h]),
    ]
}

impl System {
    /// Returns the counters that sample, and how.
    pub(crate) fn sampling(&self) -> Vec<(u32, Sampling)> {
        let counters = self.counters.iter();
        counters
            .filter_map(|(id, counter)| Some((*id, counter.request.sampling?)))
            .collect()
    }
}
