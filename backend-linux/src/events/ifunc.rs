//! The functions among which an IFUNC selects: those whose addresses its code takes.

use std::collections::BTreeSet;

use object::Architecture;

/// Code that is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Code<'a> {
    pub(super) machine: Architecture,
    /// True if it is linked for the addresses at which it runs, which its instructions may then contain.
    pub(super) is_fixed: bool,
    pub(super) address: u64,
    pub(super) bytes: &'a [u8],
}

impl Code<'_> {
    /// Returns the addresses that it takes, and perhaps some that are none; none of machines other than x86-64 and 64-bit Arm.
    pub(super) fn addresses(self) -> BTreeSet<u64> {
        match self.machine {
            Architecture::X86_64 => self.addresses_of_x86_64(),
            Architecture::Aarch64 => self.addresses_of_aarch64(),
            _ => BTreeSet::new(),
        }
    }

    /// Those of `lea` relative to the next instruction and, in a program at a fixed address, of `mov` with the address in it (Intel
    /// SDM, volume 2).
    fn addresses_of_x86_64(self) -> BTreeSet<u64> {
        let last_four = |bytes: &[u8]| Some(i32::from_le_bytes(*bytes.last_chunk()?));
        let relative = self.bytes.windows(7).enumerate().filter_map(|(at, bytes)| {
            let is_lea = matches!(bytes, [0x48..=0x4f, 0x8d, place, ..] if place & 0xc7 == 0x05);
            let next = self.address.wrapping_add(at as u64 + 7);
            let distance = last_four(bytes).filter(|_| is_lea)?;
            Some(next.wrapping_add_signed(distance.into()))
        });
        let fixed = self.bytes.windows(5).filter_map(|bytes| {
            // By its opcode, or by the register behind it.
            let is_mov = matches!(bytes, [0xb8..=0xc7, ..]);
            let address = last_four(bytes).filter(|_| self.is_fixed && is_mov)?;
            u64::try_from(address).ok()
        });
        relative.chain(fixed).collect()
    }

    /// Those of `adr`, and of `adrp` with the `add` that follows it (Arm ARM, C6.2).
    fn addresses_of_aarch64(self) -> BTreeSet<u64> {
        let mut pages = [None; 32];
        let mut taken = BTreeSet::new();
        for (at, word) in self.bytes.chunks_exact(4).enumerate() {
            let Ok(word) = word.try_into().map(u32::from_le_bytes) else {
                break;
            };
            let address = self.address.wrapping_add(4 * at as u64);
            let to = (word & 31) as usize;
            // 21 bits with a sign.
            let distance = ((word >> 5 & 0x7_ffff) << 2 | word >> 29 & 3) << 11;
            let distance = i64::from(distance.cast_signed() >> 11);
            match word {
                _ if word & 0x9f00_0000 == 0x1000_0000 => {
                    taken.insert(address.wrapping_add_signed(distance));
                }
                _ if word & 0x9f00_0000 == 0x9000_0000 => {
                    pages[to] = Some((address & !0xfff).wrapping_add_signed(distance << 12));
                }
                _ if word & 0xffc0_0000 == 0x9100_0000 => {
                    let page = pages[(word >> 5 & 31) as usize];
                    taken.extend(
                        page.map(|page: u64| page.wrapping_add((word >> 10 & 0xfff).into())),
                    );
                }
                _ => {}
            }
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(machine: Architecture, is_fixed: bool, bytes: &[u8]) -> Vec<u64> {
        let address = 0x40_1000;
        let code = Code {
            machine,
            is_fixed,
            address,
            bytes,
        };
        code.addresses().into_iter().collect()
    }

    #[test]
    fn addresses_in_code_of_x86_64_are_found() {
        let code = [
            &[0x90, 0x48, 0x8d, 0x05][..], // lea 0x10(%rip), %rax
            &0x10i32.to_le_bytes(),
            &[0x4c, 0x8d, 0x0d], // lea -0x100(%rip), %r9
            &(-0x100i32).to_le_bytes(),
            &[0xe8], // call, whose target is not selected
            &0x30i32.to_le_bytes(),
            &[0xba], // mov $0x401234, %edx
            &0x40_1234i32.to_le_bytes(),
        ]
        .concat();
        let relative = [0x40_1000 + 15 - 0x100, 0x40_1000 + 8 + 0x10];
        assert_eq!(addresses(Architecture::X86_64, false, &code), relative);
        let fixed = addresses(Architecture::X86_64, true, &code);
        assert!(fixed.contains(&0x40_1234), "{fixed:x?}");
        assert!(addresses(Architecture::Riscv64, true, &code).is_empty());
    }

    #[test]
    fn addresses_in_code_of_aarch64_are_found() {
        let code = [
            0xd000_0000u32, // adrp x0, 0x403000
            0x9000_0001,    // adrp x1, 0x401000
            0x9104_8000,    // add x0, x0, #0x120
            0x10ff_ffe2,    // adr x2, -4
            0xf940_0021,    // ldr x1, [x1]
        ];
        let code = code.map(u32::to_le_bytes).concat();
        let taken = [0x40_1008, 0x40_3120];
        assert_eq!(addresses(Architecture::Aarch64, false, &code), taken);
    }
}
