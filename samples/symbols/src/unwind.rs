//! Unwinding: the callers of a thread from its registers and a copy of its stack.

use gimli::{EvaluationResult, Expression, Location, Register, Value};

use crate::call_frames::{Bytes, Rule, Rules};

/// Registers that have a number in DWARF and are restored.
const REGISTERS: usize = 33;
/// Operations of one expression.
const MOST_OPERATIONS: u32 = 1000;

/// Architecture whose stacks can be unwound.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Architecture {
    /// x86-64 (System V ABI, AMD64 Architecture Processor Supplement, section 3.6.2).
    X86_64,
    /// AArch64 (DWARF for the Arm 64-bit Architecture).
    Aarch64,
}

/// Numbers of registers in `arch/x86/include/uapi/asm/perf_regs.h`, by their numbers in DWARF; 16 is the return address.
const X86_64: [u32; 17] = [0, 3, 2, 1, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23, 8];
/// Registers that a function of x86-64 gives back as they were: rbx, rbp, r12 to r15.
const X86_64_KEPT: [u16; 6] = [3, 6, 12, 13, 14, 15];

impl Architecture {
    /// Returns the architecture with a name of uname(2).
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "x86_64" => Some(Self::X86_64),
            "aarch64" => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// Returns the architecture whose 64-bit processes have these registers (`asm/perf_regs.h`), for a recording that does not
    /// name its machine; `None` if several may have, or none that is known.
    pub fn from_registers(registers: u64) -> Option<Self> {
        // x86_64 alone has r8 to r15 and ends with them; aarch64 alone ends with bit 32, its program counter: others have
        // fewer, or more behind that.
        match (
            registers >> 32,
            registers >> 24 & 0xff,
            registers >> 16 & 0xff,
        ) {
            (0, 0, 0xff) => Some(Self::X86_64),
            (1, 0xff, 0xff) => Some(Self::Aarch64),
            _ => None,
        }
    }

    /// Returns the number in `asm/perf_regs.h` of the register that has the address of the instruction.
    pub fn instruction_register(self) -> u32 {
        match self {
            Self::X86_64 => 8,
            Self::Aarch64 => 32,
        }
    }

    /// Returns the registers that unwinding needs, as bits numbered by the architecture's `asm/perf_regs.h`.
    pub fn registers(self) -> u64 {
        match self {
            // All but ds, es, fs and gs, which Linux does not give.
            Self::X86_64 => 0xff_0fff,
            Self::Aarch64 => (1 << 33) - 1,
        }
    }

    /// Returns the number in `asm/perf_regs.h` of a register by its number in DWARF.
    fn of_perf(self, register: usize) -> Option<u32> {
        match self {
            Self::X86_64 => X86_64.get(register).copied(),
            Self::Aarch64 => register.try_into().ok(),
        }
    }

    fn stack_pointer(self) -> Register {
        match self {
            Self::X86_64 => gimli::X86_64::RSP,
            Self::Aarch64 => gimli::AArch64::SP,
        }
    }

    fn frame_pointer(self) -> Register {
        match self {
            Self::X86_64 => gimli::X86_64::RBP,
            Self::Aarch64 => gimli::AArch64::X29,
        }
    }

    fn program_counter(self) -> Register {
        match self {
            Self::X86_64 => gimli::X86_64::RA,
            Self::Aarch64 => gimli::AArch64::PC,
        }
    }

    /// Returns true if a function gives a register back as it was, unless it says something else.
    fn keeps(self, register: usize) -> bool {
        match self {
            Self::X86_64 => X86_64_KEPT
                .iter()
                .any(|kept| usize::from(*kept) == register),
            Self::Aarch64 => (19..31).contains(&register),
        }
    }

    /// Returns an address of code without the bits that sign it (Arm's pointer authentication).
    fn unsigned(self, address: u64) -> u64 {
        match self {
            Self::X86_64 => address,
            Self::Aarch64 => address & ((1 << 48) - 1),
        }
    }
}

