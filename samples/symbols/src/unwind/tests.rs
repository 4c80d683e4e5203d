//! From a frame to its caller: every rule, and where there is none.

use gimli::{Encoding, Format};

use super::*;

#[test]
fn the_way_to_the_caller_is_what_the_rules_say() {
    use CallerOf::{FirstFrame, FramePointer, Otherwise};
    use gimli::{AArch64, X86_64};
    let rules = |cfa, return_address, registers| {
        of_eh_frame(Rule::Register(cfa, 16), registers, return_address)
    };
    let x86 = |cfa, saved: Vec<(Register, Rule)>| {
        rules(cfa, X86_64::RA, saved).caller(Architecture::X86_64)
    };
    let saved = || (X86_64::RA, Rule::Offset(-8));
    assert_eq!(x86(X86_64::RBP, vec![saved()]), Some(FramePointer));
    assert_eq!(x86(X86_64::RSP, vec![saved()]), Some(Otherwise));
    // A register that is saved need not be a frame pointer.
    let pushed = (X86_64::RBP, Rule::Offset(-16));
    assert_eq!(x86(X86_64::RSP, vec![saved(), pushed]), Some(Otherwise));
    // Go says nothing of its frame pointers, which are in the frames that functions make.
    for (offset, way) in [(8, Otherwise), (16, FramePointer)] {
        let go = Rules {
            cfa: Rule::Register(X86_64::RSP, offset),
            is_of_go: true,
            ..rules(X86_64::RSP, X86_64::RA, vec![saved()])
        };
        assert_eq!(go.caller(Architecture::X86_64), Some(way));
    }
    let first = vec![(X86_64::RA, Rule::Undefined)];
    assert_eq!(x86(X86_64::RSP, first), Some(FirstFrame));
    assert_eq!(x86(X86_64::RSP, vec![]), None);

    let arm = |saved| rules(AArch64::SP, AArch64::X30, saved).caller(Architecture::Aarch64);
    // The return address is in its register.
    assert_eq!(arm(vec![]), Some(Otherwise));
    let record = [AArch64::X29, AArch64::X30].map(|register| (register, Rule::Offset(-16)));
    assert_eq!(arm(record.into()), Some(FramePointer));
    assert_eq!(arm(vec![(AArch64::X30, Rule::Undefined)]), Some(FirstFrame));
}

/// Address of the first byte of the stack.
const BOTTOM: u64 = 0x7000;
const PC: u64 = 0x40_1000;

/// A stack of words that say where they are: the first is 0x100, the next one 0x101.
fn stack(words: u64) -> Vec<u8> {
    (0..words).flat_map(|n| (0x100 + n).to_le_bytes()).collect()
}

fn of_eh_frame(cfa: Rule, registers: Vec<(Register, Rule)>, return_address: Register) -> Rules {
    Rules {
        cfa,
        registers,
        return_address,
        is_signal: false,
        is_of_go: false,
        encoding: Encoding {
            address_size: 8,
            format: Format::Dwarf32,
            version: 1,
        },
    }
}

/// Returns a thread of x86-64 whose registers have a hundred times their numbers in DWARF.
fn of_x86(stack: &[u8]) -> ThreadState<'_> {
    let register = |of_perf| {
        let number = X86_64.iter().position(|known| *known == of_perf)?;
        Some(match number {
            7 => BOTTOM,
            16 => PC,
            _ => number as u64 * 100,
        })
    };
    ThreadState::new(Architecture::X86_64, register, stack)
}

fn of_arm(return_address: u64, stack: &[u8]) -> ThreadState<'_> {
    let register = |number| match number {
        30 => Some(return_address),
        31 => Some(BOTTOM),
        32 => Some(PC),
        _ => Some(u64::from(number) * 100),
    };
    ThreadState::new(Architecture::Aarch64, register, stack)
}

/// Rules of x86-64 for a frame so many bytes long.
fn x86_rules(len: i64, registers: Vec<(Register, Rule)>) -> Rules {
    use gimli::X86_64;
    let saved = (X86_64::RA, Rule::Offset(-8));
    let registers = [saved].into_iter().chain(registers).collect();
    of_eh_frame(Rule::Register(X86_64::RSP, len), registers, X86_64::RA)
}

