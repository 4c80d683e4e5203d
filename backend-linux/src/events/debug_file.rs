//! The debug information of a file that lies apart from it (GDB's manual, "Debugging Information in Separate Files").

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Result, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use object::Object;
use object::read::{ReadCache, ReadRef};

/// Opens the debug information of a file, if it is of the same build: by its ID, or by the checksum that the file links to it with.
pub(super) fn opened<'data, R: ReadRef<'data>>(
    path: &Path,
    file: &object::File<'data, R>,
) -> Option<File> {
    let id = file.build_id().ok().flatten();
    let link = file.gnu_debuglink().ok().flatten();
    let opened = |place: PathBuf| {
        // Beside a program of another user there may be a FIFO of that name.
        let mut options = File::options();
        let options = options.read(true).custom_flags(libc::O_NONBLOCK);
        let mut apart = options.open(place).ok()?;
        if !apart.metadata().ok()?.is_file() {
            return None;
        }
        let is_it = match (id, link) {
            (Some(id), _) => has_build_id(&apart, id),
            (None, Some((_, own))) => checksum(&mut apart).is_ok_and(|sum| sum == own),
            (None, None) => false,
        };
        is_it.then_some(apart)
    };
    let name = link.map(|(name, _)| name);
    let mut places = places(path, id, name, quipu_environment::variable).into_iter();
    places.find_map(opened)
}

fn has_build_id(file: &File, id: &[u8]) -> bool {
    let cache = ReadCache::new(file);
    let elf = object::File::parse(&cache);
    elf.is_ok_and(|elf| elf.build_id() == Ok(Some(id)))
}

/// Returns the checksum that `.gnu_debuglink` has of a file.
fn checksum(file: &mut File) -> Result<u32> {
    let mut checksum = crc32fast::Hasher::new();
    let mut bytes = vec![0; 64 << 10];
    loop {
        match file.read(&mut bytes)? {
            0 => break,
            len => checksum.update(&bytes[..len]),
        }
    }
    file.rewind()?;
    Ok(checksum.finalize())
}

/// Returns where the debug information of a file may lie, with these variables of the environment: where distributions put
/// it, in the caches of perf and of debuginfod's clients, and where the file links to.
fn places(
    path: &Path,
    id: Option<&[u8]>,
    link: Option<&[u8]>,
    variable: impl Fn(&str) -> Option<OsString>,
) -> Vec<PathBuf> {
    let debug = Path::new("/usr/lib/debug");
    let directory = |name| {
        let path = PathBuf::from(variable(name)?);
        path.is_absolute().then_some(path)
    };
    let mut places = Vec::new();
    if let Some([first, rest @ ..]) = id {
        let rest: String = rest.iter().map(|byte| format!("{byte:02x}")).collect();
        places.push(debug.join(format!(".build-id/{first:02x}/{rest}.debug")));
        let home = directory("HOME");
        let of_perf =
            |home: &PathBuf| home.join(format!(".debug/.build-id/{first:02x}/{rest}/debug"));
        places.extend(home.as_ref().map(of_perf));
        let caches = directory("XDG_CACHE_HOME").or_else(|| Some(home?.join(".cache")));
        let of_clients =
            directory("DEBUGINFOD_CACHE_PATH").or_else(|| Some(caches?.join("debuginfod_client")));
        places.extend(of_clients.map(|cache| cache.join(format!("{first:02x}{rest}/debuginfo"))));
    }
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    if let Some(name) = link
        && let Ok(name) = str::from_utf8(name)
        && !name.contains('/')
        && let Some(directory) = path.parent()
    {
        let rooted = directory.strip_prefix("/").unwrap_or(directory);
        let directories = [directory, &directory.join(".debug"), &debug.join(rooted)];
        places.extend(directories.map(|directory| directory.join(name)));
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_information_of_the_distribution_is_found_by_the_whole_path() {
        let own = std::env::current_exe().expect("a path");
        let here = std::env::current_dir().expect("a directory");
        let relative: PathBuf = here.components().skip(1).map(|_| "..").collect();
        let relative = relative.join(own.strip_prefix("/").expect("a whole path"));
        let home = |name: &str| (name == "HOME").then(|| "/home/x".into());
        let places = |path: &Path| places(path, Some(&[0xab, 0xcd]), Some(b"x.debug"), home);
        assert_eq!(places(&relative), places(&own));
        let directory = own.canonicalize().expect("it is there");
        let directory = directory.parent().expect("a directory").to_owned();
        let rooted = directory.strip_prefix("/").expect("a whole path");
        let expected = [
            PathBuf::from("/usr/lib/debug/.build-id/ab/cd.debug"),
            PathBuf::from("/home/x/.debug/.build-id/ab/cd/debug"),
            PathBuf::from("/home/x/.cache/debuginfod_client/abcd/debuginfo"),
            directory.join("x.debug"),
            directory.join(".debug/x.debug"),
            Path::new("/usr/lib/debug").join(rooted).join("x.debug"),
        ];
        assert_eq!(places(&own), expected);
    }
}
