//! Instructions as text.

use iced_x86::{
    Decoder, DecoderOptions, Formatter, FormatterOptions, GasFormatter, IntelFormatter,
};
use quipu_symbols::{Code, CodeFile};
use yaxpeax_arch::{Decoder as _, U8Reader};
use yaxpeax_arm::armv8::a64::{InstDecoder, Operand};

use super::options::Syntax;

/// Numbers of architectures, `e_machine` of the ELF header (`include/uapi/linux/elf-em.h`).
const I386: u16 = 3;
const X86_64: u16 = 62;
const AARCH64: u16 = 183;

/// An instruction.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    /// Its address, as the file has it.
    pub(super) address: u64,
    /// Its text, with the function that it branches to.
    pub(super) text: String,
}

/// Returns the instructions of a function.
///
/// # Errors
/// When they are of an architecture that is not known here.
pub(super) fn instructions(
    file: &CodeFile,
    code: &Code,
    syntax: Syntax,
) -> Result<Vec<Instruction>, String> {
    let name = |target| match file.name_at(target) {
        Some((name, 0)) => format!(" <{name}>"),
        Some((name, offset)) => format!(" <{name}+{offset:#x}>"),
        None => String::new(),
    };
    match file.machine() {
        X86_64 => Ok(x86(64, &code.bytes, code.address, syntax, &name)),
        I386 => Ok(x86(32, &code.bytes, code.address, syntax, &name)),
        AARCH64 => Ok(a64(&code.bytes, code.address, &name)),
        other => Err(format!(
            "quipu disassembles x86 and 64-bit Arm, and this is code of architecture {other} (e_machine); perf annotate \
             and objdump know more"
        )),
    }
}

fn x86(
    bits: u32,
    bytes: &[u8],
    address: u64,
    syntax: Syntax,
    name: &dyn Fn(u64) -> String,
) -> Vec<Instruction> {
    let mut formatter: Box<dyn Formatter> = match syntax {
        Syntax::Att => Box::new(GasFormatter::new()),
        Syntax::Intel => Box::new(IntelFormatter::new()),
    };
    as_objdump(formatter.options_mut());
    let decoder = Decoder::with_ip(bits, bytes, address, DecoderOptions::NONE);
    let instructions = decoder.into_iter().map(|instruction| {
        let mut text = String::new();
        if instruction.is_invalid() {
            text.push_str("(bad)");
        } else {
            formatter.format(&instruction, &mut text);
        }
        if instruction.near_branch_target() != 0 {
            text.push_str(&name(instruction.near_branch_target()));
        }
        let address = instruction.ip();
        Instruction { address, text }
    });
    instructions.collect()
}

/// Sets numbers and columns as objdump prints them.
fn as_objdump(options: &mut FormatterOptions) {
    options.set_first_operand_char_index(7);
    options.set_uppercase_hex(false);
    options.set_hex_prefix("0x");
    options.set_hex_suffix("");
    options.set_small_hex_numbers_in_decimal(false);
    options.set_branch_leading_zeros(false);
    options.set_show_branch_size(false);
    options.set_rip_relative_addresses(false);
}

fn a64(bytes: &[u8], start: u64, name: &dyn Fn(u64) -> String) -> Vec<Instruction> {
    let words = bytes.chunks_exact(4).zip(0..);
    let instructions = words.map(|(word, index)| {
        let address = start + 4 * index;
        let text = match InstDecoder::default().decode(&mut U8Reader::new(word)) {
            Ok(decoded) => {
                let text = decoded.to_string();
                let is_page = text.starts_with("adrp");
                match branch(&decoded.operands) {
                    Some(offset) => {
                        let base = if is_page { address & !0xfff } else { address };
                        let target = base.wrapping_add_signed(offset);
                        let before = text.split('$').next().unwrap_or_default();
                        format!("{before}{target:#x}{}", name(target))
                    }
                    None => text,
                }
            }
            Err(_) => match word {
                [a, b, c, d] => {
                    format!(".word {:#010x}", u32::from_le_bytes([*a, *b, *c, *d]))
                }
                _ => String::new(),
            },
        };
        Instruction { address, text }
    });
    instructions.collect()
}

/// Returns the distance of the address that an instruction names.
fn branch(operands: &[Operand]) -> Option<i64> {
    operands.iter().find_map(|operand| match operand {
        Operand::PCOffset(offset) => Some(*offset),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the texts of words of 64-bit Arm at address 0x1000.
    fn texts(words: &[u32]) -> Vec<String> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let name = |target| match target {
            0x1000 => " <f>".to_owned(),
            _ => String::new(),
        };
        let instructions = a64(&bytes, 0x1000, &name);
        instructions.into_iter().map(|i| i.text).collect()
    }

    #[test]
    fn instructions_of_arm_are_those_of_its_manual() {
        // Arm ARM, C6.2: stp x29, x30, [sp, #-16]!; mov x29, sp; b.ne -8; bl -12; adrp x0, +1 page; ret; undefined.
        let words = [
            0xa9bf_7bfd,
            0x9100_03fd,
            0x54ff_ffc1,
            0x97ff_fffd,
            0xb000_0000,
            0xd65f_03c0,
            u32::MAX,
        ];
        assert_eq!(
            texts(&words),
            [
                "stp x29, x30, [sp, #-0x10]!",
                "mov x29, sp",
                "b.ne 0x1000 <f>",
                "bl 0x1000 <f>",
                "adrp x0, 0x2000",
                "ret",
                ".word 0xffffffff",
            ]
        );
    }

    #[test]
    fn bytes_that_are_no_instructions_are_no_trap() {
        // xorshift32 reaches every word but 0.
        let mut word: u32 = 1;
        for _ in 0..500_000 {
            word ^= word << 13;
            word ^= word >> 17;
            word ^= word << 5;
            assert_eq!(texts(&[word]).len(), 1);
            for bits in [32, 64] {
                let bytes = word.to_le_bytes();
                assert!(
                    !x86(bits, &bytes, u64::MAX - 1, Syntax::Intel, &|_| String::new(
                    ))
                    .is_empty()
                );
            }
        }
    }
}
