//! The system calls that nix has no function for. Its signals are those with names, and overflows are reported by real-time
//! signals and by those that the program asks for; its timer panics when a forked process drops it, which has none.

#[cfg(target_os = "linux")]
pub(crate) use self::linux::OnSignal;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::Timer;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::is_default;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::owner;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::raise;
#[cfg(target_os = "linux")]
pub(crate) use self::linux::set_handler;
use nix::sys::signal::SigSet;
use std::ffi::c_int;

/// Returns true if a signal is in a set.
pub(crate) fn contains(set: &SigSet, signal: c_int) -> bool {
    // SAFETY: the set is read.
    unsafe { libc::sigismember(set.as_ref(), signal) == 1 }
}

/// Has a function called when the process ends (atexit(3)); returns false if there is no memory for it.
pub(crate) fn at_exit(function: extern "C" fn()) -> bool {
    // SAFETY: the function has the type that is asked for.
    unsafe { libc::atexit(function) == 0 }
}

#[cfg(target_os = "linux")]
mod linux {
    use std::ffi::{c_int, c_void};
    use std::ptr::{null, null_mut};

    use nix::errno::Errno;
    use nix::sys::time::TimeSpec;
    use nix::unistd::gettid;

    /// A handler of a signal.
    pub(crate) type OnSignal = extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void);

    /// Returns a struct of sigaction(2) without a handler, flags or blocked signals.
    fn no_action() -> libc::sigaction {
        // SAFETY: zeros are a value of each field; of the set, the empty one (sigemptyset(3)).
        unsafe { std::mem::zeroed() }
    }

    /// Sets the handler of a signal, while which runs some others are blocked (sigaction(2), `SA_RESTART`).
    pub(crate) fn set_handler(
        signal: c_int,
        handler: OnSignal,
        blocked: &[c_int],
    ) -> nix::Result<()> {
        let mut action = no_action();
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART;
        for other in blocked {
            // SAFETY: the set is written to; a number that is no signal's is refused.
            unsafe { libc::sigaddset(&raw mut action.sa_mask, *other) };
        }
        // SAFETY: the handler has the type that the flags say, and is there as long as the library.
        let set = unsafe { libc::sigaction(signal, &raw const action, null_mut()) };
        Errno::result(set).map(drop)
    }

    /// Returns true if a signal has the default action.
    pub(crate) fn is_default(signal: c_int) -> bool {
        let mut action = no_action();
        // SAFETY: the struct is written to, and nothing is changed.
        let read = unsafe { libc::sigaction(signal, null(), &raw mut action) };
        read == 0 && action.sa_sigaction == libc::SIG_DFL
    }

    /// Sends a signal to the calling thread.
    pub(crate) fn raise(signal: c_int) -> nix::Result<()> {
        // SAFETY: it only takes a number. What a handler does is argued where that is set.
        let sent = unsafe { libc::raise(signal) };
        Errno::result(sent).map(drop)
    }

    /// A timer of a thread's CPU time (timer_create(2)) that is running.
    pub(crate) struct Timer(libc::timer_t);

    // SAFETY: it names a timer of the process, which any thread may delete.
    unsafe impl Send for Timer {}

    impl Timer {
        /// Starts a timer that sends a signal with a value to the calling thread whenever it has had a CPU for so long.
        pub(crate) fn start(
            signal: c_int,
            value: *mut c_void,
            every: TimeSpec,
        ) -> nix::Result<Self> {
            // SAFETY: zeros are a value of the struct.
            let mut event: libc::sigevent = unsafe { std::mem::zeroed() };
            event.sigev_notify = libc::SIGEV_THREAD_ID;
            event.sigev_signo = signal;
            event.sigev_value.sival_ptr = value;
            event.sigev_notify_thread_id = gettid().as_raw();
            let clock = libc::CLOCK_THREAD_CPUTIME_ID;
            let mut timer: libc::timer_t = null_mut();
            // SAFETY: the struct is filled in, and `timer` is written to.
            let made = unsafe { libc::timer_create(clock, &raw mut event, &raw mut timer) };
            Errno::result(made)?;
            let timer = Self(timer);
            let times = libc::itimerspec {
                it_interval: *every.as_ref(),
                it_value: *every.as_ref(),
            };
            // SAFETY: the timer was made above, and the struct is read.
            let set = unsafe { libc::timer_settime(timer.0, 0, &raw const times, null_mut()) };
            Errno::result(set)?;
            Ok(timer)
        }
    }

    impl Drop for Timer {
        fn drop(&mut self) {
            // SAFETY: the timer was made by `start`, and is deleted once.
            unsafe { libc::timer_delete(self.0) };
        }
    }

    /// Returns the thread that gets the signals of a descriptor (fcntl(2), `F_GETOWN_EX`), if a thread does.
    pub(crate) fn owner(descriptor: c_int) -> Option<c_int> {
        /// `struct f_owner_ex` of `include/uapi/asm-generic/fcntl.h`.
        #[repr(C)]
        struct Owner {
            kind: c_int,
            id: c_int,
        }
        const F_GETOWN_EX: c_int = 16;
        const F_OWNER_TID: c_int = 0;
        let mut owner = Owner { kind: -1, id: 0 };
        // SAFETY: the kernel writes a struct of this layout; it refuses a descriptor that there is not.
        let read = unsafe { libc::fcntl(descriptor, F_GETOWN_EX, &raw mut owner) };
        (read == 0 && owner.kind == F_OWNER_TID).then_some(owner.id)
    }
}
