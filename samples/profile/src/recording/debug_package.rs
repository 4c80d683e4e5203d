//! The packages of debug symbols of Debian and its like.

use std::fs;
use std::path::Path;

/// The lists of files of installed packages (dpkg(1)).
pub(super) const LISTS: &str = "/var/lib/dpkg/info";

/// Returns the package with the debug symbols of an installed file.
pub(super) fn of(file: &str, lists: &Path) -> Option<String> {
    // What packages have in /lib lies in /usr/lib.
    let moved = file.strip_prefix("/usr").unwrap_or(file);
    let mut lists = fs::read_dir(lists).ok()?.flatten();
    let owner = lists.find(|list| {
        let path = list.path();
        let text = match path.extension() {
            Some(extension) if extension == "list" => fs::read_to_string(path).unwrap_or_default(),
            _ => return false,
        };
        text.lines().any(|line| line == file || line == moved)
    })?;
    let name = owner.file_name().into_string().ok()?;
    // With the architecture behind a colon, where several can be installed.
    let name = name.strip_suffix(".list")?.split(':').next()?;
    Some(format!("{name}-dbgsym"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_of_a_file_names_the_package() {
        let lists = tempfile::tempdir().expect("a directory");
        let write = |name: &str, text: &str| {
            fs::write(lists.path().join(name), text).expect("it is ours");
        };
        write(
            "libssl3:amd64.list",
            "/.\n/usr/lib/libssl.so.3\n/usr/lib/libcrypto.so.3\n",
        );
        write("libssl3:amd64.md5sums", "0 usr/lib/libz.so.1\n");
        write("zlib1g.list", "/lib/libz.so.1\n");
        for (file, package) in [
            ("/usr/lib/libcrypto.so.3", Some("libssl3-dbgsym")),
            ("/usr/lib/libz.so.1", Some("zlib1g-dbgsym")),
            ("/usr/lib/libz.so", None),
        ] {
            assert_eq!(of(file, lists.path()).as_deref(), package);
        }
        assert_eq!(of("/usr/lib/libz.so.1", Path::new("/nowhere")), None);
    }
}
