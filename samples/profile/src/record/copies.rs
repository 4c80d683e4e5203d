//! Files of the processes that are recorded, which cannot be found once these have ended: programs in other mount namespaces, as
//! of containers, deleted files, and the files in which compilers list what they have made.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::statvfs::{FsFlags, fstatvfs};
use quipu_linux::sampling::Record;
use quipu_perf_data::record::Mapping;
use quipu_symbols::{
    Copies, FileIdentity, JitMap, Mapped, MappedFile, ProcessMaps, copy_excerpt, is_file_of,
    open_mapped, regular_file,
};

use crate::recording::identity_of;

/// The longest copy, in bytes, and the most of all. Of a longer file what its names are read from is copied.
const LONGEST: u64 = 64 << 20;
const MOST: u64 = 256 << 20;
/// The longest copy of a file that is at its path and may be deleted, and the most of all of these.
const LONGEST_DELETABLE: u64 = 8 << 20;
const MOST_DELETABLE: u64 = 32 << 20;
/// A copy counts as so many bytes at least: each takes a descriptor.
const LEAST: u64 = 128 << 10;
/// As many files are held open.
const MOST_HELD: usize = 256;
/// The first bytes of ELF files and of archives, in which libraries may lie.
const WITH_FUNCTIONS: [[u8; 4]; 2] = [*b"\x7fELF", *b"PK\x03\x04"];

/// Files that processes have, for the time when names are looked up.
///
/// A file that is held open keeps its file system from being unmounted. So only those are held to the end whose file systems this
/// process uses itself; of others copies are made in memory.
#[derive(Debug)]
pub(super) struct FilesOfProcesses {
    known: HashSet<FileIdentity>,
    /// Mounts that this process uses itself.
    own_mounts: HashSet<String>,
    held: Vec<Held>,
    /// Processes that run, and have what a compiler writes.
    compilers: HashMap<i32, Compiler>,
    /// The children of processes of which no map is known: records of two CPUs come in any order.
    forked: HashMap<i32, Vec<i32>>,
    copier: Copier,
    /// Kept since `paths` was called.
    files: Vec<(FileIdentity, File)>,
    maps: Vec<(i32, File)>,
}

/// A file at its path here, which may be deleted or replaced before names are looked up.
#[derive(Debug)]
struct Held {
    identity: FileIdentity,
    path: PathBuf,
    file: File,
}

/// Files to which the compiler of a process may still write.
#[derive(Debug, Default)]
struct Compiler {
    map: Option<JitMap>,
    dumps: Vec<(FileIdentity, File)>,
    /// True once the first thread of the process has ended.
    is_ending: bool,
}

impl FilesOfProcesses {
    pub(super) fn new() -> Self {
        let own = ["/", "."].map(|directory| mount_of(&File::open(directory).ok()?));
        Self {
            known: HashSet::new(),
            own_mounts: own.into_iter().flatten().collect(),
            held: Vec::new(),
            compilers: HashMap::new(),
            forked: HashMap::new(),
            copier: Copier::default(),
            files: Vec::new(),
            maps: Vec::new(),
        }
    }

    /// Takes note of a record, and keeps what may be gone later.
    pub(super) fn note(&mut self, record: &Record<'_>) {
        match record {
            Record::Mapping(mapping) => self.note_mapping(mapping),
            // What the child has made is in a file of its own, also in memory that its parent has mapped.
            Record::Fork(task) if task.thread.pid != task.parent.pid => {
                let (child, parent) = (task.thread.pid, task.parent.pid);
                let compiler = self.compilers.get(&parent);
                match compiler.is_some_and(|compiler| compiler.map.is_some()) {
                    true => self.look_for_map(child),
                    false => self.forked.entry(parent).or_default().push(child),
                }
            }
            Record::Comm(comm) if comm.is_exec => self.end(comm.thread.pid),
            Record::Exit(task) => {
                let pid = task.thread.pid;
                if task.thread.tid == pid {
                    self.forked.remove(&pid);
                }
                if let Some(compiler) = self.compilers.get_mut(&pid) {
                    compiler.is_ending |= task.thread.tid == pid;
                    // Its first thread may end before the others.
                    if compiler.is_ending && ProcessMaps::read(pid).is_none() {
                        self.end(pid);
                    }
                }
            }
            _ => {}
        }
    }

