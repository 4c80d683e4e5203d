//! What was there before the recording began: the kernel, and the threads and mappings of processes.

use std::fs;
use std::path::Path;

use quipu::Target;
use quipu_perf_data::synthesized::{self, Mapping};
use quipu_symbols::Reference;

/// The records that tell of it. `trailer` is how many bytes the records of this recording end with.
pub(super) fn records(targets: &[Target], trailer: usize) -> Vec<u8> {
    let mut out = kernel(trailer).unwrap_or_default();
    for pid in processes(targets) {
        process(pid, trailer, &mut out);
    }
    out
}

/// Where the kernel is, if this process may know.
fn kernel(trailer: usize) -> Option<Vec<u8>> {
    let Reference { name, address } = Reference::of_this_machine()?;
    let len = u64::MAX - address;
    Some(synthesized::kernel(
        address,
        len,
        name.as_bytes(),
        address,
        trailer,
    ))
}

fn processes(targets: &[Target]) -> Vec<i32> {
    let mut pids: Vec<i32> = Vec::new();
    for target in targets {
        match target {
            Target::Process(pid) => pids.push(*pid),
            Target::Thread(tid) => pids.extend(process_of(*tid)),
            _ => pids.extend(numbers_in(Path::new("/proc"))),
        }
    }
    pids.sort_unstable();
    pids.dedup();
    pids
}

/// The process of a thread (proc_pid_status(5), `Tgid`).
fn process_of(tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// The names in a directory that are numbers.
fn numbers_in(directory: &Path) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// One process; nothing where it has ended meanwhile.
fn process(pid: i32, trailer: usize, out: &mut Vec<u8>) {
    let directory = format!("/proc/{pid}");
    for tid in numbers_in(Path::new(&directory).join("task").as_path()) {
        if let Ok(name) = fs::read(format!("{directory}/task/{tid}/comm")) {
            out.extend(synthesized::comm(pid, tid, name.trim_ascii_end(), trailer));
        }
    }
    let maps = fs::read(format!("{directory}/maps")).unwrap_or_default();
    for mapping in maps.split(|byte| *byte == b'\n').filter_map(executable) {
        out.extend(synthesized::mmap2(pid, pid, &mapping, trailer));
    }
}

/// A line of `maps` (proc_pid_maps(5)), if it is of executable memory.
fn executable(line: &[u8]) -> Option<Mapping<'_>> {
    const PROT: [(u8, u32); 3] = [(b'r', 1), (b'w', 2), (b'x', 4)];
    const MAP_SHARED: u32 = 1;
    const MAP_PRIVATE: u32 = 2;
    let mut rest = line;
    let mut field = || {
        let start = rest.trim_ascii_start();
        let end = start.iter().position(|byte| *byte == b' ');
        let (field, after) = start.split_at(end.unwrap_or(start.len()));
        rest = after;
        std::str::from_utf8(field).ok()
    };
    let hex = |text: &str| u64::from_str_radix(text, 16).ok();
    let (start, end) = field()?.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let rights = field()?.as_bytes();
    let offset = hex(field()?)?;
    let (major, minor) = field()?.split_once(':')?;
    let device = (
        u32::from_str_radix(major, 16).ok()?,
        u32::from_str_radix(minor, 16).ok()?,
    );
    let inode = field()?.parse().ok()?;
    let path = match rest.trim_ascii_start() {
        b"" => b"//anon",
        path => path,
    };
    if !rights.contains(&b'x') {
        return None;
    }
    Some(Mapping {
        start,
        len: end.checked_sub(start)?,
        offset,
        device,
        inode,
        protection: PROT
            .iter()
            .filter(|(letter, _)| rights.contains(letter))
            .map(|(_, bit)| bit)
            .sum(),
        flags: if rights.contains(&b's') {
            MAP_SHARED
        } else {
            MAP_PRIVATE
        },
        path,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_lines_become_mappings() {
        let line = b"7f5400026000-7f540017c000 r-xp 00026000 fe:01 326279                     /usr/lib/a b.so";
        let mapping = executable(line).expect("it is executable");
        let expected = Mapping {
            start: 0x7f54_0002_6000,
            len: 0x15_6000,
            offset: 0x2_6000,
            device: (0xfe, 1),
            inode: 326_279,
            protection: 5,
            flags: 2,
            path: b"/usr/lib/a b.so",
        };
        assert_eq!(mapping, expected);
        let anonymous = executable(b"1000-2000 rwxs 00000000 00:00 0 ").expect("executable");
        assert_eq!((anonymous.path, anonymous.flags), (&b"//anon"[..], 1));
        for other in [
            &b"1000-2000 rw-p 0 00:00 0 "[..],
            b"",
            b"nonsense",
            b"2000-1000 r-xp 0 00:00 0 x",
        ] {
            assert_eq!(executable(other), None);
        }
    }

    #[test]
    fn this_process_tells_its_own_program() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let mut records = Vec::new();
        process(pid, 0, &mut records);
        let own = std::env::current_exe().expect("it runs");
        let own = own.to_string_lossy().into_owned().into_bytes();
        assert!(records.windows(own.len()).any(|window| window == own));
        assert_eq!(process_of(pid), Some(pid));
    }
}
