//! From the driver's log to the records of a file: what is where in processes, their names, and samples.

use std::collections::{HashMap, HashSet};
use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use nix::time::{ClockId, clock_gettime};
use quipu_hwpmc::{
    KernelFile, LogRecord, MappedFile, Program, Sample, command_name, kernel_files, kernel_symbol,
    mapped_files,
};
use quipu_perf_data::synthesized::{self, Fields, Mapping};
use quipu_perf_data::{Context, Misc, RecordLayout, SampleId, ThreadId};
use quipu_symbols::{FileIdentity, ModuleCode, identity_of_file};

use super::loaded::{loaded_at, loaded_files};

/// `PROT_READ` and `PROT_EXEC`, and `MAP_PRIVATE`, of mmap(2).
const READ_AND_EXECUTE: u32 = 5;
const PRIVATE: u32 = 2;
/// The names of programs are cut at so many bytes (`MAXCOMLEN`).
const LONGEST_NAME: usize = 19;
/// The directory of the kernel and its modules (kld(4)).
const KERNELS: &str = "/boot/kernel";
/// The process of the kernel in records of what is mapped.
const OF_KERNEL: i32 = -1;

/// Processes, kernels and threads that are known, and the records of the file that were made of them.
pub(super) struct Records {
    layout: RecordLayout,
    trailer: usize,
    /// The command until it executes its program: what it does before is not recorded.
    awaited: Option<i32>,
    /// The names of processes that were met.
    names: HashMap<i32, Vec<u8>>,
    /// Threads that have a name in the file, by their processes.
    named: HashMap<i32, HashSet<i32>>,
    ended: HashSet<i32>,
    files: HashMap<Vec<u8>, FileIdentity>,
    /// Why it is not known where the kernel and its modules are.
    no_kernel: Option<&'static str>,
    /// The records that are to be written.
    pub(super) out: Vec<u8>,
    /// The number of samples of each event.
    pub(super) samples: Vec<u64>,
    /// The first and the last time of a sample.
    pub(super) times: Option<(u64, u64)>,
}

impl Records {
    /// Returns those of so many events, which begin with what the kernel has where.
    pub(super) fn new(layout: RecordLayout, events: usize, awaited: Option<i32>) -> Self {
        let mut records = Self {
            layout,
            trailer: layout.trailer_len(),
            awaited,
            names: HashMap::new(),
            named: HashMap::new(),
            ended: HashSet::new(),
            files: HashMap::new(),
            no_kernel: None,
            out: Vec::new(),
            samples: vec![0; events],
            times: None,
        };
        let files = kernel_files().unwrap_or_else(|errno| {
            records.no_kernel = Some(errno.desc());
            Vec::new()
        });
        if let Some((kernel, modules)) = files.split_first() {
            let path = in_directory(&kernel.path);
            // A kernel that was rebuilt since has other addresses in its file.
            let name = match is_older_than_the_kernel(&path) {
                true => path.as_os_str().as_bytes(),
                false => b"[kernel]",
            };
            records.kernel_file(kernel, name);
            modules.iter().for_each(|module| records.module(module));
        }
        records
    }

    /// Returns what is to be said if it is not known where the kernel and its modules are.
    pub(super) fn note_on_kernel(&self) -> Option<String> {
        let why = self.no_kernel?;
        Some(format!(
            "the kernel and its modules have no names: kldstat: {why}"
        ))
    }

    /// Takes a record of the log; they come in the order of their times.
    pub(super) fn take(&mut self, time: u64, record: &LogRecord<'_>) {
        match *record {
            LogRecord::Sample(sample) => self.sample(&sample),
            LogRecord::Fork { parent, child } => self.fork(time, parent, child),
            LogRecord::Exec { pid, program } => self.exec(time, pid, &program),
            LogRecord::Map { pid, start, .. } if pid == OF_KERNEL => self.loaded(start),
            LogRecord::Map { pid, start, path } => self.map(time, pid, start, path),
            LogRecord::Exit { pid } if self.ended.insert(pid) => {
                let exit = synthesized::exit(pid, self.trailer);
                self.write(exit, pid, time);
            }
            LogRecord::Process { pid, name } => {
                self.names.insert(pid, name.to_owned());
                self.comm(pid, pid, name, time);
            }
            LogRecord::Thread { pid, tid, name } => self.comm(pid, tid, name, time),
            _ => {}
        }
    }

