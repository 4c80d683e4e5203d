//! Functions of just-in-time compilers: `/tmp/perf-PID.map`
//! (`tools/perf/Documentation/jit-interface.txt`).

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use crate::input::regular_file;
use crate::left_out::LeftOut;
use crate::process_maps::ProcessMaps;
use crate::table::{Extent, SymbolTable, TableBuilder};

/// No longer file is read: a compiler writes a few megabytes.
const LONGEST: u64 = 64 << 20;

/// Users whose files are read: in a directory like /tmp anybody can have written one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Trusted {
    /// Root, the user of this process, and the one of the sampled process if that runs: who can give its code any name.
    Sampled(Option<u32>),
    /// All.
    Everyone,
}

/// Returns the paths of the files in which the compiler of a process may list its functions: in the root of the process, if that
/// runs, by its number in its own PID namespace; then in that of this process, and of the process `sampled` that was forked
/// from it.
pub(crate) fn paths_of(
    pid: i32,
    running: Option<&ProcessMaps>,
    sampled: Option<&ProcessMaps>,
) -> Vec<PathBuf> {
    let name = |pid: i32| format!("/tmp/{}", name_of(pid));
    let own = running.map(|running| {
        let (_, own) = running.user_and_own_pid();
        running.in_root(name(own.unwrap_or(pid)).as_bytes())
    });
    let of_sampled = sampled.map(|sampled| sampled.in_root(name(pid).as_bytes()));
    let mut paths: Vec<_> = own.into_iter().chain(of_sampled).collect();
    paths.push(name(pid).into());
    paths
}

/// Returns the name of the file in which the compiler of a process lists its functions.
pub(crate) fn name_of(pid: i32) -> String {
    format!("perf-{pid}.map")
}

/// Returns the functions in a file; `None` when there is no such file.
///
/// # Errors
/// Why it was left out.
pub(crate) fn functions_in(path: &Path, trusted: Trusted) -> Result<Option<SymbolTable>, LeftOut> {
    match opened(path, trusted)? {
        Some(file) => parse(file).map(Some),
        None => Ok(None),
    }
}

/// Opens a file that lists functions; `None` when there is no such file.
///
/// # Errors
/// Why it is left out.
pub(crate) fn opened(path: &Path, trusted: Trusted) -> Result<Option<File>, LeftOut> {
    let Some(file) = regular_file(path)? else {
        return Ok(None);
    };
    let found = file.metadata()?;
    if let Trusted::Sampled(sampled) = trusted
        && let Some(uid) = other_user(&found, sampled)
    {
        return Err(LeftOut::OfAnotherUser { uid });
    }
    if found.len() > LONGEST {
        return Err(LeftOut::TooLong { longest: LONGEST });
    }
    Ok(Some(file))
}

/// Returns the owner of a file who is neither root, nor the user of this process, nor that of the sampled one.
#[cfg(unix)]
fn other_user(file: &std::fs::Metadata, sampled: Option<u32>) -> Option<u32> {
    use std::os::unix::fs::MetadataExt;
    let own = Path::new("/proc/self").metadata().map(|own| own.uid());
    let uid = file.uid();
    let is_trusted = uid == 0 || own.is_ok_and(|own| uid == own) || sampled == Some(uid);
    (!is_trusted).then_some(uid)
}

/// Other systems have no such compilers.
#[cfg(not(unix))]
fn other_user(_: &std::fs::Metadata, _: Option<u32>) -> Option<u32> {
    None
}

/// Reads lines of start, length and name, the numbers in hexadecimal, as long as they come: the file may
/// still be written. Code takes the place of what began in it before: compilers use memory again.
fn parse(file: impl Read) -> Result<SymbolTable, LeftOut> {
    let mut functions = BTreeMap::new();
    let mut lines = BufReader::new(file.take(LONGEST));
    let mut bytes = Vec::new();
    while lines.read_until(b'\n', &mut bytes)? > 0 {
        let line = String::from_utf8_lossy(bytes.trim_ascii_end());
        if let Some((start, rest)) = number(&line)
            && let Some((len @ 1.., name)) = number(rest)
            && !name.is_empty()
        {
            let end = start.saturating_add(len);
            while let Some((&before, _)) = functions.range(start..end).next() {
                functions.remove(&before);
            }
            functions.insert(start, (len, name.to_owned()));
        }
        bytes.clear();
    }
    let mut builder = TableBuilder::default();
    for (start, (len, name)) in functions {
        builder.add(start, Extent::Known(len), 0, &name);
    }
    Ok(builder.build())
}

/// Returns the number that a line begins with, and what follows it behind blanks: some compilers write tabs, or align fields.
fn number(line: &str) -> Option<(u64, &str)> {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let (text, rest) = line.trim_start_matches(is_blank).split_once(is_blank)?;
    let number = u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()?;
    Some((number, rest.trim_start_matches(is_blank)))
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
    fn memory_that_is_used_again_has_the_last_functions() {
        let text = "100 40 a_function_that_was_collected\n100 20 new\n130 10 kept\n200 80 region\n\
                    240 10 inner\n300 40 begins_in_the_next\n2f0 20 next\n";
        let table = parse(text.as_bytes()).expect("readable");
        let name = |address| table.find(address).map(|s| s.name);
        let addresses = [0x110, 0x120, 0x130, 0x210, 0x240, 0x250, 0x2f0, 0x310];
        let expected = [
            Some("new"),
            None,
            Some("kept"),
            Some("region"),
            Some("inner"),
            Some("region"),
            Some("next"),
            None,
        ];
        assert_eq!(addresses.map(name), expected);
    }

    #[test]
    fn fields_are_apart_by_any_blanks() {
        let text = "10 8\tone\n20\t8 two words\n  30   8   three\n40 8 \n50 8\n";
        let table = parse(text.as_bytes()).expect("readable");
        let name = |address| table.find(address).map(|s| s.name);
        let names = [0x10, 0x20, 0x30, 0x40, 0x50].map(name);
        let expected = [Some("one"), Some("two words"), Some("three"), None, None];
        assert_eq!(names, expected);
    }

    #[test]
    fn a_file_of_ones_own_is_read() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "10 10 f\n").expect("written");
        let len = |path| {
            let table = functions_in(path, Trusted::Sampled(None));
            table.map(|table| table.map_or(0, |table| table.len()))
        };
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
        let read = |trusted| functions_in(file.path(), trusted).map(|table| table.map(|t| t.len()));
        let error = read(Trusted::Sampled(Some(54_321))).expect_err("another user's");
        assert!(
            matches!(error, LeftOut::OfAnotherUser { uid: 12_345 }),
            "{error}"
        );
        assert_eq!(read(Trusted::Everyone).expect("asked for"), Some(1));
        // As good as the process that wrote it.
        assert_eq!(
            read(Trusted::Sampled(Some(12_345))).expect("its own"),
            Some(1)
        );
    }
}
