//! Waits for a thread to sleep.

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        use std::fs;
        use std::thread::sleep;
        use std::time::Duration;

        use nix::unistd::{Pid, gettid};

        /// Interval of looking at a thread that runs.
        const INTERVAL: Duration = Duration::from_micros(20);

        /// A thread of this process.
        #[derive(Debug)]
        pub(crate) struct Thread(Pid);

        impl Thread {
            pub(crate) fn this() -> Self {
                Self(gettid())
            }

            /// Waits until the thread does not run any more: it sleeps in a system call, or has ended. Returns at once
            /// where there is no proc(5).
            pub(crate) fn wait_until_asleep(&self) {
                let file = format!("/proc/self/task/{}/stat", self.0);
                // The state comes after the name in parentheses.
                let runs = |stat: &str| stat.rsplit_once(") ").is_some_and(|(_, state)| state.starts_with('R'));
                while fs::read_to_string(&file).is_ok_and(|stat| runs(&stat)) {
                    sleep(INTERVAL);
                }
            }
        }
    } else {
        /// A thread of this process, whose state this system does not show.
        #[derive(Debug)]
        pub(crate) struct Thread;

        impl Thread {
            pub(crate) fn this() -> Self {
                Self
            }

            /// Returns at once.
            pub(crate) fn wait_until_asleep(&self) {}
        }
    }
}
