//! perf(1), with which tests compare where it starts.

use std::process::Command;
use std::sync::LazyLock;

/// Returns a command of perf; `None` if it is not installed, or is a script that finds no perf for this kernel.
pub(crate) fn perf() -> Option<Command> {
    static STARTS: LazyLock<bool> = LazyLock::new(|| {
        let version = Command::new("perf").arg("version").output();
        version.is_ok_and(|output| output.status.success())
    });
    STARTS.then(|| Command::new("perf"))
}
