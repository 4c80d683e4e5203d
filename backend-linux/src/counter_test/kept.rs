//! The file that keeps what a test found.

use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, Read as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use nix::unistd::geteuid;
use quipu_hal::Hardware;

use super::CounterTest;
use crate::machine::kernel_file;
use crate::machine::privileges;

/// The first line of the file; another one is of another version.
const FORM: &str = "quipu counters 2";

/// The file is this long at most.
const LONGEST: u64 = 4096;

const NAME: &str = "counters";

/// The boot and the CPU that a result is true of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) boot: String,
    pub(super) cpu: String,
}

impl Stamp {
    /// Returns the stamp of now; `None` where the kernel reports no boot or CPU.
    pub(super) fn of_this_machine() -> Option<Self> {
        let boot = kernel_file::read(Path::new("/proc/sys/kernel/random/boot_id")).ok()?;
        let cpu = privileges::cpu()?;
        let one_line = |text: &String| !text.is_empty() && !text.contains('\n');
        (one_line(&boot) && one_line(&cpu)).then_some(Self { boot, cpu })
    }
}

/// The directory of kept results, which belongs to this user alone.
#[derive(Debug)]
pub(super) struct Kept {
    dir: PathBuf,
}

impl Kept {
    /// Returns the directory for it below that of the user.
    pub(super) fn below(user: &Path) -> Self {
        Self {
            dir: user.join("quipu"),
        }
    }

    /// Returns the results with the stamp of now, if they are in a file that no one else could have written.
    /// Without such a file the stamp is not asked for.
    pub(super) fn read(&self, now: impl FnOnce() -> Option<Stamp>) -> Vec<CounterTest> {
        self.text()
            .and_then(|text| parse(&text, &now()?))
            .unwrap_or_default()
    }

    fn text(&self) -> Option<String> {
        let dir = self.open().ok()?;
        let mut options = File::options();
        options.read(true);
        let file = options
            .custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
            .open(within(&dir, NAME))
            .ok()?;
        check_own(&file, Metadata::is_file).ok()?;
        let mut text = String::new();
        file.take(LONGEST).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// Replaces the results.
    pub(super) fn write(&self, stamp: &Stamp, tests: &[CounterTest]) -> io::Result<()> {
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o700).create(&self.dir)?;
        let dir = self.open()?;
        let new = within(&dir, &format!("{NAME}.{}", std::process::id()));
        // Left by an earlier process of this number.
        let _: io::Result<()> = std::fs::remove_file(&new);
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600);
        let mut file = options.open(&new)?;
        file.write_all(print(stamp, tests).as_bytes())?;
        std::fs::rename(&new, within(&dir, NAME))
    }

    fn open(&self) -> io::Result<File> {
        let mut options = File::options();
        options.read(true);
        let dir = options
            .custom_flags(libc::O_DIRECTORY | libc::O_NOFOLLOW)
            .open(&self.dir)?;
        check_own(&dir, Metadata::is_dir)?;
        Ok(dir)
    }
}

/// Returns the path of a file in an open directory, which leads there whatever becomes of the directory's name
/// (proc_pid_fd(5)).
fn within(dir: &File, name: &str) -> PathBuf {
    format!("/proc/self/fd/{}/{name}", dir.as_raw_fd()).into()
}

/// Checks that what is open is of this type, and that only this user may write to it.
fn check_own(file: &File, is_wanted: fn(&Metadata) -> bool) -> io::Result<()> {
    const OTHERS_WRITE: u32 = 0o022;
    let found = file.metadata()?;
    let own =
        found.uid() == geteuid().as_raw() && is_wanted(&found) && found.mode() & OTHERS_WRITE == 0;
    if own {
        Ok(())
    } else {
        Err(io::ErrorKind::PermissionDenied.into())
    }
}

fn print(stamp: &Stamp, tests: &[CounterTest]) -> String {
    let Stamp { boot, cpu } = stamp;
    let mut text = format!("{FORM}\nboot {boot}\ncpu {cpu}\n");
    for test in tests {
        let CounterTest {
            pmu,
            event,
            advertised,
            tested,
            counting,
        } = test;
        text += &format!("counters {advertised} {tested} {counting} {event} {pmu}\n");
    }
    text
}

/// Returns the results in the text, if it is what [`print`] writes for this stamp.
fn parse(text: &str, stamp: &Stamp) -> Option<Vec<CounterTest>> {
    let lines = text.lines().skip(print(stamp, &[]).lines().count());
    let mut tests = Vec::new();
    for line in lines {
        tests.push(parse_test(line)?);
    }
    // One text for each result: nothing before, between or behind.
    (print(stamp, &tests) == text).then_some(tests)
}

