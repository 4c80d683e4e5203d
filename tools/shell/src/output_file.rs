//! Files that a command writes. A link or file that another user put where everybody may write, such as `/tmp`, is left
//! alone: with a link that user would choose what is overwritten, with a file see what is written. Linux has this rule
//! where `fs.protected_symlinks` and `fs.protected_regular` are set (`proc_sys_fs(5)`); here it holds everywhere.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use nix::fcntl::OFlag;
use nix::unistd::geteuid;

/// Makes sure that no other user put the file or link at this path where everybody may write.
///
/// # Errors
/// If another user did.
pub fn check(path: &Path) -> io::Result<()> {
    is_link(path).map(|_| ())
}

/// Returns true if there is a link at this path, which may be followed.
fn is_link(path: &Path) -> io::Result<bool> {
    let Ok(there) = fs::symlink_metadata(path) else {
        return Ok(false);
    };
    let directory = match path.parent() {
        Some(parent) if parent != Path::new("") => fs::metadata(parent)?,
        _ => fs::metadata(".")?,
    };
    match stranger(&there, &directory, geteuid().as_raw()) {
        Some(user) => {
            let kind = if there.is_symlink() { "link" } else { "file" };
            Err(io::Error::other(format!(
                "user {user} put this {kind} where everybody may write; name another file, or remove it"
            )))
        }
        None => Ok(there.is_symlink()),
    }
}

/// Opens a file for writing, and empties it or, if asked to, appends to it. It is made unless it is there.
///
/// # Errors
/// If it cannot be opened, or another user put it there.
pub fn open(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(append);
    options.write(true).truncate(!append);
    if !is_link(path)? {
        // None is followed that came since.
        options.custom_flags(OFlag::O_NOFOLLOW.bits());
    }
    options.open(path)
}

/// Writes a whole file, as [`open`].
///
/// # Errors
/// As [`open`], or if it cannot be written.
pub fn write(path: &Path, contents: impl AsRef<[u8]>) -> io::Result<()> {
    io::Write::write_all(&mut open(path, false)?, contents.as_ref())
}

/// `S_ISVTX | S_IWOTH`, whose type differs between systems and from that of a mode here.
const FOR_ALL: u32 = 0o1002;

/// Returns the user who put a file where everybody may write and only owners remove, unless it is this one or the owner of
/// the directory.
fn stranger(file: &Metadata, directory: &Metadata, this_user: u32) -> Option<u32> {
    let is_for_all = directory.mode() & FOR_ALL == FOR_ALL;
    let user = file.uid();
    (is_for_all && user != this_user && user != directory.uid()).then_some(user)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, lchown, symlink};

    use super::*;

    #[test]
    fn what_others_put_where_everybody_may_write_is_left_alone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = |name: &str| directory.path().join(name);
        let mode = |bits| {
            let permissions = PermissionsExt::from_mode(bits);
            fs::set_permissions(directory.path(), permissions).expect("ours");
        };
        write(&path("target"), "old").expect("ours");
        symlink("target", path("link")).expect("ours");
        mode(0o1777);
        write(&path("link"), "by link").expect("our own link");
        let mut appended = open(&path("link"), true).expect("our own link");
        io::Write::write_all(&mut appended, b", more").expect("ours");
        assert_eq!(fs::read(path("target")).expect("ours"), b"by link, more");
        // The directory is owned by this user too: a stranger's link has another owner.
        let other = 65_533;
        if lchown(path("link"), Some(other), None).is_err() {
            let (file, folder) = (path("link"), directory.path());
            let (file, folder) = (fs::symlink_metadata(file), fs::metadata(folder));
            let (file, folder) = (file.expect("ours"), folder.expect("ours"));
            assert_eq!(stranger(&file, &folder, file.uid()), None);
            return;
        }
        let refused = write(&path("link"), "new").expect_err("not followed");
        assert!(refused.to_string().contains("user 65533 put this link"));
        lchown(path("target"), Some(other), None).expect("root");
        assert!(write(&path("target"), "new").is_err());
        mode(0o755);
        write(&path("link"), "new").expect("nobody else may write there");
        assert_eq!(fs::read(path("target")).expect("root"), b"new");
    }
}
