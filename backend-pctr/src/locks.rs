//! Locks among the processes that count with Quipu: whose a counter is, and whose turn it is to go through the CPUs.
//!
//! Each counter is a byte of two files that are locked with fcntl(2), which means nothing to the driver and ends with the
//! process however it ends. The first is [`FILE`], which no other user can open. The second is the device's node, for those
//! who may write it and are not root. Every user may read the node, and so lock it for reading; therefore only a
//! lock for writing counts, which takes permission to write. Nobody else can keep a counter or the turn.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};
use nix::unistd::geteuid;

use crate::device::Claimed;
use crate::sys::{LockKind, READ_LOCK, UNLOCKED, WRITE_LOCK, byte_lock};

/// The file of root's locks, in a directory that is root's and empty after a boot.
const FILE: &str = "/var/run/quipu-pctr";

/// The byte that is locked while threads of a process go through the CPUs. Those before it are of counters and of the
/// witnesses on them.
const TURN: u8 = 64;

/// The longest wait for the turn of another process, which may have been stopped in it.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The interval at which the byte is tried.
const RETRY_INTERVAL: Duration = Duration::from_millis(1);

/// The turn among the threads of this process, whose locks of a byte are one.
static OWN_TURN: Mutex<()> = Mutex::new(());

/// The files that this process locks.
#[derive(Clone, Copy)]
pub(crate) struct Locks<'a> {
    own: Option<&'a File>,
    node: &'a File,
}

/// The turn of this process and thread to go through the CPUs, which ends with this value.
pub(crate) struct Turn<'a> {
    locks: Locks<'a>,
    _own: MutexGuard<'static, ()>,
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        self.locks.release(TURN);
    }
}

impl<'a> Locks<'a> {
    /// Returns the files of a device whose node is open.
    pub(crate) fn of(node: &'a File) -> Self {
        Self {
            own: own_file(),
            node,
        }
    }

    /// Waits for a turn to go through the CPUs. A process that may only read the node locks nothing: it has no urgency
    /// either, and keeps no other from a CPU.
    pub(crate) fn take_turn(self) -> Turn<'a> {
        let own = OWN_TURN.lock().unwrap_or_else(PoisonError::into_inner);
        let end = Instant::now() + LONGEST_WAIT;
        while self.take(TURN).is_err() && Instant::now() < end {
            thread::sleep(RETRY_INTERVAL);
        }
        Turn {
            locks: self,
            _own: own,
        }
    }

    /// Locks a byte.
    ///
    /// # Errors
    /// [`Claimed`] if another process has it. What cannot be locked for another reason, as on a file system without
    /// locks, counts as free.
    pub(crate) fn take(self, byte: u8) -> Result<(), Claimed> {
        for file in self.files() {
            let Err(refused) = set(file, byte, WRITE_LOCK) else {
                continue;
            };
            let is_locked = matches!(refused, Errno::EAGAIN | Errno::EACCES);
            if let Some(owner) = owner(file, byte).filter(|_| is_locked) {
                self.release(byte);
                return Err(owner);
            }
            // It may have been unlocked just now. What stays locked for reading is free all the same.
            let _ = set(file, byte, WRITE_LOCK);
        }
        Ok(())
    }

    /// Unlocks a byte. What cannot be unlocked ends with the process.
    pub(crate) fn release(self, byte: u8) {
        for file in self.files() {
            let _ = set(file, byte, UNLOCKED);
        }
    }

    /// Returns the process that has locked a byte, if another has.
    pub(crate) fn owner(self, byte: u8) -> Option<Claimed> {
        self.files().find_map(|file| owner(file, byte))
    }

    fn files(self) -> impl Iterator<Item = &'a File> {
        self.own.into_iter().chain([self.node])
    }
}

/// Returns root's file, which stays open: a process loses its locks on a file when it closes any descriptor of it.
fn own_file() -> Option<&'static File> {
    static OPENED: OnceLock<Option<File>> = OnceLock::new();
    // Elsewhere there is no driver, and the node is a file of a test.
    let open = || cfg!(target_os = "openbsd").then(|| open_own(Path::new(FILE)))?;
    OPENED.get_or_init(open).as_ref()
}

/// Opens a file that is this user's alone; `None` if it cannot be one.
fn open_own(path: &Path) -> Option<File> {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC)
        .open(path);
    let file = opened.ok()?;
    let facts = file.metadata().ok()?;
    let is_own = facts.uid() == geteuid().as_raw() && facts.mode() & 0o077 == 0;
    is_own.then_some(file)
}

/// Sets a lock on a byte, or removes it (`F_SETLK`).
fn set(file: &File, byte: u8, kind: LockKind) -> nix::Result<()> {
    fcntl(file, FcntlArg::F_SETLK(&byte_lock(byte, kind))).map(drop)
}

