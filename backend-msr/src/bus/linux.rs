//! msr(4) of Linux: `/dev/cpu/N/msr`.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use quipu_hal::{Error, ErrorKind, Result};

use super::errors::{KernelDriver, Operation, Settings};
use super::files::CpuFiles;
use super::{LikelyOwner, MsrBus, cpuid, current_cpu};

/// The registers of the CPUs by way of the `msr` driver.
///
/// Reads and writes are at the offset that is the register's address, eight bytes each
/// (`arch/x86/kernel/msr.c`).
#[derive(Debug)]
pub struct LinuxMsr {
    files: CpuFiles,
}

impl LinuxMsr {
    /// Opens the CPUs of this machine.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) when the driver is not loaded,
    /// [`NoPermission`](ErrorKind::NoPermission) when it does not let this process in.
    pub fn open() -> Result<Self> {
        Self::open_in("/dev/cpu")
    }

    /// Returns the CPUs whose files are in a directory, each as `N/msr`: for device files elsewhere, and
    /// for plain files in their place.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(directory: impl AsRef<Path>) -> Result<Self> {
        let files = CpuFiles::new(KernelDriver::Msr, settings, nodes(directory.as_ref()))?;
        Ok(Self { files })
    }
}

/// Returns the CPUs that have a file, and those for which that is not known: opening it fails with the reason.
fn nodes(directory: &Path) -> Vec<(u32, PathBuf)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let node = |entry: fs::DirEntry| {
        let cpu = entry.file_name().to_str()?.parse().ok()?;
        Some((cpu, entry.path().join("msr")))
    };
    let nodes = entries.filter_map(node);
    nodes
        .filter(|(_, path)| path.try_exists().unwrap_or(true))
        .collect()
}

#[cold]
fn short(cpu: u32) -> Error {
    Error::new(ErrorKind::Os, format!("reach a register of CPU {cpu}"))
        .with_reason("the driver transferred less than the eight bytes of a register")
}

fn settings() -> Settings {
    let lockdown = fs::read_to_string("/sys/kernel/security/lockdown").ok();
    let chosen = |modes: String| Some(modes.split_once('[')?.1.split_once(']')?.0.to_owned());
    let allow = fs::read_to_string("/sys/module/msr/parameters/allow_writes").ok();
    Settings {
        root: nix::unistd::geteuid().is_root(),
        lockdown: lockdown.and_then(chosen),
        allow_writes: allow.map(|text| text.trim().to_owned()),
        securelevel: None,
    }
}

impl MsrBus for LinuxMsr {
    fn cpus(&self) -> &[u32] {
        self.files.cpus()
    }

    fn current_cpu(&self) -> Result<u32> {
        current_cpu()
    }

    fn read(&self, cpu: u32, address: u32) -> Result<u64> {
        let file = self.files.of(cpu)?;
        let mut bytes = [0; 8];
        // An unsigned offset: 0xc0010000 must not become a negative one.
        match file.read_at(&mut bytes, u64::from(address)) {
            Ok(8) => Ok(u64::from_le_bytes(bytes)),
            Ok(_) => Err(short(cpu)),
            Err(e) => Err(self.files.refused(cpu, Operation::Read(address), &e)),
        }
    }

    fn write(&self, cpu: u32, address: u32, value: u64) -> Result<()> {
        let file = self.files.of(cpu)?;
        match file.write_at(&value.to_le_bytes(), u64::from(address)) {
            Ok(8) => Ok(()),
            Ok(_) => Err(short(cpu)),
            Err(e) => Err(self.files.refused(cpu, Operation::Write(address), &e)),
        }
    }

    fn cpuid(&self, leaf: u32, subleaf: u32) -> Result<[u32; 4]> {
        cpuid(leaf, subleaf)
    }

    fn likely_owner(&self) -> LikelyOwner {
        let watchdog = fs::read_to_string("/proc/sys/kernel/nmi_watchdog");
        if watchdog.is_ok_and(|on| on.trim() == "1") {
            return LikelyOwner::new(
                "the kernel's NMI watchdog",
                "as root: sysctl kernel.nmi_watchdog=0",
            );
        }
        LikelyOwner::new(
            "perf, another tool on these registers, or the hypervisor",
            "end that tool, or count with perf_event instead",
        )
    }

