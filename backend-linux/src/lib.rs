#![doc = include_str!("../README.md")]

#[cfg(feature = "sampling")]
pub mod sampling;

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod anchor;
        mod arm_names;
        mod backend;
        mod capabilities;
        #[cfg(feature = "names")]
        mod condition;
        #[cfg(feature = "counter-test")]
        pub mod counter_test;
        #[cfg(feature = "names")]
        mod elf_symbol;
        #[cfg_attr(not(feature = "names"), allow(dead_code))]
        mod event_bits;
        mod event_source;
        mod group;
        #[cfg(feature = "names")]
        mod hint;
        #[cfg_attr(not(feature = "names"), allow(dead_code))]
        mod kernel_file;
        mod kernel_group;
        #[cfg(feature = "names")]
        mod native;
        #[cfg(not(feature = "counter-test"))]
        mod no_counter_test;
        #[cfg(not(feature = "sampling"))]
        mod no_overflow;
        mod open;
        mod open_error;
        #[cfg(feature = "sampling")]
        mod overflow;
        mod own_counters;
        #[cfg_attr(not(feature = "names"), allow(dead_code, unused_variables))]
        mod parts;
        pub mod privileges;
        #[cfg(feature = "names")]
        mod probes;
        mod rates;
        mod read;
        mod registers;
        // It has the calls of samplers and of the test too.
        #[cfg_attr(not(all(feature = "counter-test", feature = "sampling")), allow(dead_code, unused_imports))]
        mod sys;
        pub mod sysfs;
        mod targets;
        #[cfg(feature = "names")]
        mod traced_probe;
        pub mod topology;
        #[cfg(feature = "names")]
        pub mod tracefs;
        mod user_page;
        pub mod user_read;

        #[cfg(not(feature = "counter-test"))]
        use no_counter_test as counter_test;
        #[cfg(not(feature = "sampling"))]
        use no_overflow as overflow;

        pub use anchor::Anchors;
        pub use backend::LinuxBackend;
        pub use group::LinuxGroup;
        pub use own_counters::{start_if_alone, start_own_counters, stop_own_counters};
    } else {
        mod elsewhere;

        pub use elsewhere::{LinuxBackend, LinuxGroup};
    }
}
