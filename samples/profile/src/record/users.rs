//! The processes of a user.

use std::process;

use quipu::Target;
use quipu_shell::{Failure, processes};

/// Returns the processes that run as a user, by the name or the number of that, without this one.
///
/// # Errors
/// If there is no such user, or none of these processes.
pub(super) fn processes_of(user: &str) -> Result<Vec<Target>, Failure> {
    let id = number_of(user)?;
    let own = process::id().cast_signed();
    let pids = processes::ids().map_err(|e| Failure::new(format_args!("-u: /proc: {e}")))?;
    let targets: Vec<_> = pids
        .into_iter()
        .filter(|pid| processes::user_of(*pid) == Some(id) && *pid != own)
        .map(Target::Process)
        .collect();
    if targets.is_empty() {
        return Err(Failure::new(format_args!(
            "-u {user}: that user has no process here"
        )));
    }
    Ok(targets)
}

fn number_of(user: &str) -> Result<u32, Failure> {
    processes::user_number(user).ok_or_else(|| {
        Failure::usage(format_args!(
            "-u {user}: there is no such user; id -u NAME prints the number of one"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_named_or_numbered() {
        assert_eq!(number_of("0").expect("a number"), 0);
        assert_eq!(number_of("root").expect("everywhere"), 0);
        let failure = number_of("no such user").expect_err("there is none");
        assert!(failure.to_string().contains("no such user"), "{failure}");
    }

    #[test]
    fn this_process_is_none_of_them() {
        // The parent, cargo or a shell, is of the same user.
        let own = nix::unistd::geteuid().to_string();
        let targets = processes_of(&own).expect("the parent");
        let parent = Target::Process(nix::unistd::getppid().as_raw());
        let this = Target::Process(process::id().cast_signed());
        assert!(targets.contains(&parent) && !targets.contains(&this));
    }
}
