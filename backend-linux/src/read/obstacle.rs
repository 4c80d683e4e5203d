//! The obstacles to reading counters in user space on this machine.

use std::path::Path;

use quipu_hal::{Error, ErrorKind};

use crate::machine::kernel_file;
use crate::machine::sysfs::SysfsPmus;
use crate::user_page::PageCapabilities;
use crate::user_page::registers::CpuRegisters;

/// The setting that lets user mode read the counters of 64-bit ARM
/// (`Documentation/admin-guide/sysctl/kernel.rst`).
const ARM_SETTING: &str = "/proc/sys/kernel/perf_user_access";

/// The reason why the counters of a group cannot be read in user space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Obstacle {
    /// The architecture has no such registers, or this crate does not know them.
    Architecture,
    /// The machine's setting forbids it.
    Setting,
    /// The process may not read the time stamp counter (prctl(2), `PR_SET_TSC`).
    NoTimeStamps,
    /// A forked process could not be distinguished from its parent.
    NoMarkOfForks,
    /// The kernel refused to map the page, with this errno.
    Mapping(i32),
    /// The kernel is one of 3.4 to 3.11, whose capability bits mean two things.
    AmbiguousCapabilities,
    /// The counter may not be read.
    NotReadable,
    /// The backend makes system calls only.
    SwitchedOff,
    /// The group counts more than the calling thread, or is inherited.
    Target,
    /// The kernel itself counts a member, in no register.
    NoRegister,
    /// A member sends signals, which takes a mapping of more than the page.
    Overflows,
}

/// Checks what every counter needs on this machine.
pub(super) fn on_this_machine() -> Result<(), Obstacle> {
    if !CpuRegisters::KNOWN {
        return Err(Obstacle::Architecture);
    }
    if cfg!(target_arch = "aarch64") {
        let setting = kernel_file::read(Path::new(ARM_SETTING)).unwrap_or_default();
        if setting != "1" {
            return Err(Obstacle::Setting);
        }
    }
    Ok(())
}

/// Checks what the calling thread needs: PR_SET_TSC of prctl(2) is of a thread, and may come at any time.
pub(crate) fn on_this_thread() -> Result<(), Obstacle> {
    match crate::sys::has_time_stamps() {
        true => Ok(()),
        false => Err(Obstacle::NoTimeStamps),
    }
}

/// Checks what one counter needs.
pub(super) fn of_page(capabilities: PageCapabilities) -> Result<(), Obstacle> {
    if !capabilities.contains(PageCapabilities::BIT0_IS_DEPRECATED) {
        Err(Obstacle::AmbiguousCapabilities)
    } else if !capabilities.contains(PageCapabilities::USER_RDPMC) {
        Err(Obstacle::NotReadable)
    } else {
        Ok(())
    }
}

/// The attempt of an [`Obstacle`]'s error.
pub(crate) const ATTEMPTED: &str = "read counters without a system call";

/// Returns the error for an obstacle, with what can be done about it.
pub(crate) fn explain(obstacle: Obstacle) -> Error {
    let error = Error::new(ErrorKind::UnsupportedFeature, ATTEMPTED);
    let reason = match obstacle {
        Obstacle::Architecture => "counters of this architecture cannot be read in user space",
        Obstacle::Setting => match kernel_file::read(Path::new(ARM_SETTING)) {
            Ok(setting) => {
                return error
                    .with_reason(format!("kernel.perf_user_access is {setting}"))
                    .with_hint("as root: sysctl kernel.perf_user_access=1");
            }
            Err(_) => "the kernel has no setting for it (before Linux 5.17)",
        },
        Obstacle::NoTimeStamps => "this process has disabled its time stamp counter (PR_SET_TSC)",
        Obstacle::NoMarkOfForks => {
            "the kernel cannot clear a page in forked processes (before Linux 4.14)"
        }
        Obstacle::Mapping(errno @ libc::EPERM) => {
            return error
                .with_errno(errno)
                .with_reason("the user's limit of locked memory is reached")
                .with_hint("raise kernel.perf_event_mlock_kb or ulimit -l");
        }
        Obstacle::Mapping(errno) => {
            return error
                .with_errno(errno)
                .with_reason("the kernel did not map the counter's page");
        }
        Obstacle::AmbiguousCapabilities => {
            "kernels before Linux 3.12 do not report reliably what they allow"
        }
        Obstacle::NotReadable => match rdpmc_setting() {
            Some((path, value)) if value == "0" => {
                return error
                    .with_reason(format!("{path} is 0"))
                    .with_hint(format!("as root: echo 1 >{path}"));
            }
            _ => "the kernel does not allow it for this counter",
        },
        Obstacle::SwitchedOff => "the backend was asked not to",
        Obstacle::Target => {
            "only a group of the calling thread alone, which no child inherits, has them"
        }
        Obstacle::NoRegister => "a member is counted by the kernel, not in a register",
        Obstacle::Overflows => "a member sends signals for its overflows",
    };
    error.with_reason(reason)
}

/// The setting of a core PMU of x86: its file, and what it says.
fn rdpmc_setting() -> Option<(String, String)> {
    SysfsPmus::new().core_pmus().iter().find_map(|pmu| {
        let path = format!("/sys/bus/event_source/devices/{}/rdpmc", pmu.name);
        let value = kernel_file::read(Path::new(&path)).ok()?;
        Some((path, value))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_lack_of_a_page_has_its_obstacle() {
        use PageCapabilities as C;
        for (bits, expected) in [
            (C::empty(), Err(Obstacle::AmbiguousCapabilities)),
            // What 3.4 to 3.11 set for either ability.
            (C::BIT0, Err(Obstacle::AmbiguousCapabilities)),
            (C::BIT0_IS_DEPRECATED, Err(Obstacle::NotReadable)),
            (C::VALUE, Ok(())),
            (C::READABLE, Ok(())),
            (C::all() - C::BIT0, Ok(())),
        ] {
            assert_eq!(of_page(bits), expected, "{bits:?}");
        }
    }

    #[test]
    fn every_obstacle_is_explained() {
        for obstacle in [
            Obstacle::Architecture,
            Obstacle::Setting,
            Obstacle::NoTimeStamps,
            Obstacle::NoMarkOfForks,
            Obstacle::Mapping(libc::EPERM),
            Obstacle::Mapping(libc::ENOMEM),
            Obstacle::AmbiguousCapabilities,
            Obstacle::NotReadable,
            Obstacle::SwitchedOff,
            Obstacle::Target,
            Obstacle::NoRegister,
            Obstacle::Overflows,
        ] {
            let error = explain(obstacle);
            assert_eq!(error.kind(), ErrorKind::UnsupportedFeature);
            assert!(error.reason().is_some(), "{obstacle:?}");
        }
    }
}