/// Returns the process that has locked a byte for writing (`F_GETLK`), if another has. A lock of flock(2), which takes no
/// permission to write and on OpenBSD is in the way of these, has no process.
fn owner(file: &File, byte: u8) -> Option<Claimed> {
    // Only a lock for writing conflicts with one for reading.
    let mut found = byte_lock(byte, READ_LOCK);
    fcntl(file, FcntlArg::F_GETLK(&mut found)).ok()?;
    let is_set = found.l_type != UNLOCKED;
    let pid = u32::try_from(found.l_pid).ok().filter(|&pid| pid > 0)?;
    is_set.then_some(Claimed { pid: Some(pid) })
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader, Lines};
    use std::process::{Child, ChildStdout, Command, Stdio};
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

    use super::*;
    use crate::sweep;

    /// Names the file and the kind of lock of the other process, which is this program again.
    const FILE: &str = "QUIPU_TEST_LOCK_FILE";
    const KIND: &str = "QUIPU_TEST_LOCK_KIND";

    /// Another process that has locked all of a file, until its standard input ends.
    struct Other {
        child: Child,
        _lines: Lines<BufReader<ChildStdout>>,
    }

    impl Other {
        fn locking(path: &Path, kind: &str) -> Self {
            let mut child = Command::new(std::env::current_exe().unwrap())
                .args(["--exact", "locks::tests::the_other", "--nocapture"])
                .env(FILE, path)
                .env(KIND, kind)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut said = lines.by_ref().map_while(Result::ok);
            assert!(said.any(|line| line.contains("it is locked")));
            Self {
                child,
                _lines: lines,
            }
        }

        fn end(mut self) {
            drop(self.child.stdin.take());
            assert!(self.child.wait().unwrap().success());
        }
    }

    #[test]
    fn the_other() {
        let Some(path) = quipu_environment::variable(FILE) else {
            return;
        };
        let open = |write| OpenOptions::new().read(true).write(write).open(&path);
        let kind = quipu_environment::text(KIND).unwrap();
        let file = open(kind == "write").unwrap();
        for byte in [0, 1, 2, 3, TURN] {
            match kind.as_str() {
                "read" => set(&file, byte, READ_LOCK).unwrap(),
                "write" => set(&file, byte, WRITE_LOCK).unwrap(),
                _ => file.lock().unwrap(),
            }
        }
        println!("it is locked");
        std::io::stdin().read_line(&mut String::new()).unwrap();
    }

    fn files() -> (tempfile::TempDir, File, File) {
        let directory = tempfile::tempdir().unwrap();
        let own = open_own(&directory.path().join("own")).unwrap();
        // The node of a real device has no single owner, but a file is as good.
        let node = open_own(&directory.path().join("node")).unwrap();
        (directory, own, node)
    }

    #[test]
    fn whoever_may_only_read_the_node_keeps_nothing() {
        let (directory, own, node) = files();
        for kind in ["read", "flock"] {
            let other = Other::locking(&directory.path().join("node"), kind);
            for own in [None, Some(&own)] {
                let locks = Locks { own, node: &node };
                for byte in [0, 3, TURN] {
                    assert_eq!(locks.owner(byte), None, "{kind}");
                    assert_eq!(locks.take(byte), Ok(()), "{kind}");
                    locks.release(byte);
                }
            }
            other.end();
        }
    }

    #[test]
    fn what_another_process_has_locked_for_writing_is_its_own() {
        let (directory, own, node) = files();
        let locks = Locks {
            own: Some(&own),
            node: &node,
        };
        for name in ["own", "node"] {
            let other = Other::locking(&directory.path().join(name), "write");
            let pid = Some(other.child.id());
            assert_eq!(locks.take(0), Err(Claimed { pid }), "{name}");
            assert_eq!(locks.owner(TURN), Some(Claimed { pid }), "{name}");
            other.end();
            assert_eq!(locks.take(0), Ok(()), "{name}");
            locks.release(0);
        }
    }

    #[test]
    fn a_file_that_others_can_open_or_a_link_is_not_used() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("own");
        let own = open_own(&path).unwrap();
        let open = std::fs::Permissions::from_mode(0o644);
        own.set_permissions(open).unwrap();
        assert!(open_own(&path).is_none());
        let link = directory.path().join("link");
        symlink(directory.path().join("target"), &link).unwrap();
        assert!(open_own(&link).is_none());
        assert!(!directory.path().join("target").exists());
    }

    #[test]
    fn processes_take_turns_to_go_through_the_cpus() {
        let (directory, own, node) = files();
        let locks = Locks {
            own: Some(&own),
            node: &node,
        };
        let other = Other::locking(&directory.path().join("own"), "write");
        let (visits, over) = (AtomicUsize::new(0), AtomicBool::new(false));
        let visit = || match visits.fetch_add(1, Ordering::SeqCst) {
            0 => false,
            _ => {
                assert!(
                    over.load(Ordering::SeqCst),
                    "in the turn of another process"
                );
                true
            }
        };
        thread::scope(|scope| {
            let visitor = scope.spawn(|| sweep::visit_cpus(2, || locks.take_turn(), &visit));
            while visits.load(Ordering::SeqCst) == 0 {
                thread::yield_now();
            }
            thread::sleep(20 * RETRY_INTERVAL);
            over.store(true, Ordering::SeqCst);
            other.end();
            visitor.join().unwrap();
        });
        assert!(visits.into_inner() > 1);
        // Unlocked, so that the next process gets its turn.
        drop(locks.take_turn());
    }
}
