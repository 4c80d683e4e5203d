//! The differences between systems in one place: Linux knows the topology of CPUs and the state of
//! other tasks.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;

        pub(super) use linux::{
            Begun, anchors, begun, check_supported, cpu_topology, every_process, kernel_mode_hint,
            left_behind, thread_name,
        };
    } else {
        mod elsewhere;

        pub(super) use elsewhere::{
            Begun, anchors, begun, check_supported, cpu_topology, every_process, kernel_mode_hint,
            left_behind, thread_name,
        };
    }
}
