//! The process as it was started.

use std::sync::atomic::{AtomicBool, Ordering};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, fcntl};

static CLOSED: AtomicBool = AtomicBool::new(false);

// SAFETY: the C runtime calls what this section holds before main, each entry as a function without arguments it has to
// use; this one makes one system call and an atomic store, which need nothing to be initialised.
#[used]
#[unsafe(link_section = ".init_array")]
static AT_START: extern "C" fn() = note;

extern "C" fn note() {
    let closed = fcntl(std::io::stderr(), FcntlArg::F_GETFD) == Err(Errno::EBADF);
    CLOSED.store(closed, Ordering::Relaxed);
}

/// Returns true if standard error was closed when the process was started (`2>&-` of a shell). Before main, Rust's standard
/// library opens /dev/null in its place, and what is written there is lost without an error.
pub fn standard_error_was_closed() -> bool {
    // A reference, so that the linker keeps the entry wherever this is called.
    std::hint::black_box(AT_START);
    CLOSED.load(Ordering::Relaxed)
}
