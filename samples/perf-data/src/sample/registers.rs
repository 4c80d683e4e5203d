//! Registers and stack of the sampled thread.

use crate::bytes::Words;

/// The width of the registers that were sampled (`enum perf_sample_regs_abi`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RegisterAbi {
    /// A program of 32 bits.
    Bits32,
    /// A program of 64 bits.
    Bits64,
    /// Another one that the kernel numbers so.
    Other(u64),
}

/// Registers of a sample.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct SampledRegisters<'a> {
    pub(crate) abi: RegisterAbi,
    pub(crate) mask: u64,
    pub(crate) values: Words<'a>,
}

impl<'a> SampledRegisters<'a> {
    /// Returns the width of the program.
    pub fn abi(&self) -> RegisterAbi {
        self.abi
    }

    /// Returns which registers there are, as bits numbered by the architecture's `asm/perf_regs.h`.
    pub fn mask(&self) -> u64 {
        self.mask
    }

    /// Returns the value of a register by that number.
    pub fn get(&self, register: u32) -> Option<u64> {
        let bit = 1u64.checked_shl(register)?;
        if self.mask & bit == 0 {
            return None;
        }
        self.values
            .get((self.mask & (bit - 1)).count_ones() as usize)
    }

    /// Returns the values, in the order of the bits.
    pub fn values(&self) -> Words<'a> {
        self.values
    }
}

impl std::fmt::Debug for SampledRegisters<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let present = (0..u64::BITS).filter_map(|r| Some((r, self.get(r)?)));
        f.debug_map().entries(present).finish()
    }
}

/// A copy of the top of the user stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UserStack<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) valid: usize,
}

impl<'a> UserStack<'a> {
    /// Returns the bytes from the stack pointer up that could be copied.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes.get(..self.valid).unwrap_or(self.bytes)
    }

    /// Returns the bytes that the kernel made room for; those beyond [`bytes`](Self::bytes) mean nothing.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_found_by_the_bits_below_them() {
        let bytes: Vec<u8> = [10u64, 11, 12]
            .iter()
            .flat_map(|w| w.to_ne_bytes())
            .collect();
        let registers = SampledRegisters {
            abi: RegisterAbi::Bits64,
            mask: 1 << 63 | 1 << 8 | 1,
            values: Words::new(&bytes),
        };
        let get = |r| registers.get(r);
        assert_eq!((get(0), get(8), get(63)), (Some(10), Some(11), Some(12)));
        assert_eq!((get(1), get(64), get(u32::MAX)), (None, None, None));
    }
}