    /// Returns the paths of what is not found any more, which are theirs while this lives.
    pub(super) fn paths(&mut self) -> Copies {
        let pids: Vec<_> = self.compilers.keys().copied().collect();
        pids.into_iter().for_each(|pid| self.end(pid));
        for (of, copy) in self.copier.finish() {
            match of {
                CopyOf::File(identity) | CopyOf::Deletable(identity) => {
                    self.files.push((identity, copy));
                }
                CopyOf::Map(pid) => self.maps.push((pid, copy)),
            }
        }
        let gone = self.held.drain(..).filter(Held::is_gone);
        self.files
            .extend(gone.map(|held| (held.identity, held.file)));
        let mut copies = Copies::default();
        let files = self.files.iter();
        copies.files = files
            .map(|(id, file)| (id.clone(), path_of(file)))
            .collect();
        let maps = self.maps.iter();
        copies.maps = maps.map(|(pid, file)| (*pid, path_of(file))).collect();
        copies
    }

    fn note_mapping(&mut self, mapping: &Mapping<'_>) {
        let pid = mapping.thread.pid;
        if mapping.is_data || pid < 0 {
            return;
        }
        let identity = identity_of(mapping);
        let file = Mapped::new(0..1, 0, mapping.path).of(identity.clone()).file;
        if has_made_code(&file) && !self.compilers.contains_key(&pid) {
            self.look_for_map(pid);
        }
        let is_memory = file.is_anonymous() && !file.is_memfd();
        if is_memory
            || !file.path.starts_with(b"/")
            || identity == FileIdentity::Unknown
            || !self.known.insert(identity.clone())
        {
            return;
        }
        let path = Path::new(OsStr::from_bytes(mapping.path));
        if is_file_of(path, &identity) {
            self.hold(pid, path, identity);
            return;
        }
        // Without a copy the file is looked for at the end.
        let Some(opened) = open_mapped(pid, mapping.address, mapping.path, &identity) else {
            return;
        };
        if file.is_jitdump() {
            let compiler = self.compilers.entry(pid).or_default();
            compiler.dumps.push((identity, opened));
        } else if has_functions(&opened) {
            self.copier.copy(CopyOf::File(identity), opened);
        }
    }

    /// Holds a file open that a process has mapped, or copies it.
    fn hold(&mut self, pid: i32, path: &Path, identity: FileIdentity) {
        let Ok(Some(file)) = regular_file(path) else {
            return;
        };
        let is_own = mount_of(&file).is_some_and(|mount| self.own_mounts.contains(&mount));
        if is_own && self.held.len() < MOST_HELD {
            let path = path.to_owned();
            self.held.push(Held {
                identity,
                path,
                file,
            });
        } else if !is_own && is_deletable(&file) && ProcessMaps::read(pid).is_some() {
            self.copier.copy(CopyOf::Deletable(identity), file);
        }
    }

    fn look_for_map(&mut self, pid: i32) {
        let compiler = self.compilers.entry(pid).or_default();
        compiler.map = compiler.map.take().or_else(|| JitMap::of(pid));
        if compiler.map.is_some() {
            let children = self.forked.remove(&pid);
            let children = children.into_iter().flatten();
            children.for_each(|child| self.look_for_map(child));
        }
    }

    /// Copies what the compiler of a process has written, which writes no more.
    fn end(&mut self, pid: i32) {
        let Some(compiler) = self.compilers.remove(&pid) else {
            return;
        };
        if let Some(map) = compiler.map.and_then(|map| map.open()) {
            self.copier.copy(CopyOf::Map(pid), map);
        }
        for (identity, dump) in compiler.dumps {
            self.copier.copy(CopyOf::File(identity), dump);
        }
    }
}

