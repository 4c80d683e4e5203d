//! Functions of just-in-time compilers: `/tmp/perf-PID.map`
//! (`tools/perf/Documentation/jit-interface.txt`).

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::input::regular_file;
use crate::left_out::LeftOut;
use crate::table::{Extent, SymbolTable, TableBuilder};

/// No longer file is read: a compiler writes a few megabytes.
const LONGEST: u64 = 64 << 20;

/// Returns the path of the file in which the compiler of a process lists its functions.
pub(crate) fn path_of(pid: i32) -> PathBuf {
    format!("/tmp/perf-{pid}.map").into()
}

/// Returns the functions in a file; none when there is no such file. In a directory like /tmp anybody
/// can have written it: that of a user who is neither root nor the one of this process is read only if
/// `of_others`.
///
/// # Errors
/// Why it was left out.
pub(crate) fn functions_in(path: &Path, of_others: bool) -> Result<SymbolTable, LeftOut> {
    let Some(file) = regular_file(path)? else {
        return Ok(SymbolTable::default());
    };
    let found = file.metadata()?;
    if !of_others && let Some(uid) = other_user(&found) {
        return Err(LeftOut::OfAnotherUser { uid });
    }
    if found.len() > LONGEST {
        return Err(LeftOut::TooLong { longest: LONGEST });
    }
    parse(file)
}

/// Returns the owner of a file that is neither root's nor of the user of this process.
#[cfg(unix)]
fn other_user(file: &std::fs::Metadata) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let own = Path::new("/proc/self").metadata().map(|own| own.uid());
    let is_own = file.uid() == 0 || own.is_ok_and(|own| file.uid() == own);
    (!is_own).then(|| file.uid())
}

/// Other systems have no such compilers.
#[cfg(not(unix))]
fn other_user(_: &std::fs::Metadata) -> Option<u32> {
    None
}

/// Reads lines of start, length and name, the numbers in hexadecimal, as long as they come: the file may
/// still be written.
fn parse(file: impl Read) -> Result<SymbolTable, LeftOut> {
    let mut builder = TableBuilder::default();
    let mut lines = BufReader::new(file.take(LONGEST));
    let mut bytes = Vec::new();
    while lines.read_until(b'\n', &mut bytes)? > 0 {
        let line = String::from_utf8_lossy(bytes.trim_ascii_end());
        let mut fields = line.splitn(3, ' ');
        let mut number = || {
            let text = fields.next()?;
            u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
        };
        if let (Some(start), Some(len @ 1..)) = (number(), number())
            && let Some(name) = fields.next()
        {
            builder.add(start, Extent::Known(len), 0, name);
        }
        bytes.clear();
    }
    Ok(builder.build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_spaces() {
        let text = "7f00 10 LazyCompile:*f a.js:1\n0x8000 20 g\nbad\n9000 0 h\n9100 x i\n";
        let table = parse(text.as_bytes()).expect("readable");
        let name = |address| table.find(address).map(|s| s.name);
        assert_eq!(name(0x7f0f), Some("LazyCompile:*f a.js:1"));
        assert_eq!(name(0x7f10), None);
        assert_eq!(name(0x801f), Some("g"));
        assert_eq!(table.len(), 2);
    }

    #[test]
    fn a_file_of_ones_own_is_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "10 10 f\n").expect("written");
        let len = |path| functions_in(path, false).map(|table| table.len());
        assert_eq!(len(file.path()).expect("readable"), 1);
        assert_eq!(len(Path::new("/nowhere/perf-1.map")).expect("none"), 0);
        assert_eq!(len(Path::new("/dev/zero")).expect("none"), 0);
        file.as_file().set_len(LONGEST + 1).expect("sparse");
        let error = len(file.path()).expect_err("too long");
        assert!(matches!(error, LeftOut::TooLong { .. }), "{error}");
    }

    /// Also when this process is root's, who may give a file to another user.
    #[cfg(unix)]
    #[test]
    fn a_file_of_another_user_is_left_out_unless_asked_for() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "10 10 f\n").expect("written");
        if let Err(e) = std::os::unix::fs::chown(file.path(), Some(12_345), None) {
            let name = "a_file_of_another_user_is_left_out_unless_asked_for";
            use std::io::Write as _;
            let _ = writeln!(std::io::stderr(), "SKIP {name}: {e}");
            return;
        }
        let error = functions_in(file.path(), false).expect_err("another user's");
        assert!(
            matches!(error, LeftOut::OfAnotherUser { uid: 12_345 }),
            "{error}"
        );
        assert_eq!(functions_in(file.path(), true).expect("asked for").len(), 1);
    }
}
