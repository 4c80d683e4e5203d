//! Whether the tasks that are measured still run.

use quipu::Target;

/// Whether any of these processes and threads runs. A target that is no task always does.
pub(crate) fn any_alive(targets: &[Target]) -> bool {
    targets.iter().any(|target| match target {
        Target::Process(id) | Target::Thread(id) => is_alive(*id),
        _ => true,
    })
}

/// A zombie has ended, although it still has its entry (proc_pid_stat(5), `state`).
fn is_alive(id: i32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{id}/stat")) else {
        return false;
    };
    // The name before the state is in parentheses and may contain anything.
    let state = stat.rsplit_once(')').map(|(_, rest)| rest.trim_start());
    !state.is_some_and(|rest| rest.starts_with(['Z', 'X', 'x']))
}

#[cfg(test)]
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
