//! Files for node_exporter's collector of text files: whole at every moment.

use std::fs::Permissions;
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::Builder;

/// The name of the file in its folder.
pub(crate) const NAME: &str = "quipu.prom";

/// Puts a text in the place of the file. It is made under a name of its own beside it, and renamed: a link of the file's name is
/// replaced and not followed, and who reads meanwhile reads the one before.
pub(crate) fn write(folder: &Path, text: &[u8]) -> io::Result<()> {
    let mut file = Builder::new()
        .prefix(".quipu-")
        .suffix(".tmp")
        .tempfile_in(folder)?;
    // Whatever the umask is: another user reads it.
    let mode = Permissions::from_mode(0o644);
    file.as_file().set_permissions(mode)?;
    file.write_all(text)?;
    file.flush()?;
    file.persist(folder.join(NAME))
        .map(drop)
        .map_err(|e| e.error)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_link_is_replaced_and_what_it_leads_to_is_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let other = folder.path().join("other");
        fs::write(&other, "mine").expect("ours");
        symlink(&other, folder.path().join(NAME)).expect("ours");
        write(folder.path(), b"quipu_up 1\n").expect("it is written");
        assert_eq!(fs::read(&other).expect("ours"), b"mine");
        let file = folder.path().join(NAME);
        let metadata = fs::symlink_metadata(&file).expect("it is there");
        assert!(metadata.is_file() && metadata.permissions().mode() & 0o777 == 0o644);
        assert_eq!(fs::read(file).expect("ours"), b"quipu_up 1\n");
        assert_eq!(fs::read_dir(folder.path()).expect("ours").count(), 2);
    }
}
