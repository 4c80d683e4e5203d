//! Processes that run: what they have mapped (proc_pid_maps(5)), and where their files are.

use std::fs;
use std::path::{Path, PathBuf};

use crate::address_space::AddressSpace;
use crate::locate;
use crate::mapped_file::FileIdentity;
use crate::maps_line::MapsLine;

/// End of the path of a file that has none any more.
const DELETED: &[u8] = b" (deleted)";

/// The mappings of a process that runs.
#[derive(Debug)]
pub struct ProcessMaps {
    /// A thread that has the memory of the process: the first one may have ended.
    task: i32,
    text: Vec<u8>,
}

impl ProcessMaps {
    /// Reads them; `None` where there is no such process, it has no memory, or it may not be looked at.
    pub fn read(pid: i32) -> Option<Self> {
        let of = |task| {
            let text = fs::read(format!("/proc/{pid}/task/{task}/maps")).ok()?;
            (!text.is_empty()).then_some(Self { task, text })
        };
        of(pid).or_else(|| {
            let tasks = fs::read_dir(format!("/proc/{pid}/task")).ok()?.flatten();
            let mut tasks = tasks.filter_map(|task| task.file_name().to_str()?.parse().ok());
            tasks.find_map(of)
        })
    }

    /// Reads those of a recorded process that still runs: of the files that were mapped the most are where they were, while
    /// another process of the same number has its own elsewhere.
    pub(crate) fn of_recorded(pid: i32, space: &AddressSpace) -> Option<Self> {
        let files = || space.iter().filter(|mapped| !mapped.file.is_anonymous());
        files().next()?;
        let maps = Self::read(pid)?;
        let lines = maps.text.split(|byte| *byte == b'\n');
        let lines: Vec<_> = lines.filter_map(MapsLine::parse).collect();
        let (mut same, mut all) = (0, 0);
        for mapped in files() {
            let at = lines.partition_point(|line| line.end <= mapped.start);
            let line = lines.get(at).filter(|line| line.start <= mapped.start);
            same += usize::from(line.is_some_and(|line| {
                // One that has changed its root has paths in that.
                let path = line.path.strip_suffix(DELETED).unwrap_or(line.path);
                let own = mapped.file.path.strip_suffix(DELETED);
                let offset = line.offset.wrapping_add(mapped.start - line.start);
                offset == mapped.offset && path.ends_with(own.unwrap_or(&mapped.file.path))
            }));
            all += 1;
        }
        (2 * same > all).then_some(maps)
    }

    /// Returns all mappings, by their addresses. Memory in the place of a part of a file that is mapped around it, into which a
    /// program has copied its code, comes twice: first as that part of the file, which it was.
    pub fn lines(&self) -> impl Iterator<Item = MapsLine<'_>> {
        let lines = self.text.split(|byte| *byte == b'\n');
        let lines: Vec<_> = lines.filter_map(MapsLine::parse).collect();
        let before = |at: usize| copied(&lines, at);
        let both: Vec<_> = (0..lines.len())
            .flat_map(|at| before(at).into_iter().chain([lines[at]]))
            .collect();
        both.into_iter()
    }

    /// Returns the path of a file of the process by its path in the mount namespace of that.
    pub(crate) fn in_root(&self, path: &[u8]) -> PathBuf {
        let path = path.strip_suffix(DELETED).unwrap_or(path);
        under(Path::new(&format!("/proc/{}/root", self.task)), path)
    }

    /// Returns the mapping that an address is in.
    pub(crate) fn line_at(&self, address: u64) -> Option<MapsLine<'_>> {
        let mut lines = self.text.split(|byte| *byte == b'\n');
        lines.find_map(|line| {
            let line = MapsLine::parse(line)?;
            (line.start..line.end).contains(&address).then_some(line)
        })
    }

    /// Returns the path of the file of a mapping, also if that has no path any more. Opening it takes CAP_CHECKPOINT_RESTORE or
    /// CAP_SYS_ADMIN.
    pub(crate) fn mapped_at(&self, line: &MapsLine<'_>) -> PathBuf {
        let range = format!("{:x}-{:x}", line.start, line.end);
        format!("/proc/{}/map_files/{range}", self.task).into()
    }

    /// Returns the build ID of the file of a mapping; `None` if it has none, or may not be read.
    pub fn build_id_of(&self, line: &MapsLine<'_>) -> Option<Vec<u8>> {
        let identity = FileIdentity::Inode {
            device: line.device,
            inode: line.inode,
            generation: 0,
        };
        let of_mapped = crate::elf::build_id_of(&self.mapped_at(line));
        let paths = || [self.in_root(line.path), as_path(line.path)];
        of_mapped.or_else(|| locate::build_id_in(&identity, paths()))
    }

    /// Returns the effective user of the process, and its number in the innermost PID namespace that it is in
    /// (proc_pid_status(5)).
    pub(crate) fn user_and_own_pid(&self) -> (Option<u32>, Option<i32>) {
        let status = fs::read_to_string(format!("/proc/{}/status", self.task)).unwrap_or_default();
        let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        let user = value("Uid:").and_then(|uids| uids.split_whitespace().nth(1)?.parse().ok());
        let pid = value("NStgid:").and_then(|pids| pids.split_whitespace().last()?.parse().ok());
        (user, pid)
    }
}

