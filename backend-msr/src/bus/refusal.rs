//! What a system's refusal means, alike for every driver, and what to do about it.
//!
//! Linux `arch/x86/kernel/msr.c`; FreeBSD `sys/dev/cpuctl/cpuctl.c` and DragonFly
//! `sys/dev/misc/cpuctl/cpuctl.c`. The error numbers used have the same values on all of them.

use libc::{EACCES, EFAULT, EIO, EMFILE, ENFILE, ENODEV, ENOENT, ENXIO, EPERM};
use quipu_hal::{Error, ErrorKind};

/// The driver that refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Driver {
    /// msr(4) of Linux.
    Msr,
    /// cpuctl(4) of FreeBSD and DragonFly.
    #[cfg_attr(
        not(any(target_os = "freebsd", target_os = "dragonfly", test)),
        expect(dead_code, reason = "made on those systems, tested everywhere")
    )]
    Cpuctl,
}

/// What it refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    Open,
    Read(u32),
    Write(u32),
}

/// What the system's settings are, as far as they decide about permission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    /// Whether this is the superuser.
    pub(crate) root: bool,
    /// Linux: the word in brackets in `/sys/kernel/security/lockdown`.
    pub(crate) lockdown: Option<String>,
    /// Linux: `/sys/module/msr/parameters/allow_writes`.
    pub(crate) allow_writes: Option<String>,
    /// BSD: `kern.securelevel`.
    pub(crate) securelevel: Option<i32>,
}

/// What to do where a hypervisor hides registers.
const HIDDEN: &str =
    "in a virtual machine: count on the host, or have the hypervisor pass its counters on";

impl Driver {
    fn node(self, cpu: u32) -> String {
        match self {
            Self::Msr => format!("/dev/cpu/{cpu}/msr"),
            Self::Cpuctl => format!("/dev/cpuctl{cpu}"),
        }
    }

    /// The error number by which a fault of the instruction is told.
    const fn fault(self) -> i32 {
        match self {
            Self::Msr => EIO,
            Self::Cpuctl => EFAULT,
        }
    }

    /// The error of having no device at all.
    pub(crate) fn missing(self) -> Error {
        let (node, module, load) = match self {
            Self::Msr => ("/dev/cpu/N/msr", "msr", "modprobe msr"),
            Self::Cpuctl => ("/dev/cpuctl0", "cpuctl", "kldload cpuctl"),
        };
        Error::new(ErrorKind::NoSuchDevice, "reach model-specific registers")
            .with_errno(ENOENT)
            .with_reason(format!(
                "the driver {module} is not loaded: there is no {node}"
            ))
            .with_hint(format!(
                "as root: {load}; in a container, the device must be passed in"
            ))
    }

    /// What an error number means.
    pub(crate) fn refusal(
        self,
        cpu: u32,
        step: Step,
        errno: i32,
        settings: impl FnOnce() -> Settings,
    ) -> Error {
        let attempted = match step {
            Step::Open => format!("open {}", self.node(cpu)),
            Step::Read(address) => format!("read register {address:#x} of CPU {cpu}"),
            Step::Write(address) => format!("write register {address:#x} of CPU {cpu}"),
        };
        let error = |kind| Error::new(kind, attempted).with_errno(errno);
        match (step, errno) {
            (_, ENXIO) | (Step::Open, ENOENT) => error(ErrorKind::NoSuchTarget)
                .with_reason(format!("CPU {cpu} is absent or offline"))
                .with_hint(match self {
                    Self::Msr => "/sys/devices/system/cpu/online lists the CPUs there are",
                    Self::Cpuctl => "sysctl hw.ncpu says how many CPUs there are",
                }),
            (Step::Open, EIO | ENODEV) => error(ErrorKind::NoSuchDevice)
                .with_reason("this CPU has no model-specific registers"),
            (Step::Open, EMFILE | ENFILE) => error(ErrorKind::Os)
                .with_reason("each CPU takes two open files")
                .with_hint("raise the limit on open files (ulimit -n)"),
            (_, EPERM | EACCES) => {
                let (reason, hint) = self.permission(step, &settings());
                error(ErrorKind::NoPermission)
                    .with_reason(reason)
                    .with_hint(hint)
            }
            (Step::Read(_), e) if e == self.fault() => error(ErrorKind::UnsupportedFeature)
                .with_reason("the CPU has no such register, or a hypervisor hides it")
                .with_hint(HIDDEN),
            (Step::Write(_), e) if e == self.fault() => error(ErrorKind::UnsupportedFeature)
                .with_reason(
                    "the CPU has no such register or does not take this value, or a hypervisor hides it",
                )
                .with_hint(HIDDEN),
            _ => error(ErrorKind::Os),
        }
    }

