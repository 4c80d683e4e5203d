//! Rights of the process: those of root are given up once counters are open.

use caps::{CapSet, Capability, CapsHashSet};
use nix::errno::Errno;
use nix::sys::prctl;
use nix::unistd::{Gid, Uid, User, setgid, setgroups, setuid};
use quipu_shell::Failure;

/// The user whom a process of root becomes.
const DEFAULT: &str = "nobody";

/// Makes a process of root that of another user with CAP_PERFMON alone, by which it opens counters of
/// instances that come later; for kernels before 5.8, CAP_SYS_ADMIN is what permits that.
///
/// # Errors
/// If there is no such user, or the kernel refuses.
pub(crate) fn drop_to(name: Option<&str>) -> Result<(), Failure> {
    if !Uid::effective().is_root() {
        return match name {
            Some(name) => Err(Failure::usage(format_args!(
                "--user {name}: only root can become another user; leave it out"
            ))),
            None => Ok(()),
        };
    }
    let name = name.unwrap_or(DEFAULT);
    if name == "root" {
        return Ok(());
    }
    let user = User::from_name(name).map_err(|e| cannot(name, &e))?;
    let Some(user) = user else {
        return Err(Failure::usage(format_args!(
            "there is no user {name}: name one with --user"
        )));
    };
    become_user(user.uid, user.gid).map_err(|e| cannot(name, &e))?;
    let kept = kept().map_err(|e| cannot(name, &e))?;
    for set in [CapSet::Effective, CapSet::Permitted] {
        caps::set(None, set, &kept).map_err(|e| cannot(name, &e))?;
    }
    prctl::set_no_new_privs().map_err(|e| cannot(name, &e))
}

/// Becomes a user, and keeps the capabilities that are permitted (capabilities(7)).
fn become_user(user: Uid, group: Gid) -> Result<(), Errno> {
    prctl::set_keepcaps(true)?;
    setgroups(&[])?;
    setgid(group)?;
    setuid(user)
}

/// Returns the capabilities to keep, of those that are there: a container may have none.
fn kept() -> Result<CapsHashSet, caps::errors::CapsError> {
    let permitted = caps::read(None, CapSet::Permitted)?;
    let wanted = [Capability::CAP_PERFMON, Capability::CAP_SYS_ADMIN];
    let first = wanted.into_iter().find(|cap| permitted.contains(cap));
    Ok(first.into_iter().collect())
}

fn cannot(name: &str, error: &dyn std::error::Error) -> Failure {
    Failure::new(format_args!("cannot go on as {name}: {error}"))
}
