//! Facts about a BSD: its release and CPUs by sysctl(8), and the device of its counters.

use std::path::Path;
use std::process::Command;

use nix::unistd::{AccessFlags, access};

use super::facts::{DeviceFacts, Facts, MachineFacts};

/// The nodes of the counters, pctr(4) and cpuctl(4), and the backends that use them.
const DEVICES: [(&str, &str, &str); 3] = [
    ("openbsd", "pctr", "/dev/pctr"),
    ("freebsd", "msr", "/dev/cpuctl0"),
    ("dragonfly", "msr", "/dev/cpuctl0"),
];
/// The number of CPUs that are online; FreeBSD and DragonFly have no name for those.
const ONLINE: [&str; 2] = ["hw.ncpuonline", "hw.ncpu"];

/// Returns the facts with what the system tells of the machine and the user.
pub(super) fn add(facts: Facts) -> Facts {
    let system = facts.machine.system;
    let of_this = DEVICES.iter().find(|(of, ..)| *of == system);
    let online = ONLINE.iter().find_map(|name| sysctl(name));
    Facts {
        machine: MachineFacts {
            kernel: sysctl("kern.osrelease"),
            cpu: sysctl("hw.model"),
            cpus_online: online.and_then(|number| number.parse().ok()),
            user_id: Some(nix::unistd::geteuid().as_raw()),
            ..facts.machine
        },
        device: of_this.map(|(_, backend, path)| device(backend, path)),
        ..facts
    }
}

/// Returns a value of the kernel's, if it has one of this name.
fn sysctl(name: &str) -> Option<String> {
    let run = |program: &str| Command::new(program).args(["-n", name]).output().ok();
    let output = run("/sbin/sysctl").or_else(|| run("sysctl"))?;
    let value = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    (output.status.success() && !value.is_empty()).then_some(value)
}

fn device(backend: &'static str, path: &'static str) -> DeviceFacts {
    let path = Path::new(path);
    let may = |how| access(path, how).is_ok();
    DeviceFacts {
        path: path.display().to_string(),
        backend,
        exists: path.exists(),
        readable: may(AccessFlags::R_OK),
        writable: may(AccessFlags::W_OK),
    }
}
