//! Reading the small text files of sysfs, procfs and tracefs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use quipu_hal::{Error, ErrorKind};

use crate::sorted::sorted;

/// No file read here is near this long; `/proc/mounts` of a busy container host comes closest.
const LIMIT: usize = 1 << 20;

/// The kernel gives at most a page in one read(2) of most of these files.
const PAGE: usize = 4096;

/// Why a file was not read: as an [`io::Error`], but there is nothing to drop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unread {
    /// The kernel refused, with this errno.
    Errno(i32),
    /// A fault of the file or of its name.
    Malformed(&'static str),
}

impl Unread {
    /// Returns true if a file or a directory above it does not exist.
    pub(crate) fn is_missing(self) -> bool {
        matches!(self, Self::Errno(libc::ENOENT | libc::ENOTDIR))
    }

    /// Returns true if the rights of this process do not suffice.
    pub(crate) fn is_denied(self) -> bool {
        matches!(self, Self::Errno(libc::EACCES | libc::EPERM))
    }

    /// Returns the errno, if the kernel refused.
    pub(crate) fn errno(self) -> Option<i32> {
        match self {
            Self::Errno(errno) => Some(errno),
            Self::Malformed(_) => None,
        }
    }
}

impl From<io::Error> for Unread {
    #[cold]
    #[inline(never)]
    fn from(e: io::Error) -> Self {
        match e.raw_os_error() {
            Some(errno) => Self::Errno(errno),
            // All that std refuses itself.
            None => Self::Malformed("file name contained an unexpected NUL byte"),
        }
    }
}

/// A whole file as text, without the newline at its end.
pub(crate) fn read(path: &Path) -> Result<String, Unread> {
    let bytes = start_of(path, LIMIT + 1)?;
    if bytes.len() > LIMIT {
        return Err(Unread::Malformed("the file is longer than 1 MiB"));
    }
    let mut text =
        String::from_utf8(bytes).map_err(|_| Unread::Malformed("the file is not text"))?;
    text.truncate(text.trim_ascii_end().len());
    Ok(text)
}

/// The first `limit` bytes of a file. Less code than `read_to_end` of each kind of reader.
#[inline(never)]
fn start_of(path: &Path, limit: usize) -> Result<Vec<u8>, Unread> {
    let mut file = File::open(path)?;
    let mut bytes = vec![0; PAGE];
    let mut length = 0;
    while length < limit {
        if length == bytes.len() {
            bytes.resize(2 * length, 0);
        }
        let end = limit.min(bytes.len());
        match file.read(&mut bytes[length..end]) {
            Ok(0) => break,
            Ok(more) => length += more,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e.into()),
        }
    }
    bytes.truncate(length);
    Ok(bytes)
}

/// The first `limit` bytes of a file, with what is not text replaced.
pub(crate) fn read_start(path: &Path, limit: usize) -> Result<String, Unread> {
    let bytes = start_of(path, limit)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As [`read`], with a file that does not exist as `None`.
pub(crate) fn read_if_there(path: &Path) -> Result<Option<String>, Unread> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(unread) if unread.is_missing() => Ok(None),
        Err(unread) => Err(unread),
    }
}

/// Returns true if a file exists.
pub(crate) fn is_there(path: &Path) -> Result<bool, Unread> {
    match path.metadata() {
        Ok(_) => Ok(true),
        Err(e) => match Unread::from(e) {
            unread if unread.is_missing() => Ok(false),
            unread => Err(unread),
        },
    }
}

/// The names in a directory, sorted. Names that are not text are left out; the kernel makes none.
pub(crate) fn names(dir: &Path) -> Result<Vec<String>, Unread> {
    let mut names = Vec::new();
    each_name(dir, &mut |name| names.push(name.to_owned()))?;
    Ok(sorted(names))
}

/// Calls `found` with each name in a directory that is text.
pub(crate) fn each_name(dir: &Path, found: &mut dyn FnMut(&str)) -> Result<(), Unread> {
    for entry in dir.read_dir()? {
        if let Some(name) = entry?.file_name().to_str() {
            found(name);
        }
    }
    Ok(())
}

/// Returns the number that digits of the kernel mean. One piece of code for numbers of all types.
#[inline(never)]
pub(crate) fn number(digits: &str, radix: u32) -> Option<u64> {
    u64::from_str_radix(digits, radix).ok()
}

/// Returns true if a name taken from input is one path component, so that it cannot lead elsewhere.
pub(crate) fn is_component(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// The error for a file that cannot be read.
#[cold]
pub(crate) fn error(attempted: impl Into<String>, path: &Path, unread: Unread) -> Error {
    unreadable(attempted.into(), path, unread)
}

#[cold]
#[inline(never)]
fn unreadable(attempted: String, path: &Path, unread: Unread) -> Error {
    let path = path.display();
    match unread {
        Unread::Errno(errno) => {
            let kind = match errno {
                libc::EACCES | libc::EPERM => ErrorKind::NoPermission,
                _ => ErrorKind::Os,
            };
            let reason = match kind {
                ErrorKind::NoPermission => format!("this user may not read {path}"),
                _ => format!("reading {path}"),
            };
            Error::new(kind, attempted)
                .with_errno(errno)
                .with_reason(reason)
        }
        Unread::Malformed(what) => {
            Error::new(ErrorKind::Os, attempted).with_reason(format!("reading {path}: {what}"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_one_path_component_is_one() {
        for bad in ["", ".", "..", "a/b", "/", "a\0b"] {
            assert!(!is_component(bad), "{bad:?}");
        }
        for good in ["cpu", "uncore_imc_0", "..a", "cycles.unit"] {
            assert!(is_component(good), "{good:?}");
        }
    }

    #[test]
    fn files_too_long_or_not_text_are_errors() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("f");
        std::fs::write(&path, vec![b'1'; (1 << 20) + 1]).unwrap();
        let too_long = read(&path).unwrap_err();
        assert_eq!(too_long, Unread::Malformed("the file is longer than 1 MiB"));
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        let e = error("do it", &path, read(&path).unwrap_err());
        assert_eq!((e.kind(), e.errno()), (ErrorKind::Os, None));
        assert!(e.to_string().ends_with("the file is not text"), "{e}");
        std::fs::write(&path, "12 \n").unwrap();
        assert_eq!(read(&path).unwrap(), "12");
        assert_eq!(read_start(&path, 1).unwrap(), "1");
        assert!(read_if_there(&path.join("x")).unwrap().is_none());
    }
}
