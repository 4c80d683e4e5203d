//! The device itself.

use std::ffi::c_ulong;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;

use quipu_hal::Result;
use rustix::thread::{CpuSet, sched_setaffinity};

use super::{MsrArguments, READ, WRITE};
use crate::bus::errors::{KernelDriver, Operation, Settings};
use crate::bus::files::CpuFiles;
use crate::bus::{self, LikelyOwner, MsrBus};

/// The registers of the CPUs by way of the `cpuctl` driver, which moves to the CPU for each access.
#[derive(Debug)]
pub struct Cpuctl {
    files: CpuFiles,
}

impl Cpuctl {
    /// The CPUs of this machine.
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

    fn access(
        &self,
        cpu: u32,
        operation: Operation,
        request: c_ulong,
        data: &mut MsrArguments,
    ) -> Result<()> {
        let file = self.files.of(cpu)?;
        ioctl(file, request, data).map_err(|e| self.files.refused(cpu, operation, &e))
    }
}

fn ioctl(file: &File, request: c_ulong, arguments: &mut MsrArguments) -> io::Result<()> {
    // SAFETY: the descriptor is open for as long as `file` is borrowed. `request` is one of the two
    // that read and write a `cpuctl_msr_args_t`, which is what `arguments` points to.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), request, std::ptr::from_mut(arguments)) };
    if done == 0 {
        Ok(())
    } else {
        Err(io::Error::last_os_error())
    }
}

/// Returns an integer of sysctl(8), which is asked for the reason of an error only.
fn setting(name: &str) -> Option<i32> {
    let output = Command::new("/sbin/sysctl")
        .args(["-n", name])
        .output()
        .ok()?;
    String::from_utf8_lossy(&output.stdout).trim().parse().ok()
}

fn settings() -> Settings {
    Settings {
        root: rustix::process::geteuid().is_root(),
        securelevel: setting("kern.securelevel"),
        ..Settings::default()
    }
}

/// Gives the calling thread the lowest of the real-time priorities (rtprio_thread(2)), above those of any thread that
/// shares its CPU's time. Without the privilege it stays what it is, and waits longer at times.
#[cfg(target_os = "freebsd")]
fn preempt_others() {
    let mut lowest = libc::rtprio {
        type_: libc::RTP_PRIO_REALTIME,
        prio: libc::RTP_PRIO_MAX,
    };
    // SAFETY: 0 is the calling thread; the struct is read for as long as the call takes.
    let _ = unsafe { libc::rtprio_thread(libc::RTP_SET, 0, &raw mut lowest) };
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
        if self.files.cpus().len() == 1 || cpu as usize >= CpuSet::MAX_CPU {
            return false;
        }
        only.set(cpu as usize);
        let pinned = sched_setaffinity(None, &only).is_ok();
        #[cfg(target_os = "freebsd")]
        if pinned {
            preempt_others();
        }
        pinned
    }

    fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        let mut arguments = MsrArguments::new(address, 0);
        self.access(cpu, Operation::Read(address), READ, &mut arguments)?;
        Ok(arguments.data)
    }

    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        let mut arguments = MsrArguments::new(address, value);
        self.access(cpu, Operation::Write(address), WRITE, &mut arguments)
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