/// Returns the part of a file that lay where there is anonymous memory with code now: its neighbours are the parts of the same
/// file before and behind it.
fn copied<'a>(lines: &[MapsLine<'a>], at: usize) -> Option<MapsLine<'a>> {
    let line = lines.get(at)?;
    let is_memory = |line: &MapsLine<'_>| line.inode == 0 && line.path == b"//anon";
    if !line.is_executable() || !is_memory(line) {
        return None;
    }
    let before = lines[..at].iter().rev().find(|line| !is_memory(line))?;
    let behind = lines[at..].iter().find(|line| !is_memory(line))?;
    let is_one_file =
        before.inode != 0 && (before.device, before.inode) == (behind.device, behind.inode);
    let distance = behind.start - before.start;
    let fits = behind.offset.checked_sub(before.offset) == Some(distance);
    (is_one_file && fits).then(|| MapsLine {
        offset: before.offset + (line.start - before.start),
        device: before.device,
        inode: before.inode,
        path: before.path,
        ..*line
    })
}

/// Returns the path of a file under a directory that is the root of its path.
pub(crate) fn under(root: &Path, path: &[u8]) -> PathBuf {
    root.join(as_path(path.strip_prefix(b"/").unwrap_or(path)))
}

#[cfg(unix)]
pub(crate) fn as_path(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    std::ffi::OsStr::from_bytes(path).into()
}

#[cfg(not(unix))]
pub(crate) fn as_path(path: &[u8]) -> PathBuf {
    std::str::from_utf8(path).unwrap_or_default().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn maps(text: &str) -> ProcessMaps {
        ProcessMaps {
            task: 7,
            text: text.into(),
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn this_process_has_its_user_and_number() {
        use std::os::unix::fs::MetadataExt as _;

        let pid = std::process::id().cast_signed();
        let user = Path::new("/proc/self").metadata().expect("it runs").uid();
        let own = ProcessMaps::read(pid).expect("it runs");
        assert_eq!(own.user_and_own_pid(), (Some(user), Some(pid)));
        assert_eq!(
            maps("").in_root(b"/tmp/a (deleted)"),
            Path::new("/proc/7/root/tmp/a")
        );
    }

    #[test]
    fn code_that_was_copied_into_memory_was_a_part_of_the_file_around_it() {
        let own = maps(
            "1000-2000 r--p 00000000 fe:01 12 /a\n\
             2000-5000 r-xp 00000000 00:00 0 \n\
             5000-6000 r--p 00004000 fe:01 12 /a\n\
             7000-8000 r-xp 00000000 00:00 0 \n",
        );
        let lines: Vec<_> = own.lines().map(|l| (l.start, l.offset, l.path)).collect();
        let (a, anon) = (&b"/a"[..], &b"//anon"[..]);
        assert_eq!(
            lines,
            [
                (0x1000, 0, a),
                (0x2000, 0x1000, a),
                (0x2000, 0, anon),
                (0x5000, 0x4000, a),
                (0x7000, 0, anon)
            ]
        );
        // A hole between two files, and one that is of another length in the file.
        for behind in [
            "5000-6000 r--p 00004000 fe:01 13 /b",
            "5000-6000 r--p 00003000 fe:01 12 /a",
        ] {
            let text = format!(
                "1000-2000 r--p 00000000 fe:01 12 /a\n2000-5000 r-xp 00000000 00:00 0 \n{behind}\n"
            );
            assert_eq!(maps(&text).lines().count(), 3, "{text}");
        }
    }

    #[test]
    fn files_of_a_process_are_found_in_its_own_root() {
        let own = maps("1000-2000 r-xp 00000000 fe:01 12 /a\n");
        assert_eq!(
            own.in_root(b"/a (deleted)"),
            PathBuf::from("/proc/7/root/a")
        );
        let line = own.line_at(0x1fff).expect("mapped");
        let mapped = PathBuf::from("/proc/7/map_files/1000-2000");
        assert_eq!(own.mapped_at(&line), mapped);
        assert_eq!(own.line_at(0x2000), None);
    }
}
