//! What happens in the child between fork and execve.
//!
//! Between the two only async-signal-safe calls are allowed (signal-safety(7)): another thread may
//! have held any lock, that of the allocator included, at the moment of the fork. So everything is
//! prepared before.

use std::ffi::{CStr, CString, OsStr, OsString, c_char};
use std::mem::MaybeUninit;
use std::os::fd::RawFd;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use super::{c_string, joined};
use crate::sys::last_errno;

/// Where execvp(3) looks when there is no `PATH`.
const DEFAULT_PATH: &str = "/bin:/usr/bin";
/// Who executes a file that the kernel does not know how to (execvp(3)).
const SHELL: &CStr = c"/bin/sh";

/// Everything execve(2) needs, as C wants it.
pub(super) struct Program {
    /// The files to try, in order.
    candidates: Vec<CString>,
    /// Whether they come from `PATH`, so that some need not be there.
    is_search: bool,
    /// The arguments from the second on, and the environment; the vectors below point into them.
    _strings: Vec<CString>,
    /// `sh`, then the program's arguments from the first on, and a null. A program is executed with
    /// what follows the `sh`; the shell with all of it, the file in place of the first argument.
    arguments: Vec<*const c_char>,
    environment: Vec<*const c_char>,
}

impl Program {
    /// `None` when something contains a NUL byte.
    pub(super) fn new<A: AsRef<OsStr>>(
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
            is_search: is_looked_for(program),
            _strings: strings,
            arguments,
            environment,
        })
    }
}

/// Whether a program is looked for in `PATH`: its name is no path.
fn is_looked_for(program: &OsStr) -> bool {
    let name = program.as_bytes();
    !name.is_empty() && !name.contains(&b'/')
}

/// The files that a program's name may mean, as execvp(3) looks for them.
fn candidates(program: &OsStr, path: &OsStr) -> Option<Vec<CString>> {
    if !is_looked_for(program) {
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

/// The child: waits for the byte that releases it, executes the program, and if that fails reports
/// the errno and exits.
pub(super) fn child(program: &mut Program, parent_link: RawFd, link: RawFd) -> ! {
    // SAFETY: these calls are async-signal-safe, get descriptors that are open in this process and
    // pointers to live locals or into `program`; this thread is the only one of its process.
    unsafe {
        // Held here too, the link would never end for the child when the parent goes away.
        libc::close(parent_link);
        let mut byte = 0u8;
        let got = loop {
            let got = libc::read(link, (&raw mut byte).cast(), 1);
            if got >= 0 || last_errno() != libc::EINTR {
                break got;
            }
        };
        if got != 1 {
            libc::_exit(127);
        }
        default_signals();
        let errno = execute(program);
        libc::write(link, (&raw const errno).cast(), size_of_val(&errno));
        libc::_exit(127)
    }
}

/// Unblocks every signal, and lets a broken pipe end the program: Rust's runtime ignores it.
///
/// # Safety
/// To be called where this thread's signal mask matters to nobody else.
unsafe fn default_signals() {
    let mut none = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigemptyset initialises the set before sigprocmask reads it.
    unsafe {
        libc::sigemptyset(none.as_mut_ptr());
        libc::sigprocmask(libc::SIG_SETMASK, none.as_ptr(), ptr::null_mut());
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
}

/// Executes the first candidate that can be, as execvp(3) does; returns the errno when none can.
///
/// Unlike execvp(3), and like a shell, it passes over a directory of `PATH` that may not be searched:
/// it says nothing about the program.
///
/// # Safety
/// On success the calling process becomes another program.
unsafe fn execute(program: &mut Program) -> i32 {
    let mut outcome = libc::ENOENT;
    for file in &program.candidates {
        // SAFETY: the strings, and the null-terminated vectors of pointers to them, live in
        // `program`.
        let errno = unsafe {
            libc::execve(
                file.as_ptr(),
                program.arguments[1..].as_ptr(),
                program.environment.as_ptr(),
            );
            last_errno()
        };
        match errno {
            libc::ENOEXEC => {
                program.arguments[1] = file.as_ptr();
                // SAFETY: as above.
                return unsafe {
                    libc::execve(
                        SHELL.as_ptr(),
                        program.arguments.as_ptr(),
                        program.environment.as_ptr(),
                    );
                    last_errno()
                };
            }
            libc::EACCES if program.is_search && !exists(file) => {}
            libc::EACCES => outcome = libc::EACCES,
            libc::ENOENT | libc::ENOTDIR | libc::ENODEV | libc::ESTALE | libc::ETIMEDOUT => {}
            other => return other,
        }
    }
    outcome
}

/// Whether there is a file of this name, as far as its directory tells.
fn exists(file: &CStr) -> bool {
    // SAFETY: access(2) is async-signal-safe, and the string ends with a NUL.
    unsafe { libc::access(file.as_ptr(), libc::F_OK) == 0 }
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
        let texts = |pointers: &[*const c_char]| -> Vec<String> {
            let (last, pointers) = pointers.split_last().expect("a null at least");
            assert!(last.is_null());
            let text = |p: &*const c_char| {
                // SAFETY: the pointers are to NUL-terminated strings that `program` holds.
                unsafe { CStr::from_ptr(*p) }.to_string_lossy().into_owned()
            };
            pointers.iter().map(text).collect()
        };
        assert_eq!(texts(&program.arguments), ["/bin/sh", "prog", "x", ""]);
        assert_eq!(texts(&program.environment), ["PATH=/p"]);
        assert_eq!(program.candidates, [c"/p/prog".to_owned()]);
    }
}
