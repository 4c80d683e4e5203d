//! The registers that are read in user space: counters, and the counter of cycles behind times.

/// The registers that are read beside a page. The CPU's own are read by instructions; others are for
/// tests.
pub trait Registers {
    /// The bits of a counter, by the number that is one less than the page's `index`. `None` when
    /// the CPU has no such register.
    fn counter(&self, number: u32) -> Option<u64>;

    /// The cycle counter that the page's `time_*` fields speak of.
    fn cycles(&self) -> u64;
}

/// The registers of the CPU that the calling thread runs on, for the pages of open counters.
///
/// It can only be had where a counter's page has said that its register may be read: otherwise the
/// instructions below end the program.
#[derive(Debug)]
pub(crate) struct CpuRegisters(());

impl CpuRegisters {
    /// True if this crate can read the registers of this architecture.
    pub(crate) const KNOWN: bool = cfg!(all(
        any(
            target_arch = "x86",
            target_arch = "x86_64",
            target_arch = "aarch64"
        ),
        target_endian = "little"
    ));

    /// The registers.
    ///
    /// # Safety
    /// `counter` may only be called with the `index` of the page of a counter of the calling thread,
    /// and `cycles` for one that has `cap_user_time`.
    pub(crate) const unsafe fn new() -> Self {
        Self(())
    }
}

cfg_if::cfg_if! {
    if #[cfg(any(target_arch = "x86", target_arch = "x86_64"))] {
        use std::arch::asm;

        // Neither block says `nomem`: the reads must not move across those of the page's lock. Both clear the upper
        // halves of the two registers where there are such.
        impl Registers for CpuRegisters {
            /// RDPMC (Intel SDM volume 2B; AMD APM volume 3).
            fn counter(&self, number: u32) -> Option<u64> {
                let (low, high): (usize, usize);
                // SAFETY: whoever made `self` has promised that the number is one that the kernel
                // has allowed user mode to read. The instruction changes nothing but the two
                // registers named.
                unsafe {
                    asm!(
                        "rdpmc",
                        in("ecx") number, out("eax") low, out("edx") high,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                Some((high as u64) << 32 | low as u64)
            }

            /// RDTSC (Intel SDM volume 2B; AMD APM volume 3).
            fn cycles(&self) -> u64 {
                let (low, high): (usize, usize);
                // SAFETY: whoever made `self` has promised that user mode may read the time stamp
                // counter. The instruction changes nothing but the two registers named.
                unsafe {
                    asm!(
                        "rdtsc",
                        out("eax") low, out("edx") high,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                (high as u64) << 32 | low as u64
            }
        }
    } else if #[cfg(target_arch = "aarch64")] {
        use std::arch::asm;

        /// Reads a system register. Without `nomem`, so that it does not move across the reads of the
        /// page's lock.
        macro_rules! system_register {
            ($name:expr) => {{
                let value: u64;
                // SAFETY: whoever made the registers has promised that the kernel allows user mode
                // to read this one. The instruction changes nothing but the register named.
                unsafe {
                    asm!(
                        concat!("mrs {}, ", $name), out(reg) value,
                        options(nostack, preserves_flags, readonly),
                    );
                }
                value
            }};
        }

        macro_rules! event_counter {
            ($number:expr, $($n:literal)*) => {
                match $number {
                    $($n => Some(system_register!(concat!("pmevcntr", $n, "_el0"))),)*
                    31 => Some(system_register!("pmccntr_el0")),
                    _ => None,
                }
            };
        }

        impl Registers for CpuRegisters {
            /// `PMEVCNTRn_EL0`, and `PMCCNTR_EL0` as number 31 (`armv8pmu_user_event_idx`,
            /// `drivers/perf/arm_pmuv3.c`).
            fn counter(&self, number: u32) -> Option<u64> {
                event_counter!(
                    number,
                    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15
                    16 17 18 19 20 21 22 23 24 25 26 27 28 29 30
                )
            }

            /// `CNTVCT_EL0`.
            fn cycles(&self) -> u64 {
                system_register!("cntvct_el0")
            }
        }
    } else {
        impl Registers for CpuRegisters {
            fn counter(&self, _number: u32) -> Option<u64> {
                None
            }

            fn cycles(&self) -> u64 {
                0
            }
        }
    }
}
