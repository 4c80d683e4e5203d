#![doc = include_str!("../README.md")]
#![deny(clippy::multiple_unsafe_ops_per_block)]

#[cfg(feature = "sampling")]
pub mod sampling;

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod anchor;
        mod backend;
        mod capabilities;
        #[cfg(feature = "counter-test")]
        pub mod counter_test;
        mod events;
        mod group;
        mod machine;
        #[cfg(not(feature = "counter-test"))]
        mod no_counter_test;
        mod read;
        // It has the calls of samplers and of the test too.
        #[cfg_attr(not(all(feature = "counter-test", feature = "sampling")), allow(dead_code, unused_imports))]
        mod sys;
        mod targets;
        mod user_page;
        pub mod user_read;

        #[cfg(not(feature = "counter-test"))]
        use no_counter_test as counter_test;

        pub use anchor::Anchors;
        pub use backend::LinuxBackend;
        pub use group::LinuxGroup;
        pub use group::own_counters::{start_if_alone, start_own_counters, stop_own_counters};
        #[cfg(feature = "names")]
        pub use machine::tracefs;
        pub use sys::inode_generation;
        pub use machine::{cgroups, privileges, sysfs, topology};
    } else {
        mod elsewhere;

        pub use elsewhere::{LinuxBackend, LinuxGroup};
    }
}
