//! What differs between systems, in one place: Linux knows where CPUs are and what other tasks do.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod liveness;
        mod linux;

        pub(crate) use linux::any_alive;
        pub(super) use linux::{
            anchors, kernel_mode_hint, places, refuse_what_is_missing, thread_name,
        };
    } else {
        mod elsewhere;

        pub(super) use elsewhere::{
            anchors, any_alive, kernel_mode_hint, places, refuse_what_is_missing, thread_name,
        };
    }
}

cfg_if::cfg_if! {
    if #[cfg(any(target_os = "linux", target_os = "freebsd", target_os = "dragonfly"))] {
        mod affinity;

        pub(super) use affinity::on_cpus;
    } else {
        pub(super) use elsewhere::on_cpus;
    }
}

/// Where a CPU is; -1 where the system does not know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CpuPlace {
    pub(super) cpu: u32,
    pub(super) socket: i32,
    pub(super) die: i32,
    pub(super) core: i32,
}
