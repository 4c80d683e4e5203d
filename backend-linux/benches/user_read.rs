//! Counts the instructions that a read in user space takes beside the bare protocol of
//! `include/uapi/linux/perf_event.h`, on a recorded page: counted by callgrind, not timed.
//!
//! `cargo bench -p quipu-linux --bench user_read` runs itself under `valgrind --tool=callgrind` with
//! two numbers of reads; the difference is exact. The registers are words of memory here, because
//! valgrind has no RDPMC.

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
mod measured {
    use std::hint::black_box;
    use std::process::{Command, Stdio};
    use std::ptr::{addr_of, read_volatile};
    use std::sync::atomic::{Ordering, compiler_fence};

    use quipu_linux::user_read::{PageCapabilities, PageFields, Registers, UserPage};

    /// The target: this times the bare loop.
    const AT_MOST: f64 = 1.2;

    struct Recorded {
        counter: u64,
        cycles: u64,
    }

    impl Registers for Recorded {
        #[inline(always)]
        fn counter(&self, _number: u32) -> Option<u64> {
            // SAFETY: it is a live field.
            Some(unsafe { read_volatile(addr_of!(self.counter)) })
        }

        #[inline(always)]
        fn cycles(&self) -> u64 {
            // SAFETY: it is a live field.
            unsafe { read_volatile(addr_of!(self.cycles)) }
        }
    }

    fn page() -> UserPage {
        UserPage::recorded(&PageFields {
            index: 3,
            offset: 0x8000_0000_1234,
            time_enabled: 1_000_000,
            time_running: 900_000,
            capabilities: PageCapabilities::READABLE | PageCapabilities::USER_TIME_ZERO,
            pmc_width: 48,
            time_shift: 31,
            time_mult: 799_063_683,
            time_offset: 0u64.wrapping_sub(1_000_000_000),
            time_zero: 5_000_000,
            time_cycles: 0,
            time_mask: 0,
        })
    }

    type Reading = (u64, u64, u64);

    /// The structure as the kernel's header has it.
    #[repr(C)]
    struct Mapped {
        version: u32,
        compat_version: u32,
        lock: u32,
        index: u32,
        offset: i64,
        time_enabled: u64,
        time_running: u64,
        capabilities: u64,
        pmc_width: u16,
        time_shift: u16,
        time_mult: u32,
        time_offset: u64,
    }

    /// The loop of the header's comment, with the times always brought up to now; `None` where a
    /// program would go to read(2).
    #[inline(never)]
    fn bare(page: *const Mapped, registers: &Recorded, out: &mut Reading) -> bool {
        macro_rules! field {
            ($name:ident) => {
                // SAFETY: the page is one of UserPage, which begins with these fields.
                unsafe { read_volatile(addr_of!((*page).$name)) }
            };
        }
        loop {
            let seq = field!(lock);
            compiler_fence(Ordering::SeqCst);
            let (mut enabled, mut running) = (field!(time_enabled), field!(time_running));
            let capabilities = field!(capabilities);
            if capabilities & 8 == 0 {
                return false;
            }
            let cycles = registers.cycles();
            let shift = u32::from(field!(time_shift));
            let mult = u64::from(field!(time_mult));
            let quot = cycles >> (shift & 63);
            let rem = cycles & ((1 << (shift & 63)) - 1);
            let delta = field!(time_offset)
                .wrapping_add(quot.wrapping_mul(mult))
                .wrapping_add(rem.wrapping_mul(mult) >> (shift & 63));
            enabled = enabled.wrapping_add(delta);
            running = running.wrapping_add(delta);
            let index = field!(index);
            let mut count = field!(offset);
            if capabilities & 4 == 0 || index == 0 {
                return false;
            }
            let unused = 64 - u32::from(field!(pmc_width));
            let Some(bits) = registers.counter(index - 1) else {
                return false;
            };
            count = count.wrapping_add((bits << (unused & 63)).cast_signed() >> (unused & 63));
            compiler_fence(Ordering::SeqCst);
            if field!(lock) == seq {
                *out = (count.cast_unsigned(), enabled, running);
                return true;
            }
        }
    }

    #[inline(never)]
    fn quipu(page: &UserPage, registers: &Recorded, out: &mut Reading) -> bool {
        page.read_group(&std::iter::empty(), registers, |_, value, times| {
            *out = (value, times.enabled, times.running);
        })
        .is_some()
    }

    /// Reads `times` times, one way or the other.
    fn run(reader: &str, times: u64) {
        let page = page();
        let registers = Recorded {
            counter: 0x7fff_ffff_0000,
            cycles: 123_456_789_012,
        };
        let mut out = (0, 0, 0);
        let mapped = std::ptr::from_ref(&page).cast();
        let mut read = true;
        if reader == "bare" {
            for _ in 0..times {
                read &= bare(black_box(mapped), &registers, &mut out);
            }
        } else {
            for _ in 0..times {
                read &= quipu(black_box(&page), &registers, &mut out);
            }
        }
        assert!(read, "the page is one that can be read");
        black_box(&out);
    }

    /// The instructions of a program run under callgrind; `None` without valgrind.
    fn instructions(reader: &str, times: u64) -> Option<u64> {
        let own = std::env::current_exe().ok()?;
        let output = Command::new("valgrind")
            .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
            .arg(own)
            .args(["--read", reader, &times.to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .output()
            .ok()?;
        let text = String::from_utf8(output.stderr).ok()?;
        let line = text.lines().find_map(|l| l.split("Collected :").nth(1))?;
        line.trim().parse().ok()
    }

    /// The instructions of one read, exactly: what more reads add.
    fn each(reader: &str) -> Option<f64> {
        const FEW: u64 = 1_000;
        const MANY: u64 = 101_000;
        let added = instructions(reader, MANY)?.checked_sub(instructions(reader, FEW)?)?;
        Some(added as f64 / (MANY - FEW) as f64)
    }

    pub(super) fn main() {
        let arguments: Vec<String> = std::env::args().collect();
        if let [_, read, reader, times] = arguments.as_slice()
            && read == "--read"
        {
            run(reader, times.parse().unwrap_or(0));
            return;
        }
        let (Some(bare), Some(quipu)) = (each("bare"), each("quipu")) else {
            println!("SKIP user_read: valgrind is not here, or did not count");
            return;
        };
        let ratio = quipu / bare;
        println!("instructions of a read in user space, the loop around it included");
        println!("  bare protocol  {bare:8.2}");
        println!("  quipu          {quipu:8.2}  {ratio:.3} x (at most {AT_MOST})");
        if ratio > AT_MOST {
            println!("MISSED");
        }
    }
}

#[cfg(all(target_os = "linux", target_pointer_width = "64"))]
fn main() {
    measured::main();
}

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
fn main() {
    println!("SKIP user_read: it is for 64-bit Linux");
}
