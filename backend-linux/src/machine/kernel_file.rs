//! Reading the small text files of sysfs, procfs and tracefs.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use nix::sys::resource::{Resource, getrlimit};
use quipu_hal::{Error, ErrorKind};

/// No file read here is near this long; `/proc/mounts` of a busy container host comes closest.
const LIMIT: usize = 1 << 20;

/// Returns true if a file or a directory above it does not exist.
pub(crate) fn is_missing(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::ENOENT | libc::ENOTDIR))
}

/// Returns true if a file is hidden from this process: it does not exist, or may not be read.
pub(crate) fn is_hidden(e: &io::Error) -> bool {
    is_missing(e) || matches!(e.raw_os_error(), Some(libc::EACCES | libc::EPERM))
}

/// A whole file as text, without the newline at its end.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let bytes = start_of(path, LIMIT + 1)?;
    let malformed = |what| io::Error::new(io::ErrorKind::InvalidData, what);
    if bytes.len() > LIMIT {
        return Err(malformed("the file is longer than 1 MiB"));
    }
    let mut text = String::from_utf8(bytes).map_err(|_| malformed("the file is not text"))?;
    text.truncate(text.trim_ascii_end().len());
    Ok(text)
}

/// The first `limit` bytes of a file.
fn start_of(path: &Path, limit: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(limit as u64)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The first `limit` bytes of a file, with what is not text replaced.
pub(crate) fn read_start(path: &Path, limit: usize) -> io::Result<String> {
    let bytes = start_of(path, limit)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// As [`read`], with a file that does not exist as `None`.
pub(crate) fn read_if_there(path: &Path) -> io::Result<Option<String>> {
    match read(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if is_missing(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Returns true if a file exists.
pub(crate) fn is_there(path: &Path) -> io::Result<bool> {
    match path.metadata() {
        Ok(_) => Ok(true),
        Err(e) if is_missing(&e) => Ok(false),
        Err(e) => Err(e),
    }
}

/// The names in a directory, sorted. Names that are not text are left out; the kernel makes none.
pub(crate) fn names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    each_name(dir, &mut |name| names.push(name.to_owned()))?;
    names.sort_unstable();
    Ok(names)
}

/// Calls `found` with each name in a directory that is text.
pub(crate) fn each_name(dir: &Path, found: &mut dyn FnMut(&str)) -> io::Result<()> {
    for entry in dir.read_dir()? {
        if let Some(name) = entry?.file_name().to_str() {
            found(name);
        }
    }
    Ok(())
}

/// Returns true if a name taken from input is one path component, so that it cannot lead elsewhere.
pub(crate) fn is_component(name: &str) -> bool {
    !matches!(name, "" | "." | "..") && !name.contains(['/', '\0'])
}

/// The error for a file that cannot be read.
pub(crate) fn error(attempted: impl Into<String>, path: &Path, e: &io::Error) -> Error {
    let path = path.display();
    let Some(errno) = e.raw_os_error() else {
        return Error::new(ErrorKind::Os, attempted).with_reason(format!("reading {path}: {e}"));
    };
    if errno == libc::EMFILE {
        return too_many_open_files(attempted);
    }
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

/// The error where this process can open no further file.
pub(crate) fn too_many_open_files(attempted: impl Into<String>) -> Error {
    // There is no descriptor left to read it from /proc.
    let hint = match getrlimit(Resource::RLIMIT_NOFILE) {
        Ok((limit, _)) => format!("the limit is {limit}; raise it with `ulimit -n`"),
        Err(_) => "raise the limit with `ulimit -n`".into(),
    };
    Error::new(ErrorKind::Os, attempted)
        .with_errno(libc::EMFILE)
        .with_reason("this process has reached its limit of open files")
        .with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_of_open_files_is_told_as_such() {
        let e = io::Error::from_raw_os_error(libc::EMFILE);
        let e = error("find the CPUs", Path::new("/sys/x"), &e);
        assert_eq!(e.errno(), Some(libc::EMFILE));
        let text = format!("{e:#}");
        assert!(
            text.contains("has reached its limit of open files"),
            "{text}"
        );
        assert!(text.contains("raise it with `ulimit -n`"), "{text}");
    }

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
        assert_eq!(too_long.to_string(), "the file is longer than 1 MiB");
        std::fs::write(&path, [0xff, 0xfe]).unwrap();
        let e = error("do it", &path, &read(&path).unwrap_err());
        assert_eq!((e.kind(), e.errno()), (ErrorKind::Os, None));
        assert!(e.to_string().ends_with("the file is not text"), "{e}");
        std::fs::write(&path, "12 \n").unwrap();
        assert_eq!(read(&path).unwrap(), "12");
        assert_eq!(read_start(&path, 1).unwrap(), "1");
        assert!(read_if_there(&path.join("x")).unwrap().is_none());
    }
}