fn parse_test(line: &str) -> Option<CounterTest> {
    let mut words = line.strip_prefix("counters ")?.splitn(5, ' ');
    let mut number = || Some(usize::from(words.next()?.parse::<u8>().ok()?));
    let (advertised, tested, counting) = (number()?, number()?, number()?);
    let test = CounterTest {
        event: Hardware::from_name(words.next()?)?,
        pmu: words.next()?.to_owned(),
        advertised,
        tested,
        counting,
    };
    let possible = test.counting <= test.tested && (1..=test.advertised).contains(&test.tested);
    possible.then_some(test)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt as _, chown, symlink};

    fn test(pmu: &str, counting: usize) -> CounterTest {
        CounterTest {
            pmu: pmu.into(),
            event: Hardware::Instructions,
            advertised: 6,
            tested: 6,
            counting,
        }
    }

    fn stamp() -> Stamp {
        Stamp {
            boot: "0b5ca0f0-8a3e-4d5f-9a45-4ab0f2dd7cf4".into(),
            cpu: "Some CPU @ 3.00GHz".into(),
        }
    }

    fn now() -> Option<Stamp> {
        Some(stamp())
    }

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("own");
    }

    #[test]
    fn what_is_kept_is_read_again_in_this_boot_on_this_cpu() {
        let root = tempfile::tempdir().expect("a directory");
        let kept = Kept::below(root.path());
        assert_eq!(kept.read(now), []);
        for counting in [5, 6] {
            for pmus in [&["cpu"][..], &["cpu_core", "cpu_atom"]] {
                let tests: Vec<_> = pmus.iter().map(|pmu| test(pmu, counting)).collect();
                kept.write(&stamp(), &tests).expect("writable");
                assert_eq!(kept.read(now), tests);
            }
        }
        let boot = "another".into();
        assert_eq!(kept.read(|| Some(Stamp { boot, ..stamp() })), []);
        let cpu = "another".into();
        assert_eq!(kept.read(|| Some(Stamp { cpu, ..stamp() })), []);
        let files = std::fs::read_dir(root.path().join("quipu")).expect("there");
        assert_eq!(files.count(), 1);
    }

    #[test]
    fn any_other_text_is_none() {
        let tests = vec![test("cpu", 5)];
        let good = print(&stamp(), &tests);
        assert_eq!(parse(&good, &stamp()), Some(tests));
        for (from, to) in [
            ("counters 2\n", "counters 1\n"),
            ("6 6 5", "6 6 7"),
            ("6 6 5", "5 6 5"),
            ("6 6 5", "0 0 0"),
            ("6 6 5", "6 0 0"),
            ("6 6 5", "6 6"),
            ("6 6 5", "6 6 5 5"),
            ("6 6 5", "6 6 +5"),
            ("6 6 5", "6 6 05"),
            ("6 6 5", "6 6 -1"),
            ("6 6 5", "6 6 99999999999999999999"),
            (" instructions", ""),
            ("instructions", "nonsense"),
            (" cpu\n", "\n"),
            ("cpu\n", "cpu"),
            ("cpu\n", "cpu\n\n"),
            ("boot ", "boot\t"),
            ("cpu Some", "cpu some"),
            ("quipu", "\u{0}quipu"),
        ] {
            let bad = good.replacen(from, to, 1);
            assert_ne!(bad, good);
            assert_eq!(parse(&bad, &stamp()), None, "{bad:?}");
        }
        for bad in ["", "\n", "counters ", "counters 6 6 5 instructions cpu\n"] {
            assert_eq!(parse(bad, &stamp()), None, "{bad:?}");
        }
    }

    #[test]
    fn a_file_that_others_could_have_written_is_not_read() {
        let root = tempfile::tempdir().expect("a directory");
        let kept = Kept::below(root.path());
        let tests = [test("cpu", 5)];
        kept.write(&stamp(), &tests).expect("writable");
        let dir = root.path().join("quipu");
        let file = dir.join(NAME);
        for (path, bad, good) in [
            (&file, 0o620, 0o600),
            (&file, 0o602, 0o600),
            (&dir, 0o777, 0o700),
        ] {
            mode(path, bad);
            assert_eq!(kept.read(now), [], "{bad:o}");
            mode(path, good);
            assert_eq!(kept.read(now), tests);
        }
        let elsewhere = root.path().join("elsewhere");
        std::fs::rename(&file, &elsewhere).expect("own");
        symlink(&elsewhere, &file).expect("new");
        assert_eq!(kept.read(now), []);
        std::fs::remove_file(&file).expect("own");
        std::fs::create_dir(&file).expect("new");
        assert_eq!(kept.read(now), []);
        assert!(kept.write(&stamp(), &tests).is_err());
        std::fs::remove_dir(&file).expect("own");
        std::fs::write(&file, vec![b'a'; 1 << 20]).expect("own");
        mode(&file, 0o600);
        assert_eq!(kept.read(now), []);
        std::fs::rename(&elsewhere, &file).expect("own");
        assert_eq!(kept.read(now), tests);
        if geteuid().is_root() {
            for path in [&file, &dir] {
                chown(path, Some(12345), None).expect("root may");
                assert_eq!(kept.read(now), []);
                chown(path, Some(0), None).expect("root may");
            }
            assert_eq!(kept.read(now), tests);
        }
    }
}
