//! The child between fork(2) and execve(2).
//!
//! Between the two only async-signal-safe calls are allowed (signal-safety(7)): another thread may
//! have held any lock, that of the allocator included, at the moment of the fork. So everything is
//! prepared before.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::ptr;

use nix::errno::Errno;
use nix::sys::signal::{SigHandler, SigSet, SigmaskHow, Signal, signal, sigprocmask};
use nix::unistd::{AccessFlags, access, read, write};

use crate::sys;

/// The `PATH` of execvp(3) if none is set.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// The interpreter of files that the kernel answers with ENOEXEC (execvp(3)).
const SHELL: &CStr = c"/bin/sh";

/// The arguments of execve(2), as C strings and pointers to them.
pub(crate) struct Program {
    /// The files to try, in order.
    candidates: Vec<CString>,
    /// True if they come from `PATH`, so that some need not exist.
    is_search: bool,
    /// The arguments from the second on, and the environment; the vectors below point into them.
    _strings: Vec<CString>,
    /// `sh`, then the program's arguments from the first on, and a null. A program is executed with
    /// what follows the `sh`; the shell with all of it, the file in place of the first argument.
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
}

impl Program {
    /// Prepares a program; returns `None` if a string contains a NUL byte.
    pub(crate) fn new<A: AsRef<OsStr>>(
        program: &OsStr,
        arguments: impl IntoIterator<Item = A>,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Option<Self> {
        let mut path = OsString::from(DEFAULT_PATH);
        let mut variables = Vec::new();
        for (name, value) in environment {
            variables.push(c_string(joined(&[&name, OsStr::new("="), &value]))?);
            if name == "PATH" {
                path = value;
            }
        }
        let candidates = candidates(program, &path)?;
        let mut strings = vec![c_string(program)?];
        for argument in arguments {
            strings.push(c_string(argument.as_ref())?);
        }
        let pointers = |strings: &[CString]| -> Vec<*const c_char> {
            let pointers = strings.iter().map(|s| s.as_ptr());
            pointers.chain([ptr::null()]).collect()
        };
        let mut arguments = vec![SHELL.as_ptr()];
        arguments.extend(pointers(&strings));
        let environment = pointers(&variables);
        strings.append(&mut variables);
        Some(Self {
            candidates,
            is_search: is_looked_up(program),
            _strings: strings,
            arguments,
            environment,
        })
    }

    /// Calls execve(2) with these arguments, which are the end of this program's; returns the errno. nix's function makes
    /// vectors of pointers, for which it takes the lock of the allocator.
    fn execve(&self, file: &CStr, arguments: &[*const c_char]) -> i32 {
        debug_assert!(self.arguments.ends_with(arguments));
        // SAFETY: `file` ends with a NUL. Both vectors end with a null, and point to NUL-terminated
        // strings that live as long as `self`. execve(2) is async-signal-safe and changes no memory
        // unless it succeeds.
        unsafe { libc::execve(file.as_ptr(), arguments.as_ptr(), self.environment.as_ptr()) };
        Errno::last_raw()
    }
}

/// Returns true if a program is looked up in `PATH`: its name is no path.
fn is_looked_up(program: &OsStr) -> bool {
    let name = program.as_bytes();
    !name.is_empty() && !name.contains(&b'/')
}

/// Returns the files that execvp(3) would try for the name of a program.
fn candidates(program: &OsStr, path: &OsStr) -> Option<Vec<CString>> {
    if !is_looked_up(program) {
        return Some(vec![c_string(program)?]);
    }
    path.as_bytes()
        .split(|byte| *byte == b':')
        .map(|dir| match dir {
            // An empty entry is the current directory.
            [] => c_string(program),
            dir => c_string(joined(&[OsStr::from_bytes(dir), OsStr::new("/"), program])),
        })
        .collect()
}

/// Waits for the byte that resumes this child, executes the program, and if that fails reports the
/// errno and exits.
pub(crate) fn child(program: &mut Program, parents_end: UnixStream, link: &UnixStream) -> ! {
    // Open here too, the link would never end for the child when the parent exits.
    drop(parents_end);
    if is_resumed(link) {
        default_signals();
        let errno = execute(program);
        // Without a parent there is nothing to report to.
        let _ = write(link, &errno.to_ne_bytes());
    }
    sys::exit_at_once(127)
}

/// Waits for the byte of the parent; returns false if it exits without one.
fn is_resumed(link: &UnixStream) -> bool {
    let mut byte = [0];
    loop {
        match read(link, &mut byte) {
            Err(Errno::EINTR) => {}
            received => return received == Ok(1),
        }
    }
}

/// Unblocks every signal, and lets a broken pipe end the program: Rust's runtime ignores it.
fn default_signals() {
    let _ = sigprocmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::empty()), None);
    // SAFETY: SIG_DFL installs no handler.
    let _ = unsafe { signal(Signal::SIGPIPE, SigHandler::SigDfl) };
}

