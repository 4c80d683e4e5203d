//! Control groups: where their hierarchy is mounted.

use std::path::{Path, PathBuf};

use quipu_hal::{Error, ErrorKind, Result};

use crate::machine::kernel_file;

const ATTEMPT: &str = "find the cgroup file system";

/// Returns the mount point of the hierarchy that counters can be attached to: that of version 1 with the `perf_event`
/// controller, else version 2, which always has it (cgroups(7)).
///
/// # Errors
/// [`NoSuchTarget`](ErrorKind::NoSuchTarget) if none is mounted, or the reason why the mounts cannot be read.
pub fn mount_point() -> Result<PathBuf> {
    let path = Path::new("/proc/self/mounts");
    let mounts = kernel_file::read(path).map_err(|e| kernel_file::error(ATTEMPT, path, &e))?;
    mounted(&mounts).ok_or_else(|| {
        Error::new(ErrorKind::NoSuchTarget, ATTEMPT).with_reason("no cgroup file system is mounted")
    })
}

fn mounted(mounts: &str) -> Option<PathBuf> {
    let mut unified = None;
    for line in mounts.lines() {
        let [Some(dir), Some(kind), Some(options)] =
            [1, 2, 3].map(|at| line.split_ascii_whitespace().nth(at))
        else {
            continue;
        };
        match kind {
            "cgroup" if options.split(',').any(|o| o == "perf_event") => {
                return Some(unescape(dir));
            }
            "cgroup2" if unified.is_none() => unified = Some(unescape(dir)),
            _ => {}
        }
    }
    unified
}

/// A path of `/proc/mounts`, in which white space and backslashes are written in octal (proc(5)).
fn unescape(path: &str) -> PathBuf {
    let mut out = String::new();
    let mut rest = path;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let code = rest.get(..3).and_then(|d| u64::from_str_radix(d, 8).ok());
        match code {
            Some(code @ 0..=0xff) => {
                out.push(char::from(code as u8));
                rest = &rest[3..];
            }
            _ => out.push('\\'),
        }
    }
    out.push_str(rest);
    out.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perf_event_hierarchy_goes_before_the_unified_one() {
        let unified = "cgroup2 /sys/fs/cgroup/unified cgroup2 rw,relatime 0 0";
        let cpu = "cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0";
        let perf = "cgroup /sys/fs/cgroup/perf\\040event cgroup rw,perf_event 0 0";
        let mount = |lines: &[&str]| mounted(&lines.join("\n"));
        assert_eq!(mount(&[cpu]), None);
        assert_eq!(
            mount(&["", "x", cpu, unified]),
            Some("/sys/fs/cgroup/unified".into())
        );
        assert_eq!(
            mount(&[unified, perf]),
            Some("/sys/fs/cgroup/perf event".into())
        );
    }

    #[test]
    fn escapes_that_are_none_stay_as_they_are() {
        for (text, path) in [
            ("/a\\134b", "/a\\b"),
            ("/a\\9", "/a\\9"),
            ("/a\\", "/a\\"),
            ("\\04ü", "\\04ü"),
        ] {
            assert_eq!(unescape(text), PathBuf::from(path), "{text}");
        }
    }
}
