//! Converts the errno of a driver into an error with a remedy, alike for every driver.
//!
//! Linux `arch/x86/kernel/msr.c`; FreeBSD `sys/dev/cpuctl/cpuctl.c` and DragonFly
//! `sys/dev/misc/cpuctl/cpuctl.c`. The error numbers used have the same values on all of them.

use libc::{EACCES, EFAULT, EIO, EMFILE, ENFILE, ENODEV, ENOENT, ENXIO, EPERM};
use quipu_hal::{Error, ErrorKind};

/// The driver that refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KernelDriver {
    /// msr(4) of Linux.
    Msr,
    /// cpuctl(4) of FreeBSD and DragonFly.
    #[cfg_attr(
        not(any(target_os = "freebsd", target_os = "dragonfly", test)),
        expect(dead_code, reason = "made on those systems, tested everywhere")
    )]
    Cpuctl,
}

/// The operation it refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Open,
    Read(u32),
    Write(u32),
}

/// The settings of the system that decide about permission.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Settings {
    /// True for the superuser.
    pub(crate) root: bool,
    /// Linux: the word in brackets in `/sys/kernel/security/lockdown`.
    pub(crate) lockdown: Option<String>,
    /// Linux: `/sys/module/msr/parameters/allow_writes`.
    pub(crate) allow_writes: Option<String>,
    /// BSD: `kern.securelevel`.
    pub(crate) securelevel: Option<i32>,
}

/// The remedy for registers that a hypervisor hides.
const HIDDEN: &str =
    "in a virtual machine: count on the host, or have the hypervisor pass its counters on";

impl KernelDriver {
    fn node(self, cpu: u32) -> String {
        match self {
            Self::Msr => format!("/dev/cpu/{cpu}/msr"),
            Self::Cpuctl => format!("/dev/cpuctl{cpu}"),
        }
    }

    /// Returns the errno that reports a fault of the instruction.
    const fn fault(self) -> i32 {
        match self {
            Self::Msr => EIO,
            Self::Cpuctl => EFAULT,
        }
    }

    /// Returns the error for a missing device.
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

    /// Returns the error for an errno.
    pub(crate) fn error(
        self,
        cpu: u32,
        operation: Operation,
        errno: i32,
        settings: impl FnOnce() -> Settings,
    ) -> Error {
        let attempted = match operation {
            Operation::Open => format!("open {}", self.node(cpu)),
            Operation::Read(address) => format!("read register {address:#x} of CPU {cpu}"),
            Operation::Write(address) => format!("write register {address:#x} of CPU {cpu}"),
        };
        let error = |kind| Error::new(kind, attempted).with_errno(errno);
        match (operation, errno) {
            (_, ENXIO) | (Operation::Open, ENOENT) => error(ErrorKind::NoSuchTarget)
                .with_reason(format!("CPU {cpu} is absent or offline"))
                .with_hint(match self {
                    Self::Msr => "/sys/devices/system/cpu/online lists the CPUs there are",
                    Self::Cpuctl => "sysctl hw.ncpu says how many CPUs there are",
                }),
            (Operation::Open, EIO | ENODEV) => error(ErrorKind::NoSuchDevice)
                .with_reason("this CPU has no model-specific registers"),
            (Operation::Open, EMFILE | ENFILE) => error(ErrorKind::Os)
                .with_reason("each CPU takes two open files")
                .with_hint("raise the limit on open files (ulimit -n)"),
            (_, EPERM | EACCES) => {
                let (reason, hint) = self.permission(operation, &settings());
                error(ErrorKind::NoPermission)
                    .with_reason(reason)
                    .with_hint(hint)
            }
            (Operation::Read(_), e) if e == self.fault() => error(ErrorKind::UnsupportedFeature)
                .with_reason("the CPU has no such register, or a hypervisor hides it")
                .with_hint(HIDDEN),
            (Operation::Write(_), e) if e == self.fault() => error(ErrorKind::UnsupportedFeature)
                .with_reason(
                    "the CPU has no such register or does not take this value, or a hypervisor hides it",
                )
                .with_hint(HIDDEN),
            _ => error(ErrorKind::Os),
        }
    }

