#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]
#![deny(clippy::print_stdout, clippy::print_stderr)]

use std::ffi::OsString;
use std::fs::File;
#[cfg(unix)]
use std::fs::OpenOptions;
use std::io::Read as _;
#[cfg(unix)]
use std::os::unix::fs::OpenOptionsExt as _;
#[cfg(unix)]
use std::path::Path;
use std::sync::OnceLock;
use std::{env, io};

/// `AT_SECURE` of the auxiliary vector (getauxval(3)).
const AT_SECURE: usize = 23;

/// Returns a variable of the environment, as secure_getenv(3) does: none in a program that was executed with rights which
/// the one who set the variable may lack.
///
/// ```
/// let pager = quipu_environment::variable("PAGER").unwrap_or_else(|| "less".into());
/// # assert!(!pager.is_empty());
/// ```
pub fn variable(name: &str) -> Option<OsString> {
    env::var_os(name).filter(|_| !has_more_rights())
}

/// Returns a variable of the environment that is text.
pub fn text(name: &str) -> Option<String> {
    variable(name)?.into_string().ok()
}

/// Returns the rank of this process among those of a parallel program, as its launcher gave it: Open MPI, PMIx, Cray's ALPS,
/// MPICH's PMI, or Slurm.
pub fn rank() -> Option<u64> {
    let names = [
        "OMPI_COMM_WORLD_RANK",
        "PMIX_RANK",
        "ALPS_APP_PE",
        "PMI_RANK",
        "SLURM_PROCID",
    ];
    let mut given = names.iter().filter_map(|name| text(name));
    given.find_map(|rank| rank.parse().ok())
}

/// Returns true in a set-user-ID or set-group-ID program, and on Linux in one with capabilities or a security label of its
/// file as well.
pub fn has_more_rights() -> bool {
    has_other_ids() || cfg!(any(target_os = "linux", target_os = "android")) && is_secure()
}

/// Opens the file that a variable of the environment names for writing, and empties it. It is made unless it is there; a link is
/// not followed, as another user who put it there would choose what is overwritten.
///
/// # Errors
/// If it is a link, or cannot be opened.
#[cfg(unix)]
pub fn create_named(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    options
        .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
        .open(path)
}

#[cfg(unix)]
fn has_other_ids() -> bool {
    use nix::unistd::{getegid, geteuid, getgid, getuid};
    getuid() != geteuid() || getgid() != getegid()
}

#[cfg(not(unix))]
fn has_other_ids() -> bool {
    false
}

/// Returns what the kernel told at execve(2), which holds when the program has changed its ids since. A process that may
/// not read it has more rights than its user.
fn is_secure() -> bool {
    static SECURE: OnceLock<bool> = OnceLock::new();
    *SECURE.get_or_init(|| {
        let mut vector = Vec::with_capacity(4096);
        let read = File::open("/proc/self/auxv").and_then(|mut file| file.read_to_end(&mut vector));
        match read {
            Ok(_) => says_secure(&vector),
            Err(e) => e.kind() == io::ErrorKind::PermissionDenied,
        }
    })
}

/// Returns true if an auxiliary vector, pairs of a key and a value, has a value for `AT_SECURE`.
fn says_secure(vector: &[u8]) -> bool {
    let word = |bytes: &[u8]| bytes.try_into().map_or(0, usize::from_ne_bytes);
    let mut pairs = vector.chunks_exact(2 * size_of::<usize>());
    pairs.any(|pair| {
        let (key, value) = pair.split_at(size_of::<usize>());
        word(key) == AT_SECURE && word(value) != 0
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_its_own_user_has_its_environment() {
        assert!(!has_more_rights());
        assert_eq!(variable("PATH"), env::var_os("PATH"));
    }

    #[test]
    fn the_kernels_word_is_read() {
        let vector = |pairs: &[[usize; 2]]| -> Vec<u8> {
            let words = pairs.iter().flatten();
            words.flat_map(|word| word.to_ne_bytes()).collect()
        };
        assert!(says_secure(&vector(&[[6, 4096], [23, 1], [0, 0]])));
        assert!(!says_secure(&vector(&[[6, 23], [23, 0], [0, 0]])));
        assert!(!says_secure(&vector(&[[6, 4096], [22, 1]])));
        assert!(!says_secure(&[23]));
    }
}
