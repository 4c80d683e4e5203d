//! System calls that a signal or a lack of the moment ended, and that are made again.

/// So often a call is made before its errno is what it has to say: probes that ftrace uses are refused with
/// EINTR each time (`enable_trace_kprobe`, `kernel/trace/trace_kprobe.c`).
const MOST: u32 = 10;

/// Makes a call again as long as it fails with EINTR or EAGAIN, ten times at most.
pub(super) fn again<T>(mut call: impl FnMut() -> Result<T, i32>) -> Result<T, i32> {
    match call() {
        Err(errno) if is_of_the_moment(errno) => once_more(&mut { call }),
        other => other,
    }
}

fn is_of_the_moment(errno: i32) -> bool {
    matches!(errno, libc::EINTR | libc::EAGAIN)
}

fn once_more<T>(call: &mut dyn FnMut() -> Result<T, i32>) -> Result<T, i32> {
    for _ in 2..MOST {
        match call() {
            Err(errno) if is_of_the_moment(errno) => {}
            other => return other,
        }
    }
    call()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a call that fails so often with an errno, and returns its outcome and how often it was made.
    fn failing(times: u32, errno: i32) -> (Result<&'static str, i32>, u32) {
        let mut calls = 0;
        let outcome = again(|| {
            calls += 1;
            if calls > times {
                Ok("done")
            } else {
                Err(errno)
            }
        });
        (outcome, calls)
    }

    #[test]
    fn what_was_interrupted_is_made_again_ten_times_at_most() {
        for errno in [libc::EINTR, libc::EAGAIN] {
            assert_eq!(failing(0, errno), (Ok("done"), 1));
            assert_eq!(failing(1, errno), (Ok("done"), 2));
            assert_eq!(failing(9, errno), (Ok("done"), 10));
            assert_eq!(failing(u32::MAX, errno), (Err(errno), 10));
        }
    }

    #[test]
    fn other_errors_are_final() {
        for errno in [libc::EIO, libc::ENOSPC, libc::EBUSY] {
            assert_eq!(failing(1, errno), (Err(errno), 1));
        }
    }
}