#[test]
fn an_architecture_is_known_by_its_name_and_its_registers() {
    let all = [Architecture::X86_64, Architecture::Aarch64];
    assert_eq!(
        ["x86_64", "aarch64", "i686"].map(Architecture::from_name),
        [Some(all[0]), Some(all[1]), None]
    );
    // All of asm/perf_regs.h but the segments of x86.
    let registers = all.map(Architecture::registers);
    assert_eq!(registers, [0x00ff_0fff, 0x1_ffff_ffff]);
    assert_eq!(all.map(Architecture::instruction_register), [8, 32]);
    let known = registers.map(Architecture::from_registers);
    assert_eq!(known, all.map(Some));
    let with_segments = Architecture::from_registers(0xff_ffff);
    assert_eq!(with_segments, Some(Architecture::X86_64));
    for other in [0, 0x7f_0fff, 0x1ff_0fff, 0x1_00ff_0fff, 0x3_ffff_ffff] {
        assert_eq!(Architecture::from_registers(other), None, "{other:#x}");
    }
    let register = |number| Some(u64::from(number));
    let x86 = ThreadState::new(Architecture::X86_64, register, &[]);
    // rax, rdx, rcx, rbx, rsi, rdi, rbp, rsp, r8 to r15, and the return address as rip.
    let numbers = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8];
    assert_eq!(x86.registers[..17], numbers.map(Some));
    assert_eq!(x86.registers[17..], [None; 16]);
    assert_eq!((x86.bottom, x86.address()), (7, Some(8)));
    let arm = ThreadState::new(Architecture::Aarch64, register, &[]);
    assert_eq!(arm.registers, std::array::from_fn(|n| Some(n as u64)));
    assert_eq!((arm.bottom, arm.address()), (31, Some(32)));
}

#[test]
fn each_rule_restores_its_register() {
    use gimli::X86_64;
    let stack = stack(8);
    let mut thread = of_x86(&stack);
    let rules = x86_rules(
        32,
        vec![
            (X86_64::RBX, Rule::Offset(-16)),
            (X86_64::RBP, Rule::ValueOffset(-5)),
            (X86_64::RDX, Rule::SameValue),
            (X86_64::R12, Rule::Undefined),
            (X86_64::R13, Rule::Register(X86_64::RDI, -1)),
            // Below and above what was copied.
            (X86_64::R8, Rule::Offset(-33)),
            (X86_64::R9, Rule::Offset(25)),
            (X86_64::R10, Rule::Offset(24)),
            (Register(40), Rule::SameValue),
        ],
    );
    assert_eq!(thread.step(&rules, 0), Some(()));
    let mut expected = [None; REGISTERS];
    for (register, value) in [
        (1, 100),
        (3, 0x102),
        (5, 0),
        (6, BOTTOM + 27),
        (7, BOTTOM + 32),
        (10, 0x107),
        (13, 499),
        // Nothing is said of these, which every function gives back.
        (14, 1400),
        (15, 1500),
        (16, 0x103),
    ] {
        expected[register] = Some(value).filter(|_| register != 5);
    }
    assert_eq!(thread.registers, expected);
    assert_eq!(thread.address(), Some(0x102), "the last byte of the call");
}

#[test]
fn expressions_are_evaluated_in_the_frame() {
    use gimli::X86_64;
    let stack = stack(8);
    let value = |bytes: &[u8], is_value: bool| {
        let bytes = Bytes::new(bytes.into(), gimli::LittleEndian);
        let expression = Expression(bytes);
        let rule = match is_value {
            true => Rule::ValueExpression(expression),
            false => Rule::Expression(expression),
        };
        let mut thread = of_x86(&stack);
        let rules = x86_rules(16, vec![(X86_64::RBX, rule)]);
        thread.step(&rules, 0x5000)?;
        thread.get(X86_64::RBX)
    };
    let cfa = BOTTOM + 16;
    for (bytes, expected) in [
        // The frame's address is on the stack of the machine: DW_OP_plus_uconst, DW_OP_nop.
        (&[0x23, 8][..], Some(cfa + 8)),
        (&[0x96], Some(cfa)),
        // DW_OP_breg7, DW_OP_deref, DW_OP_deref_size.
        (&[0x77, 9], Some(BOTTOM + 9)),
        (&[0x77, 8, 0x06], Some(0x101)),
        (&[0x77, 8, 0x94, 1], Some(1)),
        (&[0x77, 0x78, 0x06], None),
        (&[0x77, 57, 0x06], None),
        (&[0x77, 56, 0x06], Some(0x107)),
        // DW_OP_addr is an address of the file.
        (&[0x03, 1, 2, 0, 0, 0, 0, 0, 0], Some(0x5201)),
        // DW_OP_reg6 and a register that is not known; DW_OP_lit5 and DW_OP_stack_value.
        (&[0x56], Some(600)),
        (&[0x6f, 0x6f], None),
        (&[0x90, 17], None),
        (&[0x92, 17, 0], None),
        (&[0x35, 0x9f], Some(5)),
        // DW_OP_skip to itself, DW_OP_call_frame_cfa, a number that is cut, DW_OP_implicit_value.
        (&[0x2f, 0xfd, 0xff], None),
        (&[0x9c], None),
        (&[0x03, 1], None),
        (&[0x9e, 1, 7], None),
    ] {
        assert_eq!(value(bytes, true), expected, "{bytes:x?}");
    }
    for (bytes, expected) in [
        (&[0x77, 24][..], Some(0x103)),
        (&[0x23, 8], Some(0x103)),
        (&[0x30], None),
    ] {
        assert_eq!(value(bytes, false), expected, "{bytes:x?}");
    }
    // The address of a frame may be one too.
    let bytes = Bytes::new([0x77, 24].as_slice().into(), gimli::LittleEndian);
    let cfa = Rule::ValueExpression(Expression(bytes));
    let rules = Rules {
        cfa,
        ..x86_rules(0, vec![])
    };
    let mut thread = of_x86(&stack);
    assert_eq!(thread.step(&rules, 0), Some(()));
    assert_eq!(thread.get(X86_64::RSP), Some(BOTTOM + 24));
    assert_eq!(thread.address(), Some(0x101));
}

