//! Branch stacks of samples, in the form of perf (`perf_sample__fprintf_brstack`, `tools/perf/builtin-script.c`).

use std::fmt::Write;

use quipu_perf_data::{Branch, BranchStack, BranchType, Sample, Speculation};

use crate::recording::{Places, Replay, owner_of_address};
use quipu_shell::terminal::escaped;

use super::fields::{Field, FieldSet};
use super::json::{BranchRow, Frame};

/// Appends the branches of a sample, the newest first, if they are asked for.
pub(super) fn push(
    text: &mut String,
    fields: FieldSet,
    (replay, places): (&mut Replay, &mut Places),
    sample: &Sample<'_>,
    pid: i32,
) {
    let with_symbols = fields.has(Field::BranchSymbols) && !fields.has(Field::Branches);
    if !with_symbols && !fields.has(Field::Branches) {
        return;
    }
    let mut end = |text: &mut String, address: u64| {
        if !with_symbols {
            let _ = write!(text, "{address:#x}");
        }
        if !with_symbols && !fields.has(Field::Object) {
            return;
        }
        let place = places.at(replay, owner_of_address(address, pid), address);
        if with_symbols {
            let _ = match &place.code.symbol {
                Some(name) => write!(text, "{}+{:#x}", escaped(name), place.offset),
                None => write!(text, "[unknown]"),
            };
        }
        if fields.has(Field::Object) {
            let _ = write!(text, "({})", escaped(&place.code.object));
        }
    };
    for branch in sample.branches().iter().flat_map(BranchStack::iter) {
        // The blank of the flags before it is enough for names, as perf has it.
        if !with_symbols {
            text.push(' ');
        }
        end(text, branch.from);
        text.push('/');
        end(text, branch.to);
        flags(text, &branch);
    }
}

/// Returns the branches of a sample, the newest first.
pub(super) fn rows(
    (replay, places): (&mut Replay, &mut Places),
    sample: &Sample<'_>,
    pid: i32,
) -> Option<Vec<BranchRow>> {
    let mut end = |address: u64| {
        let place = places.at(replay, owner_of_address(address, pid), address);
        Frame::new(address, &place)
    };
    let branches = sample.branches()?;
    let row = |branch: Branch| BranchRow {
        from: end(branch.from),
        to: end(branch.to),
        mispredicted: (branch.predicted() || branch.mispredicted()).then(|| !branch.predicted()),
        in_transaction: branch.in_transaction(),
        aborted: branch.aborted(),
        cycles: branch.cycles(),
        kind: Some(type_name(branch.branch_type())).filter(|name| !name.is_empty()),
    };
    Some(branches.iter().map(row).collect())
}

/// Appends how a branch was predicted, whether it was in a transaction, its cycles and its type.
fn flags(text: &mut String, branch: &Branch) {
    let prediction = match (branch.mispredicted(), branch.predicted()) {
        (_, true) => 'P',
        (true, false) => 'M',
        (false, false) => '-',
    };
    let sign = |yes, sign| if yes { sign } else { '-' };
    let _ = write!(
        text,
        "/{prediction}/{}/{}/{}/{}/{} ",
        sign(branch.in_transaction(), 'X'),
        sign(branch.aborted(), 'A'),
        branch.cycles(),
        type_name(branch.branch_type()),
        match branch.speculation() {
            Speculation::WrongPath => "SPEC_WRONG_PATH",
            Speculation::None => "NON_SPEC_CORRECT_PATH",
            Speculation::CorrectPath => "SPEC_CORRECT_PATH",
            _ => "-",
        }
    );
}

/// Returns the name of a type (`branch_type_name`, `tools/perf/util/branch.c`).
fn type_name(branch_type: BranchType) -> &'static str {
    match branch_type {
        BranchType::Conditional => "COND",
        BranchType::Unconditional => "UNCOND",
        BranchType::Indirect => "IND",
        BranchType::Call => "CALL",
        BranchType::IndirectCall => "IND_CALL",
        BranchType::Return => "RET",
        BranchType::SystemCall => "SYSCALL",
        BranchType::SystemReturn => "SYSRET",
        BranchType::ConditionalCall => "COND_CALL",
        BranchType::ConditionalReturn => "COND_RET",
        BranchType::ExceptionReturn => "ERET",
        BranchType::Interrupt => "IRQ",
        BranchType::SystemError => "SERROR",
        BranchType::NotInTransaction => "NO_TX",
        BranchType::AlignmentFault => "FAULT_ALGN",
        BranchType::DataFault => "FAULT_DATA",
        BranchType::InstructionFault => "FAULT_INST",
        BranchType::Architecture(1) => "ARCH_1",
        BranchType::Architecture(2) => "ARCH_2",
        BranchType::Architecture(3) => "ARCH_3",
        BranchType::Architecture(4) => "ARCH_4",
        BranchType::Architecture(_) => "ARCH_5",
        _ => "",
    }
}