/// Registers of a thread in user mode and the top of its stack, as a sample has them.
///
/// ```
/// use quipu_symbols::{Architecture, Processes, Symbolizer, ThreadState};
///
/// // Of x86-64 register 7 is the stack pointer and 8 the instruction pointer.
/// let registers = |register| Some(if register == 8 { 0x40_1000 } else { 0x7fff_0000 });
/// let thread = ThreadState::new(Architecture::X86_64, registers, &[]);
/// let mut chain = Vec::new();
/// Symbolizer::new().unwind(&Processes::new(), 1, thread, 127, &mut chain);
/// // Nothing is known of the program: there is the instruction alone.
/// assert_eq!(chain, [0x40_1000]);
/// ```
#[derive(Debug, Clone)]
pub struct ThreadState<'a> {
    architecture: Architecture,
    /// By their numbers in DWARF.
    registers: [Option<u64>; REGISTERS],
    /// Address of the first byte of the stack.
    bottom: u64,
    stack: &'a [u8],
    /// The address at which the rules of the present frame are looked up.
    lookup: Option<u64>,
}

impl<'a> ThreadState<'a> {
    /// Returns the state of a thread from its registers, by their numbers in `asm/perf_regs.h`, and the bytes from its
    /// stack pointer up.
    pub fn new(
        architecture: Architecture,
        register: impl Fn(u32) -> Option<u64>,
        stack: &'a [u8],
    ) -> Self {
        let registers = std::array::from_fn(|number| register(architecture.of_perf(number)?));
        let mut thread = Self {
            architecture,
            registers,
            bottom: 0,
            stack,
            lookup: None,
        };
        thread.bottom = thread.get(architecture.stack_pointer()).unwrap_or(0);
        thread.lookup = thread.get(architecture.program_counter());
        thread
    }

    /// Returns the address of the instruction of the present frame: the one that was sampled, or the last byte of a call.
    pub(crate) fn address(&self) -> Option<u64> {
        self.lookup
    }

    /// Goes on to the caller, by the rules of the present frame. `bias` is what the addresses in memory are higher
    /// than those of the file. There is no caller after `None`.
    pub(crate) fn step(&mut self, rules: &Rules, bias: u64) -> Option<()> {
        let evaluation = Evaluation {
            thread: self,
            rules,
            bias,
        };
        let cfa = evaluation.value(&rules.cfa, None)?;
        let kept =
            |number: usize| self.registers[number].filter(|_| self.architecture.keeps(number));
        let mut registers: [_; REGISTERS] = std::array::from_fn(kept);
        for (register, rule) in &rules.registers {
            if let Some(place) = registers.get_mut(usize::from(register.0)) {
                *place = match rule {
                    Rule::SameValue => self.get(*register),
                    rule => evaluation.value(rule, Some(cfa)),
                };
            }
        }
        let stack_pointer = usize::from(self.architecture.stack_pointer().0);
        let has_rule = |(register, _): &(Register, _)| usize::from(register.0) == stack_pointer;
        if !rules.registers.iter().any(has_rule) {
            registers[stack_pointer] = Some(cfa);
        }
        let counter = *registers.get(usize::from(rules.return_address.0))?;
        let counter = self
            .architecture
            .unsigned(counter.filter(|address| *address != 0)?);
        let before = self.get(self.architecture.stack_pointer())?;
        let (after, of_self) = (registers[stack_pointer]?, self.lookup);
        // A signal may have a stack of its own; nothing else goes back, and a leaf may have no frame.
        if !rules.is_signal && (after < before || (after == before && self.is_at(counter))) {
            return None;
        }
        registers[usize::from(self.architecture.program_counter().0)] = Some(counter);
        self.registers = registers;
        self.lookup = if rules.is_signal {
            Some(counter)
        } else {
            counter.checked_sub(1)
        };
        (self.lookup != of_self || after != before).then_some(())
    }

    /// Returns true if the present frame is at an address already.
    fn is_at(&self, counter: u64) -> bool {
        self.get(self.architecture.program_counter()) == Some(counter)
    }

    fn get(&self, register: Register) -> Option<u64> {
        self.registers.get(usize::from(register.0)).copied()?
    }

    /// Returns `len` bytes of the stack as a number.
    fn memory(&self, address: u64, len: u8) -> Option<u64> {
        let from = usize::try_from(address.checked_sub(self.bottom)?).ok()?;
        let bytes = self.stack.get(from..)?.get(..usize::from(len))?;
        let mut word = [0; 8];
        word.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(u64::from_le_bytes(word))
    }
}

