//! Debug information that lies apart from programs: by their build ids and by links in them; and copies of programs
//! that tools keep (GDB's manual, "Debugging Information in Separate Files").

use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use flate2::Crc;

/// Directory in which distributions put debug information apart from programs.
const OF_DISTRIBUTION: &str = "/usr/lib/debug";

/// A link to a file of debug information: `.gnu_debuglink`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DebugLink {
    name: OsString,
    /// The checksum of the file.
    crc: u32,
}

impl DebugLink {
    /// Returns the link to the file of a name, which is no path.
    pub(crate) fn new(name: &[u8], crc: u32) -> Option<Self> {
        let name = OsString::from(str::from_utf8(name).ok()?);
        let is_name = Path::new(&name).file_name() == Some(OsStr::new(&name));
        is_name.then_some(Self { name, crc })
    }

    /// Returns the places where the file may be that a program at a path links to.
    pub(crate) fn places(&self, program: &Path) -> Vec<PathBuf> {
        let Some(directory) = program.parent() else {
            return Vec::new();
        };
        let rooted = directory.strip_prefix("/").unwrap_or(directory);
        let mut places = vec![
            directory.join(&self.name),
            directory.join(".debug").join(&self.name),
            Path::new(OF_DISTRIBUTION).join(rooted).join(&self.name),
        ];
        places.retain(|place| place != program);
        places
    }

    /// Returns true if a file has the checksum of the link.
    ///
    /// # Errors
    /// The operating system's when it cannot be read.
    pub(crate) fn is_to(&self, mut file: impl Read) -> io::Result<bool> {
        let mut crc = Crc::new();
        let mut bytes = vec![0; 64 << 10];
        loop {
            match file.read(&mut bytes) {
                Ok(0) => return Ok(crc.sum() == self.crc),
                Ok(len) => crc.update(&bytes[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Paths under which the files of one build may be.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct BuildFiles {
    /// Debug information.
    pub(crate) debug: Vec<PathBuf>,
    /// Copies of the file that was mapped.
    pub(crate) copies: Vec<PathBuf>,
}

/// Returns true if a path is in a cache of a user, and not where distributions put files.
pub(crate) fn is_of_cache(path: &Path) -> bool {
    !path.starts_with(OF_DISTRIBUTION)
}

/// Returns the directory in which debuginfod's clients keep files (debuginfod_find_debuginfo(3)).
pub(crate) fn cache_of_clients(variable: &impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    directory(variable, "DEBUGINFOD_CACHE_PATH").or_else(|| {
        let of_home = || Some(directory(variable, "HOME")?.join(".cache"));
        let cache = directory(variable, "XDG_CACHE_HOME").or_else(of_home)?;
        Some(cache.join("debuginfod_client"))
    })
}

/// Returns the directory that a variable of the environment names.
fn directory(variable: &impl Fn(&str) -> Option<OsString>, name: &str) -> Option<PathBuf> {
    let path = PathBuf::from(variable(name)?);
    path.is_absolute().then_some(path)
}

impl BuildFiles {
    /// Returns the paths for a build id on this machine.
    pub(crate) fn of(build_id: &[u8]) -> Self {
        Self::by(build_id, quipu_environment::variable)
    }

    /// Returns the paths for a build id with these variables of the environment.
    fn by(build_id: &[u8], variable: impl Fn(&str) -> Option<OsString>) -> Self {
        let hex = |bytes: &[u8]| -> String { bytes.iter().map(|b| format!("{b:02x}")).collect() };
        let Some((first, rest)) = build_id.split_at_checked(1) else {
            return Self::default();
        };
        let (first, rest) = (hex(first), hex(rest));
        let home = directory(&variable, "HOME");
        let of_distribution =
            Path::new(OF_DISTRIBUTION).join(format!(".build-id/{first}/{rest}.debug"));
        let mut files = Self {
            debug: vec![of_distribution],
            copies: Vec::new(),
        };
        // The cache of perf (perf-buildid-cache(1)).
        if let Some(home) = &home {
            let cached = home.join(format!(".debug/.build-id/{first}/{rest}"));
            files.debug.push(cached.join("debug"));
            files.copies.push(cached.join("elf"));
        }
        let of_clients = cache_of_clients(&variable);
        if let Some(of_clients) = of_clients {
            let cached = of_clients.join(format!("{first}{rest}"));
            files.debug.push(cached.join("debuginfo"));
            files.copies.push(cached.join("executable"));
        }
        files
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_build_are_looked_for_where_tools_put_them() {
        let files = |variables: &[(&str, &str)]| {
            let variables = variables.to_vec();
            BuildFiles::by(&[0xab, 0x01, 0x02], move |name| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| value.into())
            })
        };
        let paths = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let of_home = files(&[("HOME", "/home/x")]);
        assert_eq!(
            of_home.debug,
            paths(&[
                "/usr/lib/debug/.build-id/ab/0102.debug",
                "/home/x/.debug/.build-id/ab/0102/debug",
                "/home/x/.cache/debuginfod_client/ab0102/debuginfo",
            ])
        );
        assert_eq!(
            of_home.copies,
            paths(&[
                "/home/x/.debug/.build-id/ab/0102/elf",
                "/home/x/.cache/debuginfod_client/ab0102/executable",
            ])
        );
        let of_cache = files(&[("XDG_CACHE_HOME", "/c"), ("HOME", "relative")]);
        let copies = paths(&["/c/debuginfod_client/ab0102/executable"]);
        assert_eq!(of_cache.copies, copies);
        let of_clients = files(&[("XDG_CACHE_HOME", "/c"), ("DEBUGINFOD_CACHE_PATH", "/d")]);
        assert_eq!(of_clients.copies, paths(&["/d/ab0102/executable"]));
        assert_eq!(files(&[]).copies, paths(&[]));
        assert_eq!(BuildFiles::of(&[]), BuildFiles::default());
    }

    #[test]
    fn only_what_distributions_put_there_is_of_no_cache() {
        let of_cache = |path: &str| is_of_cache(Path::new(path));
        assert!(of_cache("/home/x/.debug/a") && of_cache("/usr/lib/debugger/a"));
        assert!(!of_cache("/usr/lib/debug/.build-id/ab/01.debug"));
    }

    #[test]
    fn a_link_names_a_file_beside_the_program_or_in_common_folders() {
        let link = DebugLink::new(b"a.debug", 0xcbf4_3926).expect("a name");
        let places = link.places(Path::new("/opt/bin/a"));
        let expected = [
            "/opt/bin/a.debug",
            "/opt/bin/.debug/a.debug",
            "/usr/lib/debug/opt/bin/a.debug",
        ];
        assert_eq!(places, expected.map(PathBuf::from));
        // A program is not its own debug information, and the root is in no folder.
        let places = link.places(Path::new("/opt/bin/a.debug"));
        assert_eq!(
            places,
            expected[1..].iter().map(PathBuf::from).collect::<Vec<_>>()
        );
        assert!(link.places(Path::new("/")).is_empty());
        for name in ["", "..", "a/b", "/a"] {
            assert_eq!(DebugLink::new(name.as_bytes(), 0), None, "{name}");
        }
        assert_eq!(DebugLink::new(b"\xff", 0), None);
        // The checksum that its authors give of these bytes.
        assert!(link.is_to(&b"123456789"[..]).expect("bytes"));
        assert!(!link.is_to(&b"123456788"[..]).expect("bytes"));
    }
}
