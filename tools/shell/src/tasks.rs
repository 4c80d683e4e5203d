//! Processes, threads and files of this system: which tasks run, and how many files may be open.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use quipu::Target;

/// Raises the limit of open files as far as this process may (getrlimit(2), `RLIMIT_NOFILE`): each
/// event takes a file on each CPU or thread. Where that is refused, opening an event beyond the limit
/// fails with the reason.
pub fn raise_open_file_limit() {
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Returns true if any of these processes and threads runs. A target that is not a task always does. Only Linux
/// shows which run; elsewhere running tasks cannot be targets.
pub fn any_alive(targets: &[Target]) -> bool {
    targets.iter().any(|target| match target {
        Target::Process(id) | Target::Thread(id) => cfg!(not(target_os = "linux")) || is_alive(*id),
        _ => true,
    })
}

/// Returns false for a zombie too: it has ended, although it still has its entry (proc_pid_stat(5), `state`).
fn is_alive(id: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
        return false;
    };
    // The name before the state is in parentheses and may contain anything.
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    !state.is_some_and(|rest| rest.starts_with(['Z', 'X', 'x']))
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