/// The way from the frame of a function to that of its caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallerOf {
    /// There is none: it is the first frame of a thread.
    FirstFrame,
    /// By the frame pointer, which call chains of frame pointers follow.
    FramePointer,
    /// By the stack pointer or otherwise: the frame pointer is that of a caller, or no frame pointer at all.
    Otherwise,
}

impl Rules {
    /// Returns the way to the caller; `None` if nothing is said of a return address. An undefined one marks the first frame of a
    /// thread (DWARF 5, section 6.4.4).
    pub(crate) fn caller(&self, machine: Architecture) -> Option<CallerOf> {
        let mut registers = self.registers.iter();
        let found = registers.find(|(register, _)| *register == self.return_address);
        match found.map(|(_, rule)| rule) {
            Some(Rule::Undefined) => return Some(CallerOf::FirstFrame),
            None if !machine.keeps(usize::from(self.return_address.0)) => return None,
            _ => {}
        }
        let is_pointer = |register| register == machine.frame_pointer();
        let by_pointer = matches!(self.cfa, Rule::Register(register, _) if is_pointer(register));
        // Compilers for AArch64 address a frame by the stack pointer where they make a frame record too.
        let in_record = |(register, rule): &(Register, Rule)| {
            is_pointer(*register) && matches!(rule, Rule::Offset(_))
        };
        let has_record = machine == Architecture::Aarch64 && self.registers.iter().any(in_record);
        // Where one is made, the frame is larger than what a call puts there.
        let of_call = match machine {
            Architecture::Aarch64 => 0,
            _ => 8,
        };
        let has_frame = matches!(self.cfa, Rule::Register(_, offset) if offset > of_call);
        Some(
            match by_pointer || has_record || (self.is_of_go && has_frame) {
                true => CallerOf::FramePointer,
                false => CallerOf::Otherwise,
            },
        )
    }
}

/// A frame in which rules are evaluated.
struct Evaluation<'a, 'b> {
    thread: &'a ThreadState<'b>,
    rules: &'a Rules,
    bias: u64,
}

impl Evaluation<'_, '_> {
    /// Returns the value that a rule gives; `cfa` is the canonical frame address, where it is known.
    fn value(&self, rule: &Rule, cfa: Option<u64>) -> Option<u64> {
        match rule {
            Rule::Undefined | Rule::SameValue => None,
            Rule::Register(register, offset) => {
                Some(self.thread.get(*register)?.wrapping_add_signed(*offset))
            }
            Rule::Offset(offset) => self.thread.memory(cfa?.wrapping_add_signed(*offset), 8),
            Rule::ValueOffset(offset) => Some(cfa?.wrapping_add_signed(*offset)),
            Rule::Expression(expression) => self.thread.memory(self.evaluate(expression, cfa)?, 8),
            Rule::ValueExpression(expression) => self.evaluate(expression, cfa),
        }
    }

    fn evaluate(&self, expression: &Expression<Bytes>, initial: Option<u64>) -> Option<u64> {
        let mut evaluation = expression.clone().evaluation(self.rules.encoding);
        evaluation.set_max_iterations(MOST_OPERATIONS);
        if let Some(initial) = initial {
            evaluation.set_initial_value(initial);
        }
        let mut result = evaluation.evaluate().ok()?;
        loop {
            result = match result {
                EvaluationResult::Complete => break,
                EvaluationResult::RequiresRegister { register, .. } => {
                    let value = Value::Generic(self.thread.get(register)?);
                    evaluation.resume_with_register(value).ok()?
                }
                EvaluationResult::RequiresMemory {
                    address,
                    size,
                    space: None,
                    ..
                } => {
                    let value = Value::Generic(self.thread.memory(address, size)?);
                    evaluation.resume_with_memory(value).ok()?
                }
                EvaluationResult::RequiresRelocatedAddress(address) => {
                    let address = address.wrapping_add(self.bias);
                    evaluation.resume_with_relocated_address(address).ok()?
                }
                _ => return None,
            };
        }
        match evaluation.result().first()?.location {
            Location::Address { address } => Some(address),
            Location::Register { register } => self.thread.get(register),
            Location::Value {
                value: Value::Generic(value) | Value::U64(value),
            } => Some(value),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
