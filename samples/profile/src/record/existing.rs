//! Records of the state before the recording began: the kernel, and the threads and mappings of
//! processes.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;

use quipu::Target;
use quipu_perf_data::synthesized::{self, Mapping};
use quipu_symbols::{KernelText, MapsLine, ProcessMaps};

/// As many generations of forks are looked for.
const MOST_GENERATIONS: usize = 32;

/// Returns the records of the targets, and of processes that they have started, of mapped data too if they are asked for.
/// `trailer` is how many bytes the records of this recording end with.
pub(super) fn records(
    targets: &[Target],
    started: impl Iterator<Item = i32>,
    with_data: bool,
    trailer: usize,
) -> Vec<u8> {
    let mut records = Existing {
        with_data,
        trailer,
        ids: HashMap::new(),
        forked: BTreeSet::new(),
        out: Vec::new(),
    };
    records.kernel();
    for pid in processes(targets, started) {
        records.process(pid);
    }
    records.out
}

/// Device and inode of a file.
type Inode = ((u32, u32), u64);

/// Records that are put together.
struct Existing {
    with_data: bool,
    trailer: usize,
    /// The build IDs of files.
    ids: HashMap<Inode, Option<Vec<u8>>>,
    /// The processes of which the parent is written.
    forked: BTreeSet<i32>,
    out: Vec<u8>,
}

impl Existing {
    /// Appends the records of the kernel, its modules and BPF programs, as far as this process may know where they are.
    fn kernel(&mut self) {
        let Some(text) = KernelText::of_this_machine() else {
            return;
        };
        let (reference, trailer) = (text.reference, self.trailer);
        let (start, name) = (reference.address, reference.name.as_bytes());
        let len = text.end.saturating_sub(start);
        self.out
            .extend(synthesized::kernel(start, len, name, start, trailer));
        for module in &text.modules {
            let name = format!("[{}]", module.name);
            let (start, len) = (module.start, module.len);
            self.out.extend(synthesized::kernel_module(
                start,
                len,
                0,
                name.as_bytes(),
                trailer,
            ));
        }
        for program in &text.programs {
            let (start, len) = (program.start, program.len as u32);
            let name = program.name.as_bytes();
            self.out
                .extend(synthesized::bpf_symbol(start, len, name, trailer));
        }
    }

    /// Appends the records of one process, unless it has ended.
    fn process(&mut self, pid: i32) {
        // What compilers have made in a process belongs to those that were forked from it, too.
        for (child, parent) in forks_to(pid).into_iter().rev() {
            if self.forked.insert(child) {
                let fork = synthesized::fork(child, parent, child, parent, self.trailer);
                self.out.extend(fork);
            }
        }
        let directory = format!("/proc/{pid}");
        for tid in numbers_in(Path::new(&directory).join("task").as_path()) {
            if let Ok(name) = fs::read(format!("{directory}/task/{tid}/comm")) {
                let name = name.trim_ascii_end();
                self.out
                    .extend(synthesized::comm(pid, tid, name, self.trailer));
            }
        }
        let Some(maps) = ProcessMaps::read(pid) else {
            return;
        };
        for line in maps.lines() {
            if !self.with_data && !line.is_executable() {
                continue;
            }
            let is_file = line.inode != 0 && line.is_executable();
            let id = match is_file {
                true => self.build_id(&maps, &line),
                false => None,
            };
            let mut mapping = mapping(&line);
            mapping.build_id = id.as_deref();
            self.out
                .extend(synthesized::mmap2(pid, pid, &mapping, self.trailer));
        }
    }

    /// Returns the build ID of the file of a mapping, read once for each file.
    fn build_id(&mut self, maps: &ProcessMaps, line: &MapsLine<'_>) -> Option<Vec<u8>> {
        let id = self.ids.entry((line.device, line.inode));
        id.or_insert_with(|| maps.build_id_of(line)).clone()
    }
}

/// Returns the processes that a process was forked from without a program that was executed since, each after its child. They have
/// one stack, which is elsewhere after each execve(2).
fn forks_to(pid: i32) -> Vec<(i32, i32)> {
    let mut forks: Vec<(i32, i32)> = Vec::new();
    let mut child = (pid, parent_and_stack(pid));
    while let (pid, Some((parent, stack @ 1..))) = child
        && forks.len() < MOST_GENERATIONS
    {
        let above = parent_and_stack(parent);
        if above.is_none_or(|(_, of_parent)| of_parent != stack) {
            break;
        }
        forks.push((pid, parent));
        child = (parent, above);
    }
    forks
}

/// Returns the parent of a process, and where its stack starts: 0 if it may not be looked at (proc_pid_stat(5)).
fn parent_and_stack(pid: i32) -> Option<(i32, u64)> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // Behind the number and the name, which may contain anything.
    let (_, fields) = stat.rsplit_once(')')?;
    let fields: Vec<_> = fields.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3);
    Some((field(4)?.parse().ok()?, field(28)?.parse().ok()?))
}

fn processes(targets: &[Target], started: impl Iterator<Item = i32>) -> Vec<i32> {
    let mut pids: Vec<i32> = started.collect();
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

/// Returns the process of a thread (proc_pid_status(5), `Tgid`).
fn process_of(tid: i32) -> Option<i32> {
    let status = fs::read_to_string(format!("/proc/{tid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Tgid:"))?;
    line.trim().parse().ok()
}

/// Returns the names in a directory that are numbers.
fn numbers_in(directory: &Path) -> Vec<i32> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Returns a mapping as records tell it.
fn mapping<'a>(line: &MapsLine<'a>) -> Mapping<'a> {
    const PROT: [(char, u32); 3] = [('r', 1), ('w', 2), ('x', 4)];
    const MAP_SHARED: u32 = 1;
    const MAP_PRIVATE: u32 = 2;
    let rights = PROT
        .iter()
        .filter(|(letter, _)| line.rights.contains(*letter));
    Mapping {
        start: line.start,
        len: line.end - line.start,
        offset: line.offset,
        device: line.device,
        inode: line.inode,
        build_id: None,
        protection: rights.map(|(_, bit)| bit).sum(),
        flags: if line.rights.contains('s') {
            MAP_SHARED
        } else {
            MAP_PRIVATE
        },
        path: line.path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_become_flags() {
        let line = MapsLine::parse(b"1000-3000 r-xs 00000010 fe:01 12 /a").expect("a line");
        let expected = Mapping {
            start: 0x1000,
            len: 0x2000,
            offset: 0x10,
            device: (0xfe, 1),
            inode: 12,
            build_id: None,
            protection: 5,
            flags: 1,
            path: b"/a",
        };
        assert_eq!(mapping(&line), expected);
    }

    #[test]
    fn this_process_tells_its_own_program() {
        let pid = i32::try_from(std::process::id()).expect("a pid");
        let records = records(&[Target::Process(pid)], std::iter::empty(), false, 0);
        let own = std::env::current_exe().expect("it runs");
        let own = own.to_string_lossy().into_owned().into_bytes();
        assert!(records.windows(own.len()).any(|window| window == own));
        assert_eq!(process_of(pid), Some(pid));
    }
}