    fn boot(&self) -> Option<String> {
        let id = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
        Some(id.trim().to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    fn cpus(numbers: &[u32]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for cpu in numbers {
            let cpu = directory.path().join(cpu.to_string());
            fs::create_dir(&cpu).unwrap();
            File::create(cpu.join("msr")).unwrap();
        }
        fs::create_dir(directory.path().join("microcode")).unwrap();
        fs::create_dir(directory.path().join("7")).unwrap();
        directory
    }

    #[test]
    fn a_register_is_eight_bytes_at_its_address() {
        let directory = cpus(&[0, 2, 10]);
        let bus = LinuxMsr::open_in(directory.path()).unwrap();
        assert_eq!(bus.cpus(), [0, 2, 10]);
        bus.write(2, 0xc001_0200, 0x1122_3344_5566_7788).unwrap();
        let file = File::open(directory.path().join("2/msr")).unwrap();
        let mut bytes = [0; 8];
        file.read_exact_at(&mut bytes, 0xc001_0200).unwrap();
        assert_eq!(bytes, [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11]);
        assert_eq!(bus.read(2, 0xc001_0200).unwrap(), 0x1122_3344_5566_7788);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn leaves_are_those_of_this_cpu() {
        let directory = cpus(&[0]);
        let bus = LinuxMsr::open_in(directory.path()).unwrap();
        let [most, ebx, ecx, edx] = bus.cpuid(0, 0).unwrap();
        let vendor = [ebx, edx, ecx].map(u32::to_le_bytes).concat();
        let own = fs::read_to_string("/proc/cpuinfo").unwrap();
        let own = own
            .lines()
            .find_map(|line| line.strip_prefix("vendor_id\t: "));
        assert_eq!(Some(str::from_utf8(&vendor).unwrap()), own);
        assert_ne!(bus.cpuid(1, 0).unwrap(), [0; 4]);
        assert_ne!(bus.cpuid(0x8000_0000, 0).unwrap()[0], 0);
        assert_eq!(bus.cpuid(most + 1, 0).unwrap(), [0; 4]);
        assert_eq!(bus.boot().map(|id| id.len()), Some(36));
        assert_eq!(settings().root, nix::unistd::geteuid().is_root());
        let allowed = nix::sched::sched_getaffinity(nix::unistd::Pid::from_raw(0)).unwrap();
        assert!(allowed.is_set(bus.current_cpu().unwrap() as usize).unwrap());
    }

    #[test]
    fn what_is_not_there_is_refused() {
        let directory = cpus(&[1]);
        let bus = LinuxMsr::open_in(directory.path()).unwrap();
        for cpu in [0, 2, u32::MAX] {
            assert_eq!(
                bus.read(cpu, 0x10).unwrap_err().kind(),
                ErrorKind::NoSuchTarget
            );
        }
        assert!(
            bus.read(1, 0x10)
                .unwrap_err()
                .to_string()
                .contains("less than")
        );
        let empty = tempfile::tempdir().unwrap();
        let missing = LinuxMsr::open_in(empty.path()).unwrap_err();
        assert_eq!(missing.kind(), ErrorKind::NoSuchDevice);
        assert!(
            missing
                .hint()
                .is_some_and(|hint| hint.contains("modprobe msr"))
        );
    }

    #[test]
    fn a_cpu_that_cannot_be_looked_at_is_not_left_out() {
        let directory = cpus(&[0]);
        // A symbolic link to itself cannot be followed (ELOOP).
        let link = directory.path().join("7/msr");
        std::os::unix::fs::symlink(&link, &link).unwrap();
        let bus = LinuxMsr::open_in(directory.path()).unwrap();
        assert_eq!(bus.cpus(), [0, 7]);
        assert_eq!(bus.read(7, 0x10).unwrap_err().errno(), Some(libc::ELOOP));
    }
}
