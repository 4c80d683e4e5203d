//! Lines of `/proc/PID/maps` (proc_pid_maps(5)).

/// One mapping of a running process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapsLine<'a> {
    /// The first address.
    pub start: u64,
    /// The first address after it.
    pub end: u64,
    /// Permissions: `r`, `w`, `x`, and `s` or `p` for shared or private.
    pub rights: &'a str,
    /// Offset of its start in the file, in bytes.
    pub offset: u64,
    /// The file's device.
    pub device: (u32, u32),
    /// The file's inode.
    pub inode: u64,
    /// The file's path, a name in brackets, or `//anon` where there is neither, as the kernel's own
    /// records call it.
    pub path: &'a [u8],
}

impl<'a> MapsLine<'a> {
    /// Parses a line without its line end; `None` if it is malformed.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let mut fields = line.splitn(6, |byte| *byte == b' ');
        let mut text = || std::str::from_utf8(fields.next()?).ok();
        let hex = |text: &str| u64::from_str_radix(text, 16).ok();
        let (start, end) = text()?.split_once('-')?;
        let rights = text()?;
        let offset = hex(text()?)?;
        let (major, minor) = text()?.split_once(':')?;
        let number = |text: &str| u32::from_str_radix(text, 16).ok();
        let inode = text()?.parse().ok()?;
        let path = fields.next().unwrap_or_default().trim_ascii_start();
        Some(Self {
            start: hex(start)?,
            end: hex(end).filter(|end| hex(start).is_some_and(|start| start <= *end))?,
            rights,
            offset,
            device: (number(major)?, number(minor)?),
            inode,
            path: if path.is_empty() { b"//anon" } else { path },
        })
    }

    /// Returns true if code may run there.
    pub fn is_executable(&self) -> bool {
        self.rights.contains('x')
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_taken_apart() {
        let line =
            b"7f5400026000-7f540017c000 r-xp 00026000 fe:01 326279             /usr/lib/a b.so";
        let expected = MapsLine {
            start: 0x7f54_0002_6000,
            end: 0x7f54_0017_c000,
            rights: "r-xp",
            offset: 0x2_6000,
            device: (0xfe, 1),
            inode: 326_279,
            path: b"/usr/lib/a b.so",
        };
        assert_eq!(MapsLine::parse(line), Some(expected));
        assert!(expected.is_executable());
        let anonymous = MapsLine::parse(b"1000-2000 rw-s 00000000 00:00 0 ").expect("a line");
        assert_eq!(anonymous.path, b"//anon");
        assert!(!anonymous.is_executable());
        for other in [
            &b""[..],
            b"nonsense",
            b"2000-1000 r-xp 0 00:00 0 x",
            b"1000 r-xp 0 0 0",
        ] {
            assert_eq!(MapsLine::parse(other), None);
        }
    }
}