    fn sample(&mut self, sample: &Sample<'_>) {
        let Sample { pid, tid, time, .. } = *sample;
        if self.awaited == Some(pid) {
            return;
        }
        if !self.names.contains_key(&pid) {
            self.introduce(pid);
        }
        if !self.named.get(&pid).is_some_and(|tids| tids.contains(&tid))
            && let Some(name) = self.names.get(&pid).cloned()
        {
            self.comm(pid, tid, &name, time);
        }
        let (misc, mark) = match sample.in_kernel {
            true => (Misc::KERNEL, Context::KERNEL_MARKER),
            false => (Misc::USER, Context::USER_MARKER),
        };
        let chain: Vec<u64> = [&[mark][..], sample.addresses].concat();
        let mut id = SampleId::default();
        id.thread = Some(ThreadId { pid, tid });
        id.time = Some(time);
        id.id = Some(counter_id(sample.event));
        id.cpu = Some(sample.cpu);
        let fields = Fields {
            misc,
            id,
            ip: sample.addresses.first().copied().unwrap_or(0),
            period: sample.period,
            chain: &chain,
        };
        self.out.extend(synthesized::sample(&self.layout, &fields));
        self.samples[sample.event] += 1;
        let (first, last) = self.times.unwrap_or((time, time));
        self.times = Some((first.min(time), last.max(time)));
    }

    /// Writes the name and the mappings of a process that was there before.
    fn introduce(&mut self, pid: i32) {
        // One that has ended has no name, and is shown by its number.
        let name = command_name(pid).unwrap_or_default();
        if !name.is_empty() {
            self.comm(pid, pid, &name, 0);
            self.names.insert(pid, name);
        }
        for file in mapped_files(pid).unwrap_or_default() {
            self.mapping(pid, 0, &file);
        }
    }

    fn fork(&mut self, time: u64, parent: i32, child: i32) {
        if !self.names.contains_key(&parent) && self.awaited != Some(parent) {
            self.introduce(parent);
        }
        if let Some(name) = self.names.get(&parent).cloned() {
            self.names.insert(child, name);
        }
        self.ended.remove(&child);
        self.named.remove(&child);
        let fork = synthesized::fork(child, parent, child, parent, self.trailer);
        self.write(fork, parent, time);
    }

    fn exec(&mut self, time: u64, pid: i32, program: &Program<'_>) {
        self.awaited = self.awaited.filter(|awaited| *awaited != pid);
        let name = program.path.rsplit(|byte| *byte == b'/').next();
        let name = name.unwrap_or_default();
        let name = name.get(..LONGEST_NAME).unwrap_or(name).to_owned();
        let exec = synthesized::exec(pid, &name, self.trailer);
        self.write(exec, pid, time);
        // Threads are named when they are sampled: those of before have another name now.
        self.named.insert(pid, HashSet::from([pid]));
        self.names.insert(pid, name);
        let mapped = mapped_files(pid).unwrap_or_default();
        let path = program.path;
        if mapped.iter().any(|file| file.path == path) {
            for file in &mapped {
                self.mapping(pid, time, file);
            }
            return;
        }
        // It has ended, or goes on with another program.
        for file in loaded_files(program) {
            self.mapping(pid, time, &file);
        }
    }

    fn map(&mut self, time: u64, pid: i32, start: u64, path: &[u8]) {
        if self.awaited == Some(pid) {
            return;
        }
        if !self.names.contains_key(&pid) {
            self.introduce(pid);
        }
        let mapped = mapped_files(pid).unwrap_or_default().into_iter();
        let mut mapped = mapped.filter(|file| file.start == start && file.path == path);
        if let Some(file) = mapped.next().or_else(|| loaded_at(start, path)) {
            self.mapping(pid, time, &file);
        }
    }