#[test]
fn a_chain_ends_where_there_is_no_caller_or_nothing_goes_on() {
    use gimli::X86_64;
    let words = [PC, 0, 0x50_0000, BOTTOM];
    let stack: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let step = |rules: &Rules| {
        let mut thread = of_x86(&stack);
        let stepped = thread.step(rules, 0);
        stepped.and(thread.address())
    };
    let counter_at = |at| (X86_64::RA, Rule::Offset(at));
    let sp = |offset| Rule::Register(X86_64::RSP, offset);
    let rules = |cfa, registers| of_eh_frame(cfa, registers, X86_64::RA);
    // To another frame; a return address of 0; none; and one beyond the copy of the stack.
    assert_eq!(step(&x86_rules(24, vec![])), Some(0x4f_ffff));
    assert_eq!(step(&x86_rules(16, vec![])), None);
    assert_eq!(step(&rules(sp(24), vec![])), None);
    assert_eq!(step(&x86_rules(40, vec![])), None);
    // Registers that are not known.
    assert_eq!(step(&rules(Rule::Register(Register(17), 0), vec![])), None);
    let lost = (X86_64::RSP, Rule::Undefined);
    assert_eq!(step(&x86_rules(24, vec![lost])), None);
    let odd = Rules {
        return_address: Register(REGISTERS as u16),
        ..x86_rules(24, vec![])
    };
    assert_eq!(step(&odd), None);
    // The stack does not go back, but from that of a signal; and it may stay, but not with the instruction.
    let mut signal = Rules {
        is_signal: true,
        ..rules(sp(-8), vec![counter_at(24)])
    };
    assert_eq!(
        step(&signal),
        Some(0x50_0000),
        "an instruction, and no call"
    );
    signal.is_signal = false;
    assert_eq!(step(&signal), None);
    assert_eq!(step(&rules(sp(0), vec![counter_at(16)])), Some(0x4f_ffff));
    assert_eq!(step(&rules(sp(0), vec![counter_at(0)])), None);
    assert_eq!(step(&rules(sp(8), vec![counter_at(-8)])), Some(PC - 1));
    let at_itself = |offset| Rules {
        is_signal: true,
        ..rules(sp(offset), vec![counter_at(-offset)])
    };
    assert_eq!(step(&at_itself(0)), None);
    assert_eq!(step(&at_itself(8)), Some(PC));
}

#[test]
fn signatures_of_return_addresses_are_left_out() {
    use gimli::AArch64;
    let stack = stack(4);
    let rules = |registers| of_eh_frame(Rule::Register(AArch64::SP, 16), registers, AArch64::X30);
    let mut thread = of_arm(0x00ab_ffff_1234_5678, &stack);
    assert_eq!(thread.step(&rules(vec![]), 0), Some(()));
    assert_eq!(thread.address(), Some(0xffff_1234_5677));
    let kept = |number: usize| thread.registers[number].is_some();
    let numbers: Vec<_> = (0..REGISTERS).filter(|number| kept(*number)).collect();
    assert_eq!(numbers, (19..=32).collect::<Vec<_>>());
    assert_eq!(thread.registers[31], Some(BOTTOM + 16));
    assert_eq!(thread.registers[32], Some(0xffff_1234_5678));
    // A leaf has no frame, and its caller the same stack pointer, but once.
    let leaf = of_eh_frame(Rule::Register(AArch64::SP, 0), vec![], AArch64::X30);
    let mut thread = of_arm(0x50_0000, &stack);
    assert_eq!(thread.step(&leaf, 0), Some(()));
    assert_eq!(thread.address(), Some(0x4f_ffff));
    assert_eq!(thread.step(&leaf, 0), None);
    let high = 0xff00_0000_0000_0001_u64.to_le_bytes();
    let mut x86 = of_x86(&high);
    assert_eq!(x86.step(&x86_rules(8, vec![]), 0), Some(()));
    assert_eq!(x86.address(), Some(0xff00_0000_0000_0000));
}
