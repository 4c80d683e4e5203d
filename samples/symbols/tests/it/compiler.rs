//! Files of compilers that make code as a program runs.

use std::path::PathBuf;

use quipu_symbols::{Mapped, Processes};

use crate::mapped::START;

/// Number of a process that no other test has, nor the kernel gives.
pub(crate) fn own_number(of_test: u32) -> i32 {
    let number = (1 << 30) + (std::process::id() << 4) + of_test;
    i32::try_from(number).expect("numbers of processes have 22 bits at most")
}

/// Memory in which a compiler has put code.
pub(crate) const MEMORY: u64 = 0x5000_0000;

/// A file that lists the functions of a process in /tmp, until it is dropped.
pub(crate) struct Map {
    pub(crate) path: PathBuf,
}

impl Map {
    pub(crate) fn of(pid: i32) -> Self {
        let path = format!("/tmp/perf-{pid}.map").into();
        Self { path }
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Maps memory of no file, and a file in which a compiler lists code, if there is one.
pub(crate) fn map(processes: &mut Processes, pid: i32, dump: Option<&std::path::Path>) {
    processes.map(pid, Mapped::new(MEMORY..MEMORY + 0x1000, 0, &b"//anon"[..]));
    if let Some(dump) = dump {
        let path = dump.as_os_str().as_encoded_bytes();
        processes.map(pid, Mapped::new(START..START + 0x1000, 0, path));
    }
}

/// Returns a file in which a compiler lists its code: the start, the name and the `.eh_frame` of each function of 32 bytes.
pub(crate) fn dump(functions: &[(u64, &str, &[u8])]) -> Vec<u8> {
    const X86_64: u32 = 62;
    let halves = |numbers: &[u32]| -> Vec<u8> {
        let bytes = numbers.iter().flat_map(|number| number.to_ne_bytes());
        bytes.collect()
    };
    let words = |numbers: &[u64]| -> Vec<u8> {
        let bytes = numbers.iter().flat_map(|number| number.to_ne_bytes());
        bytes.collect()
    };
    let record = |kind, body: &[u8]| {
        let head = halves(&[kind, 16 + body.len() as u32, 0, 0]);
        [&head[..], body].concat()
    };
    let mut file = halves(&[0x4A69_5444, 1, 40, X86_64, 0, 7, 0, 0, 0, 0]);
    for (start, name, frames) in functions {
        if !frames.is_empty() {
            let head = words(&[frames.len() as u64, 0, 0]);
            file.extend(record(4, &[&head[..], frames].concat()));
        }
        let head = words(&[7, *start, *start, 32, 1]);
        let body = [&head[..], name.as_bytes(), &[0], &[0x90; 32]].concat();
        file.extend(record(0, &body));
    }
    file
}