    fn permission(self, step: Step, settings: &Settings) -> (&'static str, &'static str) {
        let writing = matches!(step, Step::Write(_));
        let locked = settings.lockdown.as_deref();
        match self {
            Self::Msr if writing && locked.is_some_and(|mode| mode != "none") => (
                "the kernel is locked down (kernel_lockdown(7)) and lets nobody write registers",
                "start the machine without lockdown, which usually means without secure boot",
            ),
            Self::Msr if writing && settings.allow_writes.as_deref() == Some("off") => (
                "the msr driver was told to refuse all writes (msr.allow_writes=off)",
                "as root: echo on >/sys/module/msr/parameters/allow_writes",
            ),
            Self::Msr if settings.root => (
                "the process lacks CAP_SYS_RAWIO in the system's own user namespace",
                "run it outside of containers, or give the container CAP_SYS_RAWIO and the device",
            ),
            Self::Msr => (
                "registers are for root with CAP_SYS_RAWIO only",
                "run it as root",
            ),
            Self::Cpuctl if settings.securelevel.is_some_and(|level| level > 0) => (
                "kern.securelevel is above 0, at which nobody may write registers",
                "start the machine with a securelevel of 0 or below",
            ),
            Self::Cpuctl if settings.root => (
                "the process lacks the privilege to write registers, as in a jail",
                "run it outside of jails",
            ),
            Self::Cpuctl => ("registers are for root only", "run it as root"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(driver: Driver, step: Step, errno: i32, settings: &Settings) -> Error {
        driver.refusal(3, step, errno, || settings.clone())
    }

    #[test]
    fn both_drivers_refusals_mean_the_same() {
        let plain = Settings::default();
        for driver in [Driver::Msr, Driver::Cpuctl] {
            let kind = |step, errno| refused(driver, step, errno, &plain).kind();
            assert_eq!(kind(Step::Open, EACCES), ErrorKind::NoPermission);
            assert_eq!(kind(Step::Open, EPERM), ErrorKind::NoPermission);
            assert_eq!(kind(Step::Write(1), EPERM), ErrorKind::NoPermission);
            assert_eq!(kind(Step::Open, ENXIO), ErrorKind::NoSuchTarget);
            assert_eq!(kind(Step::Read(1), ENXIO), ErrorKind::NoSuchTarget);
            assert_eq!(kind(Step::Open, EMFILE), ErrorKind::Os);
            for step in [Step::Read(1), Step::Write(1)] {
                assert_eq!(kind(step, driver.fault()), ErrorKind::UnsupportedFeature);
            }
            for (step, errno) in [
                (Step::Open, EACCES),
                (Step::Open, ENXIO),
                (Step::Open, EMFILE),
                (Step::Write(1), EPERM),
                (Step::Write(1), driver.fault()),
            ] {
                let error = refused(driver, step, errno, &plain);
                assert!(
                    error.reason().is_some() && error.hint().is_some(),
                    "{error:#}"
                );
            }
            assert!(driver.missing().hint().is_some());
            assert_eq!(driver.missing().kind(), ErrorKind::NoSuchDevice);
        }
    }

    #[test]
    fn one_drivers_fault_is_not_the_others() {
        let plain = Settings::default();
        let kind = |driver, errno| refused(driver, Step::Read(1), errno, &plain).kind();
        assert_eq!(kind(Driver::Msr, EFAULT), ErrorKind::Os);
        assert_eq!(kind(Driver::Cpuctl, EIO), ErrorKind::Os);
    }

    #[test]
    fn a_refused_write_names_the_setting_that_refuses() {
        let root = Settings {
            root: true,
            ..Settings::default()
        };
        let off = Settings {
            allow_writes: Some("off".into()),
            lockdown: Some("none".into()),
            ..root.clone()
        };
        let locked = Settings {
            lockdown: Some("integrity".into()),
            ..off.clone()
        };
        let secure = Settings {
            securelevel: Some(1),
            ..root.clone()
        };
        let says = |driver, step, settings| {
            let text = format!("{:#}", refused(driver, step, EPERM, settings));
            [
                "allow_writes",
                "locked down",
                "securelevel",
                "CAP_SYS_RAWIO",
                "jail",
            ]
            .map(|word| text.contains(word))
            .map(u8::from)
        };
        let write = Step::Write(0x186);
        assert_eq!(says(Driver::Msr, write, &off), [1, 0, 0, 0, 0]);
        assert_eq!(says(Driver::Msr, write, &locked), [0, 1, 0, 0, 0]);
        assert_eq!(says(Driver::Msr, write, &root), [0, 0, 0, 1, 0]);
        assert_eq!(says(Driver::Msr, Step::Open, &off), [0, 0, 0, 1, 0]);
        assert_eq!(says(Driver::Cpuctl, write, &secure), [0, 0, 1, 0, 0]);
        assert_eq!(says(Driver::Cpuctl, write, &root), [0, 0, 0, 0, 1]);
    }
}
