//! Functions with frame pointers, of which the address of every instruction that matters is known.

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
use std::arch::global_asm;

// `outer` calls `caller`, which calls `leaf`, each once.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".pushsection .text",
    ".balign 16",
    "quipu_leaf:",
    "push rbp",
    "mov rbp, rsp",
    "quipu_leaf_body:",
    "nop",
    "pop rbp",
    "ret",
    "quipu_caller:",
    "push rbp",
    "mov rbp, rsp",
    "call quipu_leaf",
    "quipu_in_caller:",
    "pop rbp",
    "ret",
    "quipu_outer:",
    "push rbp",
    "mov rbp, rsp",
    "call quipu_caller",
    "quipu_in_outer:",
    "pop rbp",
    "ret",
    ".popsection",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".pushsection .text",
    ".balign 16",
    "quipu_leaf:",
    "stp x29, x30, [sp, #-16]!",
    "mov x29, sp",
    "quipu_leaf_body:",
    "nop",
    "ldp x29, x30, [sp], #16",
    "ret",
    "quipu_caller:",
    "stp x29, x30, [sp, #-16]!",
    "mov x29, sp",
    "bl quipu_leaf",
    "quipu_in_caller:",
    "ldp x29, x30, [sp], #16",
    "ret",
    "quipu_outer:",
    "stp x29, x30, [sp, #-16]!",
    "mov x29, sp",
    "bl quipu_caller",
    "quipu_in_outer:",
    "ldp x29, x30, [sp], #16",
    "ret",
    ".popsection",
);

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
mod labels {
    unsafe extern "C" {
        pub(super) safe fn quipu_leaf();
        pub(super) safe fn quipu_leaf_body();
        pub(super) safe fn quipu_in_caller();
        pub(super) safe fn quipu_outer();
        pub(super) safe fn quipu_in_outer();
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod labels {
    //! Functions without known frames: their calls can be counted, their call chains not checked.

    #[inline(never)]
    pub(super) extern "C" fn quipu_leaf() {
        std::hint::black_box(());
    }
    pub(super) use quipu_leaf as quipu_leaf_body;
    pub(super) use quipu_leaf as quipu_in_caller;
    pub(super) use quipu_leaf as quipu_in_outer;
    pub(super) extern "C" fn quipu_outer() {
        quipu_leaf();
    }
}

/// True if the addresses inside of the functions are known here.
pub(crate) const FRAMES_ARE_KNOWN: bool =
    cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// The innermost function.
pub(crate) fn leaf() -> u64 {
    labels::quipu_leaf as *const () as u64
}

/// Its first instruction after the frame is set up.
pub(crate) fn leaf_body() -> u64 {
    labels::quipu_leaf_body as *const () as u64
}

/// The address it returns to.
pub(crate) fn in_caller() -> u64 {
    labels::quipu_in_caller as *const () as u64
}

/// The address the caller returns to.
pub(crate) fn in_outer() -> u64 {
    labels::quipu_in_outer as *const () as u64
}

/// Calls all of them `times` times.
pub(crate) fn call(times: usize) {
    for _ in 0..times {
        labels::quipu_outer();
    }
}
