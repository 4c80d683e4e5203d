//! The device itself.

use std::fs;
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use quipu_hal::Result;

use super::{MsrArguments, READ, WRITE};
use crate::bus::errors::{KernelDriver, Operation, Settings};
use crate::bus::files::CpuFiles;
use crate::bus::{self, LikelyOwner, MsrBus};

nix::ioctl_readwrite_bad!(
    /// Reads a register.
    read_msr,
    READ,
    MsrArguments
);
nix::ioctl_readwrite_bad!(
    /// Writes a register.
    write_msr,
    WRITE,
    MsrArguments
);

/// The registers of the CPUs by way of the `cpuctl` driver, which moves to the CPU for each access.
#[derive(Debug)]
pub struct Cpuctl {
    files: CpuFiles,
}

impl Cpuctl {
    /// Opens the CPUs of this machine.
    ///
    /// # Errors
    /// [`NoSuchDevice`](quipu_hal::ErrorKind::NoSuchDevice) when the driver is not loaded,
    /// [`NoPermission`](quipu_hal::ErrorKind::NoPermission) when it does not let this process in.
    pub fn open() -> Result<Self> {
        let entries = fs::read_dir("/dev").into_iter().flatten().flatten();
        let nodes = entries.filter_map(|entry| {
            let name = entry.file_name();
            let cpu = name.to_str()?.strip_prefix("cpuctl")?.parse().ok()?;
            Some((cpu, entry.path()))
        });
        let files = CpuFiles::new(KernelDriver::Cpuctl, settings, nodes)?;
        Ok(Self { files })
    }
}

fn settings() -> Settings {
    Settings {
        root: nix::unistd::geteuid().is_root(),
        securelevel: crate::sys::setting(c"kern.securelevel"),
        ..Settings::default()
    }
}

impl MsrBus for Cpuctl {
    fn cpus(&self) -> &[u32] {
        self.files.cpus()
    }

    fn current_cpu(&self) -> Result<u32> {
        bus::current_cpu()
    }

    /// The driver binds the calling thread to the CPU (`cpuctl_do_msr`, sched_bind(9)). A timeshare thread that
    /// comes from another CPU waits there for its time slice, 90 ms beside a busy thread; one of real-time priority that
    /// wakes up there does not.
    fn pin(&self, cpu: u32) -> bool {
        let mut only = CpuSet::new();
        if self.files.cpus().len() == 1 || only.set(cpu as usize).is_err() {
            return false;
        }
        let pinned = sched_setaffinity(Pid::from_raw(0), &only).is_ok();
        #[cfg(target_os = "freebsd")]
        if pinned {
            crate::sys::preempt_others();
        }
        pinned
    }

    fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        let mut arguments = MsrArguments::new(address, 0);
        let fd = self.files.of(cpu)?.as_raw_fd();
        // SAFETY: `arguments` is what the request reads and writes, and the descriptor is open as long as `self`.
        let done = unsafe { read_msr(fd, &raw mut arguments) };
        let refused = |e: Errno| self.files.refused(cpu, Operation::Read(address), &e.into());
        done.map(|_| arguments.data).map_err(refused)
    }

    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        let mut arguments = MsrArguments::new(address, value);
        let fd = self.files.of(cpu)?.as_raw_fd();
        // SAFETY: as of the other request; this one writes the register.
        let done = unsafe { write_msr(fd, &raw mut arguments) };
        let refused = |e: Errno| {
            self.files
                .refused(cpu, Operation::Write(address), &e.into())
        };
        done.map(drop).map_err(refused)
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
        bus::cpuid(leaf, subleaf)
    }

    fn likely_owner(&self) -> LikelyOwner {
        LikelyOwner::new(
            "hwpmc(4), another tool on these registers, or the hypervisor",
            "end what counts with pmcstat, or as root: kldunload hwpmc",
        )
    }
}
