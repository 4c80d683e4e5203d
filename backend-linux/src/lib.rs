#![doc = include_str!("../README.md")]

#[cfg(feature = "sampling")]
pub mod sampling;

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod anchor;
        mod arm_names;
        mod backend;
        mod capabilities;
        mod condition;
        pub mod counter_test;
        mod elf_symbol;
        mod event_bits;
        mod event_source;
        mod group;
        mod hint;
        mod kernel_file;
        mod kernel_group;
        mod native;
        mod open;
        mod open_error;
        mod overflow;
        mod own_counters;
        mod parts;
        pub mod privileges;
        mod probes;
        mod rates;
        mod sorted;
        // It has the calls of samplers too.
        #[cfg_attr(not(feature = "sampling"), allow(dead_code))]
        mod sys;
        pub mod sysfs;
        mod targets;
        pub mod topology;
        pub mod tracefs;
        pub mod user_read;

        pub use anchor::Anchors;
        pub use backend::LinuxBackend;
        pub use group::LinuxGroup;
        pub use own_counters::{start_if_alone, start_own_counters, stop_own_counters};
    } else {
        mod elsewhere;

        pub use elsewhere::{LinuxBackend, LinuxGroup};
    }
}
