//! The device itself.

use std::ffi::{CStr, c_int, c_ulong};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;

use quipu_hal::Result;

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

/// An integer of sysctl(3).
fn setting(name: &CStr) -> Option<c_int> {
    let mut value: c_int = 0;
    let mut size = size_of::<c_int>();
    // SAFETY: `name` ends with a zero byte, `value` has room for `size` bytes and any bytes are a
    // valid integer; nothing is set.
    let done = unsafe {
        libc::sysctlbyname(
            name.as_ptr(),
            std::ptr::from_mut(&mut value).cast(),
            &mut size,
            std::ptr::null_mut(),
            0,
        )
    };
    (done == 0 && size == size_of::<c_int>()).then_some(value)
}

fn settings() -> Settings {
    Settings {
        root: rustix::process::geteuid().is_root(),
        securelevel: setting(c"kern.securelevel"),
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
