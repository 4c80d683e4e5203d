//! The maps of compilers' functions, of processes whose maps are not found any more when they have ended.

use std::fs::{self, File};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use quipu_symbols::JitMap;

fn skip(test: &str, reason: &str) {
    let _ = writeln!(std::io::stderr(), "SKIP {test}: {reason}");
}

/// A process that waits until it is dropped.
struct Waiting {
    child: Child,
    /// Files that it leaves.
    map: PathBuf,
}

impl Waiting {
    /// Starts a command that writes a line when it is ready, and then waits for the end of its input.
    fn start(command: &mut Command) -> Option<Self> {
        let command = command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.stderr(Stdio::null()).spawn().ok()?;
        let mut ready = [0];
        let read = child.stdout.as_mut()?.read_exact(&mut ready);
        let map = format!("/tmp/perf-{}.map", child.id()).into();
        let waiting = Self { child, map };
        read.is_ok().then_some(waiting)
    }

    fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        let _ = fs::remove_file(&self.map);
    }
}

/// Returns what a map has; `None` if it is not opened.
fn content(map: &JitMap) -> Option<String> {
    let mut text = String::new();
    let mut file: File = map.open()?;
    file.read_to_string(&mut text).expect("readable");
    Some(text)
}

#[test]
fn a_map_in_the_same_place_is_found_later_as_well() {
    let own = i32::try_from(std::process::id()).expect("a pid");
    assert!(JitMap::of(own).is_none());
    let mut command = Command::new("sh");
    let child = Waiting::start(command.args(["-c", "echo; read line"])).expect("a shell");
    assert!(JitMap::of(child.pid()).is_none());
    assert!(JitMap::of(i32::MAX).is_none());
}

#[test]
fn a_map_of_another_user_is_read_if_it_is_of_that_process_or_root() {
    const TEST: &str = "a_map_of_another_user_is_read_if_it_is_of_that_process_or_root";
    const USER: u32 = 12_345;
    let mut command = Command::new("sh");
    let command = command.args(["-c", "echo; read line"]).uid(USER);
    let Some(child) = Waiting::start(command) else {
        return skip(TEST, "this user cannot start a process of another one");
    };
    let map = JitMap::of(child.pid()).expect("it is of another user");
    assert_eq!(content(&map), None, "there is none yet");
    fs::write(&child.map, "10 10 f\n").expect("writable");
    for (owner, is_read) in [(0, true), (USER, true), (54_321, false)] {
        chown(&child.map, Some(owner), None).expect("this is root");
        let found = content(&map);
        assert_eq!(found, is_read.then(|| "10 10 f\n".to_owned()), "{owner}");
    }
}

#[test]
fn a_map_in_a_folder_of_its_own_is_read_when_the_process_has_ended() {
    const TEST: &str = "a_map_in_a_folder_of_its_own_is_read_when_the_process_has_ended";
    let mut command = Command::new("unshare");
    let script = "mount -t tmpfs none /tmp && echo text >/tmp/perf-$$.map && echo && read line";
    let command = command.args(["-m", "sh", "-c", script]);
    let Some(child) = Waiting::start(command) else {
        return skip(TEST, "no mount namespace can be made");
    };
    assert!(!Path::new(&child.map).exists(), "it is not in this /tmp");
    let map = JitMap::of(child.pid()).expect("it is elsewhere");
    assert_eq!(content(&map).as_deref(), Some("text\n"));
    drop(child);
    assert_eq!(content(&map).as_deref(), Some("text\n"));
}

#[test]
fn a_map_is_called_by_the_number_that_the_process_knows() {
    const TEST: &str = "a_map_is_called_by_the_number_that_the_process_knows";
    let mut command = Command::new("unshare");
    let script = "echo text >/tmp/perf-$$.map; echo $$; read line; rm /tmp/perf-$$.map";
    let script = [
        "sh",
        "-c",
        "mount -t tmpfs none /tmp && exec sh -c \"$0\"",
        script,
    ];
    let command = command.args(["-m", "-p", "--fork"]).args(script);
    let Some(parent) = Waiting::start(command) else {
        return skip(TEST, "no PID namespace can be made");
    };
    let children = format!("/proc/{0}/task/{0}/children", parent.pid());
    let children = fs::read_to_string(children).unwrap_or_default();
    let Ok(child) = children.trim().parse() else {
        return skip(TEST, "the kernel does not list children");
    };
    let map = JitMap::of(child).expect("it has another number");
    assert_eq!(content(&map).as_deref(), Some("text\n"));
}
