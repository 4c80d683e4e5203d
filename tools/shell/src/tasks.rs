//! Processes, threads and files of this system: which tasks run, and how many files may be open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use quipu::Target;

/// The reason why a program was not counted although its counters were attached.
pub const COUNTERS_END: &str = "the kernel ends an ordinary user's counters when a program is executed that is setuid or \
    setgid, has file capabilities, or may not be read";

/// Raises the limit of open files as far as this process may (getrlimit(2), `RLIMIT_NOFILE`): each
/// event takes a file on each CPU or thread. Where that is refused, opening an event beyond the limit
/// fails with the reason.
pub fn raise_open_file_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Returns true if any of these processes and threads runs. A target that is not a task always does.
pub fn any_alive(targets: &[Target]) -> bool {
    targets.iter().any(|target| match target {
        Target::Process(id) | Target::Thread(id) => is_alive(*id),
        _ => true,
    })
}

cfg_if::cfg_if! {
    if #[cfg(target_os = "freebsd")] {
        /// Returns false for a process that nobody has waited for too.
        fn is_alive(id: i32) -> bool {
            !quipu_hwpmc::has_ended(id)
        }
    } else {
        use nix::errno::Errno;
        use nix::sys::signal::kill;
        use nix::unistd::Pid;

        /// Returns false for a zombie too: it has ended, although it still has its entry (proc_pid_stat(5), `state`).
        fn is_alive(id: i32) -> bool {
            let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
                // There may be no /proc, or one that does not show other users' tasks.
                return kill(Pid::from_raw(id), None) != Err(Errno::ESRCH);
            };
            // The name before the state is in parentheses and may contain anything.
            let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
            !state.is_some_and(|rest| rest.starts_with(['Z', 'X', 'x']))
        }
    }
}

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        use std::time::Duration;

        use nix::time::clock_getcpuclockid;

        /// Returns the CPU time of a process, without its children; that of a process that has ended is not known.
        pub fn cpu_time(process: i32) -> Option<Duration> {
            let clock = clock_getcpuclockid(Pid::from_raw(process)).ok()?;
            clock.now().ok().map(Duration::from)
        }

        /// Returns the number of context switches of the first thread of a process (`proc_pid_status(5)`), if that can be read.
        pub fn context_switches(process: i32) -> Option<u64> {
            let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
            let of = |name: &str| -> Option<u64> {
                let mut lines = status.lines();
                lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
            };
            Some(of("voluntary_ctxt_switches:")? + of("nonvoluntary_ctxt_switches:")?)
        }

        /// Returns the number of processes and threads that were made since the machine was started (proc_stat(5),
        /// `processes`), if that can be read.
        pub fn forks() -> Option<u64> {
            let stat = std::fs::read_to_string("/proc/stat").ok()?;
            let mut lines = stat.lines();
            lines.find_map(|line| line.strip_prefix("processes ")?.parse().ok())
        }
    } else {
        /// Returns `None`: no counters are attached to processes here.
        pub fn cpu_time(_: i32) -> Option<std::time::Duration> {
            None
        }

        /// Returns `None`, likewise.
        pub fn context_switches(_: i32) -> Option<u64> {
            None
        }

        /// Returns `None`, likewise.
        pub fn forks() -> Option<u64> {
            None
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn zombies_and_the_gone_are_dead() {
        let mut child = Command::new("sleep").arg("60").spawn().expect("sleep");
        let id = i32::try_from(child.id()).expect("a pid");
        assert!(any_alive(&[Target::Process(id)]));
        child.kill().expect("it is ours");
        // It becomes a zombie in its own time; it cannot go away before it is waited for.
        while any_alive(&[Target::Thread(id)]) {
            std::thread::yield_now();
        }
        assert!(std::path::Path::new(&format!("/proc/{id}")).exists());
        child.wait().expect("it has ended");
        assert!(!any_alive(&[Target::Process(id)]));
        assert!(any_alive(&[Target::Process(id), Target::AllCpus]));
    }
}