    fn permission(self, operation: Operation, settings: &Settings) -> (&'static str, &'static str) {
        let writing = matches!(operation, Operation::Write(_));
        let locked = settings.lockdown.as_deref();
        match self {
            Self::Msr if writing && locked.is_some_and(|mode| mode != "none") => (
                "the kernel is locked down (kernel_lockdown(7)) and does not allow writing registers",
                "boot without lockdown, which usually means without secure boot",
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
                "kern.securelevel is above 0, which forbids writing registers",
                "boot with a securelevel of 0 or below",
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

    fn refused(
        driver: KernelDriver,
        operation: Operation,
        errno: i32,
        settings: &Settings,
    ) -> Error {
        driver.error(3, operation, errno, || settings.clone())
    }

    #[test]
    fn what_was_refused_is_named() {
        let says = |driver, operation| {
            let refused = refused(driver, operation, EPERM, &Settings::default());
            refused.attempted().to_owned()
        };
        let open = Operation::Open;
        assert_eq!(says(KernelDriver::Msr, open), "open /dev/cpu/3/msr");
        assert_eq!(says(KernelDriver::Cpuctl, open), "open /dev/cpuctl3");
        let read = says(KernelDriver::Msr, Operation::Read(0x186));
        assert_eq!(read, "read register 0x186 of CPU 3");
        let write = says(KernelDriver::Cpuctl, Operation::Write(0xc1));
        assert_eq!(write, "write register 0xc1 of CPU 3");
    }

    #[test]
    fn both_drivers_refusals_mean_the_same() {
        let plain = Settings::default();
        for driver in [KernelDriver::Msr, KernelDriver::Cpuctl] {
            let kind = |operation, errno| refused(driver, operation, errno, &plain).kind();
            assert_eq!(kind(Operation::Open, EACCES), ErrorKind::NoPermission);
            assert_eq!(kind(Operation::Open, EPERM), ErrorKind::NoPermission);
            assert_eq!(kind(Operation::Write(1), EPERM), ErrorKind::NoPermission);
            assert_eq!(kind(Operation::Open, ENXIO), ErrorKind::NoSuchTarget);
            assert_eq!(kind(Operation::Read(1), ENXIO), ErrorKind::NoSuchTarget);
            assert_eq!(kind(Operation::Open, EMFILE), ErrorKind::Os);
            for operation in [Operation::Read(1), Operation::Write(1)] {
                assert_eq!(
                    kind(operation, driver.fault()),
                    ErrorKind::UnsupportedFeature
                );
            }
            for (operation, errno) in [
                (Operation::Open, EACCES),
                (Operation::Open, ENXIO),
                (Operation::Open, EMFILE),
                (Operation::Write(1), EPERM),
                (Operation::Write(1), driver.fault()),
            ] {
                let error = refused(driver, operation, errno, &plain);
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
        let kind = |driver, errno| refused(driver, Operation::Read(1), errno, &plain).kind();
        assert_eq!(kind(KernelDriver::Msr, EFAULT), ErrorKind::Os);
        assert_eq!(kind(KernelDriver::Cpuctl, EIO), ErrorKind::Os);
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
        let says = |driver, operation, settings| {
            let text = format!("{:#}", refused(driver, operation, EPERM, settings));
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
        let write = Operation::Write(0x186);
        assert_eq!(says(KernelDriver::Msr, write, &off), [1, 0, 0, 0, 0]);
        assert_eq!(says(KernelDriver::Msr, write, &locked), [0, 1, 0, 0, 0]);
        assert_eq!(says(KernelDriver::Msr, write, &root), [0, 0, 0, 1, 0]);
        assert_eq!(
            says(KernelDriver::Msr, Operation::Open, &off),
            [0, 0, 0, 1, 0]
        );
        assert_eq!(says(KernelDriver::Cpuctl, write, &secure), [0, 0, 1, 0, 0]);
        assert_eq!(says(KernelDriver::Cpuctl, write, &root), [0, 0, 0, 0, 1]);
    }
}