impl Held {
    /// Returns true if it is not at its path any more, and is the file of its identity.
    fn is_gone(&self) -> bool {
        let place = |found: io::Result<fs::Metadata>| {
            let found = found.ok()?;
            Some((found.dev(), found.ino()))
        };
        let is_there = place(self.path.metadata()) == place(self.file.metadata());
        !is_there && is_file_of(&path_of(&self.file), &self.identity)
    }
}

/// Original of a copy.
#[derive(Debug)]
enum CopyOf {
    File(FileIdentity),
    /// One that is at its path.
    Deletable(FileIdentity),
    /// The map of a process.
    Map(i32),
}

/// A file, or the copy of one.
type Item = (CopyOf, File);

/// Copies files to memory in a thread of its own: rings fill meanwhile.
#[derive(Debug, Default)]
struct Copier {
    thread: Option<(Sender<Item>, JoinHandle<Vec<Item>>)>,
}

impl Copier {
    fn copy(&mut self, of: CopyOf, from: File) {
        if self.thread.is_none() {
            let (send, receive) = mpsc::channel();
            let started = thread::Builder::new().spawn(move || copies(&receive));
            self.thread = started.ok().map(|thread| (send, thread));
        }
        if let Some((send, _)) = &self.thread {
            // It ends when nothing more can be sent.
            let _ = send.send((of, from));
        }
    }

    /// Waits for the copies, and returns them.
    fn finish(&mut self) -> Vec<Item> {
        let Some((send, thread)) = self.thread.take() else {
            return Vec::new();
        };
        drop(send);
        thread.join().unwrap_or_default()
    }
}

/// Copies files as they come.
fn copies(files: &Receiver<Item>) -> Vec<Item> {
    let (mut copies, mut left, mut left_deletable) = (Vec::new(), MOST, MOST_DELETABLE);
    for (of, from) in files {
        let (longest, left) = match of {
            CopyOf::Deletable(_) => (LONGEST_DELETABLE, &mut left_deletable),
            _ => (LONGEST, &mut left),
        };
        if let Ok(Some((copy, len))) = copy(&of, &from, longest.min(*left)) {
            *left = left.saturating_sub(len.max(LEAST));
            copies.push((of, copy));
        }
    }
    copies
}

/// Copies a file, or what its names are read from; `None` if that is longer.
fn copy(of: &CopyOf, from: &File, longest: u64) -> io::Result<Option<(File, u64)>> {
    let len = from.metadata()?.len();
    let mut copy = File::from(memfd_create("quipu", MFdFlags::MFD_CLOEXEC)?);
    let len = match of {
        CopyOf::Deletable(_) => copy_excerpt(from, &copy, longest)?,
        CopyOf::File(_) if len > longest => copy_excerpt(from, &copy, longest)?,
        CopyOf::Map(_) if len > longest => None,
        _ => Some(io::copy(&mut from.take(len), &mut copy)?),
    };
    Ok(len.map(|len| (copy, len)))
}

fn path_of(file: &File) -> PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// Returns the number of the mount that a file is in (proc_pid_fdinfo(5)).
fn mount_of(file: &File) -> Option<String> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?;
    Some(mount.trim().to_owned())
}

/// Returns true for a file in a file system that is written to.
fn is_deletable(file: &File) -> bool {
    fstatvfs(file).is_ok_and(|found| !found.flags().contains(FsFlags::ST_RDONLY))
}

/// Returns true for a mapping in which a compiler may have made code.
fn has_made_code(file: &MappedFile) -> bool {
    file.is_anonymous() || file.path.ends_with(b" (deleted)")
}

/// Returns true for a file of the forms that functions are read from.
fn has_functions(file: &File) -> bool {
    let mut magic = [0; 4];
    file.read_exact_at(&mut magic, 0).is_ok() && WITH_FUNCTIONS.contains(&magic)
}