    fn mapping(&mut self, pid: i32, time: u64, file: &MappedFile) {
        let path = &file.path;
        let identity = self.files.entry(path.clone());
        let identity: &FileIdentity = identity.or_insert_with(|| identity_of_file(&path_of(path)));
        let mut mapping = Mapping {
            start: file.start,
            len: file.end.saturating_sub(file.start),
            offset: file.offset,
            protection: READ_AND_EXECUTE,
            flags: PRIVATE,
            path,
            ..Mapping::default()
        };
        match identity {
            FileIdentity::BuildId(id) => mapping.build_id = Some(&**id),
            FileIdentity::Inode { device, inode, .. } => {
                (mapping.device, mapping.inode) = (*device, *inode);
            }
            _ => {}
        }
        let record = synthesized::mmap2(pid, pid, &mapping, self.trailer);
        self.write(record, pid, time);
    }

    /// Writes a module that was loaded meanwhile.
    fn loaded(&mut self, start: u64) {
        let files = kernel_files().unwrap_or_default();
        if let Some(module) = files.iter().skip(1).find(|file| file.start == start) {
            self.module(module);
        }
    }

    /// Writes where a module is, and the code in its file.
    fn module(&mut self, module: &KernelFile) {
        let path = in_directory(&module.path);
        let name = path.as_os_str().as_bytes();
        self.kernel_file(module, name);
        let code = ModuleCode::read(&path);
        let code = code.iter().filter(|code| !code.functions.is_empty());
        // One that is elsewhere tells that the file is another one than was loaded.
        let placed: Option<Vec<_>> = code
            .map(|code| Some((place_of(module, code)?, code)))
            .collect();
        for (start, code) in placed.into_iter().flatten() {
            let (len, offset) = (code.len, code.offset);
            let record = synthesized::kernel_module(start, len, offset, name, self.trailer);
            self.out.extend(record);
        }
    }

    /// Writes where the kernel or a module is, under the name of its file or one in brackets.
    fn kernel_file(&mut self, file: &KernelFile, name: &[u8]) {
        let record = synthesized::kernel_module(file.start, file.len, 0, name, self.trailer);
        self.out.extend(record);
    }

    fn comm(&mut self, pid: i32, tid: i32, name: &[u8], time: u64) {
        self.named.entry(pid).or_default().insert(tid);
        let comm = synthesized::comm(pid, tid, name, self.trailer);
        self.write(comm, pid, time);
    }

    /// Writes a record with its time.
    fn write(&mut self, mut record: Vec<u8>, pid: i32, time: u64) {
        let mut id = SampleId::default();
        id.thread = Some(ThreadId { pid, tid: pid });
        id.time = Some(time);
        id.id = Some(counter_id(0));
        synthesized::stamp(&mut record, &self.layout, &id);
        self.out.extend(record);
    }
}

/// Returns the id of the counters of an event.
pub(super) fn counter_id(event: usize) -> u64 {
    event as u64 + 1
}

/// Returns the path of the kernel's file or a module's, which a loader may have named without the directory.
fn in_directory(path: &[u8]) -> PathBuf {
    Path::new(KERNELS).join(path_of(path))
}

/// Returns where the kernel has put code of a module; `None` if one of its functions is not where the file has it, as it is another
/// file than the one that was loaded.
fn place_of(module: &KernelFile, code: &ModuleCode) -> Option<u64> {
    /// The kernel goes through all symbols for each that it is asked for.
    const ASKED: usize = 64;
    let step = code.functions.len().div_ceil(ASKED).max(1);
    let asked = code.functions.iter().step_by(step);
    let mut places = asked.map(|(name, at)| {
        let name = CString::new(name.as_str()).ok()?;
        let address = kernel_symbol(module.id, &name).ok()?;
        Some(address.wrapping_sub(*at))
    });
    let first = places.next()??;
    let end = first.checked_add(code.len)?;
    let is_inside = module.start <= first && end <= module.start.saturating_add(module.len);
    (is_inside && places.all(|place| place == Some(first))).then_some(first)
}

/// Returns true unless a file was changed since the system was booted, and so may be of another kernel, or is not there.
fn is_older_than_the_kernel(path: &Path) -> bool {
    let changed = fs::metadata(path).and_then(|found| found.modified());
    let up = clock_gettime(ClockId::CLOCK_MONOTONIC).map(Duration::from);
    let booted = up.ok().and_then(|up| SystemTime::now().checked_sub(up));
    matches!((changed, booted), (Ok(changed), Some(booted)) if changed < booted)
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    OsStr::from_bytes(bytes).into()
}
