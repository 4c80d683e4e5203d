//! Functions of just-in-time compilers: `/tmp/perf-PID.map`
//! (`tools/perf/Documentation/jit-interface.txt`).

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::elf::regular_file;
use crate::table::{SymbolTable, TableBuilder};

/// No more of a file is read: a compiler writes a few megabytes.
const LONGEST: u64 = 256 << 20;

/// The functions that the compiler of a process has told of; none when it has not, or somebody else
/// wrote the file: anybody can, in a directory like this.
pub(crate) fn functions_of(pid: i32) -> SymbolTable {
    read(Path::new(&format!("/tmp/perf-{pid}.map"))).unwrap_or_default()
}

fn read(path: &Path) -> Option<SymbolTable> {
    let file = regular_file(path)?;
    if !is_own(&file)? {
        return None;
    }
    let mut text = Vec::new();
    file.take(LONGEST).read_to_end(&mut text).ok()?;
    Some(parse(&String::from_utf8_lossy(&text)))
}

/// Returns true if a file is of the user of this process, who may be root.
#[cfg(unix)]
fn is_own(file: &File) -> Option<bool> {
    use std::os::unix::fs::MetadataExt;
    let own = Path::new("/proc/self").metadata().ok()?.uid();
    Some(own == 0 || file.metadata().ok()?.uid() == own)
}

/// Other systems have no such compilers.
#[cfg(not(unix))]
fn is_own(_: &File) -> Option<bool> {
    None
}

/// Lines of start, length and name, the numbers in hexadecimal.
fn parse(text: &str) -> SymbolTable {
    let mut builder = TableBuilder::default();
    for line in text.lines() {
        let mut fields = line.splitn(3, ' ');
        let mut number = || {
            let text = fields.next()?;
            u64::from_str_radix(text.strip_prefix("0x").unwrap_or(text), 16).ok()
        };
        if let (Some(start), Some(len @ 1..)) = (number(), number())
            && let Some(name) = fields.next()
        {
            builder.add(start, len, 0, name);
        }
    }
    builder.build(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_may_contain_spaces() {
        let table = parse("7f00 10 LazyCompile:*f a.js:1\n0x8000 20 g\nbad\n9000 0 h\n9100 x i\n");
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
        assert_eq!(read(file.path()).expect("readable").len(), 1);
        assert!(read(Path::new("/dev/zero")).is_none());
    }
}