/// Executes the first candidate that can be, as execvp(3) does; returns the errno when none can.
///
/// Unlike execvp(3), and like a shell, it passes over a directory of `PATH` that may not be searched:
/// that does not tell whether the program exists.
fn execute(program: &mut Program) -> i32 {
    let mut outcome = libc::ENOENT;
    for file in &program.candidates {
        match program.execve(file, &program.arguments[1..]) {
            libc::ENOEXEC => {
                program.arguments[1] = file.as_ptr();
                return program.execve(SHELL, &program.arguments);
            }
            libc::EACCES if program.is_search && !exists(file) => {}
            libc::EACCES => outcome = libc::EACCES,
            libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ESTALE | libc::ETIMEDOUT => {}
            other => return other,
        }
    }
    outcome
}

/// Returns true if the file exists, as far as its directory can be searched.
fn exists(file: &CStr) -> bool {
    access(file, AccessFlags::F_OK).is_ok()
}

/// Returns a C string, or `None` if the text contains a NUL byte.
fn c_string(text: impl Into<OsString>) -> Option<CString> {
    CString::new(text.into().into_vec()).ok()
}

/// Concatenates OS strings.
fn joined(parts: &[&OsStr]) -> OsString {
    let bytes: Vec<&[u8]> = parts.iter().map(|part| part.as_bytes()).collect();
    OsString::from_vec(bytes.concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_looked_up_as_execvp_does() {
        let find = |program: &str, path: &str| -> Vec<String> {
            candidates(OsStr::new(program), OsStr::new(path))
                .expect("no NUL")
                .into_iter()
                .map(|file| file.into_string().expect("text"))
                .collect()
        };
        assert_eq!(find("ls", "/a:/b"), ["/a/ls", "/b/ls"]);
        assert_eq!(find("ls", "/a::/b"), ["/a/ls", "ls", "/b/ls"]);
        assert_eq!(find("./ls", "/a"), ["./ls"]);
        assert_eq!(find("", "/a"), [""]);
        assert!(candidates(OsStr::new("a\0b"), OsStr::new("/a")).is_none());
    }

    #[test]
    fn arguments_follow_the_shells_name() {
        let program = Program::new(
            OsStr::new("prog"),
            ["x", ""],
            [(OsString::from("PATH"), OsString::from("/p"))],
        )
        .expect("no NUL");
        let [name, x, empty, path] = &program._strings[..] else {
            panic!("{:?}", program._strings);
        };
        let strings = [name, x, empty, path].map(|s| s.to_str().expect("text"));
        assert_eq!(strings, ["prog", "x", "", "PATH=/p"]);
        let [name, x, empty, path] = [name, x, empty, path].map(|s| s.as_ptr());
        let arguments = [SHELL.as_ptr(), name, x, empty, ptr::null()];
        assert_eq!(program.arguments, arguments);
        assert_eq!(program.environment, [path, ptr::null()]);
        assert_eq!(program.candidates, [c"/p/prog".to_owned()]);
    }
}
