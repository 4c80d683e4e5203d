//! A real-time signal that is blocked in the calling thread, so that what is sent can be counted.

pub(crate) struct Blocked {
    set: libc::sigset_t,
    pub(crate) signal: i32,
}

impl Blocked {
    /// Blocks the real-time signal of this number from the first on.
    pub(crate) fn new(number: i32) -> Self {
        let signal = libc::SIGRTMIN() + number;
        // SAFETY: an all-zero sigset_t is made an empty one; the calls write only to it and to the signal mask of
        // this thread.
        let set = unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigaddset(&raw mut set, signal);
            libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
            set
        };
        Self { set, signal }
    }

    /// Takes one that is pending for this thread, and returns its code.
    pub(crate) fn take(&self) -> Option<i32> {
        let no_time = libc::timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        // SAFETY: an all-zero siginfo_t is one; the kernel fills it through the pointer, which is to a live local.
        let (signal, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigtimedwait(&self.set, &raw mut info, &raw const no_time);
            (signal, info)
        };
        (signal == self.signal).then_some(info.si_code)
    }

    /// Takes all that are pending for this thread, and returns their codes.
    pub(crate) fn take_all(&self) -> Vec<i32> {
        std::iter::from_fn(|| self.take()).collect()
    }
}
