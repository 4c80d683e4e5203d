//! `spin N`: a loop of exactly 2 N instructions. As a library it is a function of C.

use std::arch::asm;

#[no_mangle]
pub extern "C" fn spin(rounds: u64) {
    // SAFETY: it counts a register down to 0 and touches nothing else.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        asm!("2:", "sub {rounds}, 1", "jne 2b", rounds = inout(reg) rounds => _, options(nomem, nostack));
        #[cfg(target_arch = "aarch64")]
        asm!("2:", "subs {rounds}, {rounds}, #1", "b.ne 2b", rounds = inout(reg) rounds => _, options(nomem, nostack));
    }
}

#[allow(dead_code)]
fn main() {
    let rounds = std::env::args().nth(1).and_then(|n| n.parse().ok());
    spin(rounds.unwrap_or(1_000_000));
}
