//! The methods of finding call chains.

use std::env::consts::ARCH;
use std::str::FromStr;

use quipu_linux::sampling::{
    BranchSampleType, ExtraRecords, SampleType, SamplerFlags, SamplerSpec,
};
use quipu_symbols::Architecture;

use quipu_shell::Failure;

/// Bytes of stack in a sample unless another number is named, as perf has it.
const USUAL_DUMP: u32 = 8192;
/// The most bytes of stack in a sample: the record's length is a number of 16 bits (`perf_sample_ustack_size`,
/// `kernel/events/core.c`).
const LARGEST_DUMP: u32 = 65528;

/// A method of finding call chains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallGraph {
    /// By frame pointers.
    FramePointers,
    /// By frame pointers, those of user mode when the thread is back there: once for all samples of a stay in the kernel.
    DeferredFramePointers,
    /// By a copy of so many bytes of the stack, from which the callers are found when the recording is read.
    StackCopies(u32),
    /// By the CPU's record of calls that have not returned.
    LastBranches,
}

impl FromStr for CallGraph {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (method, size) = match text.split_once(',') {
            Some((method, size)) => (method, Some(size)),
            None => (text, None),
        };
        match (method.trim(), size) {
            ("fp", None) => Ok(Self::FramePointers),
            ("fp", Some("defer")) => Ok(Self::DeferredFramePointers),
            ("lbr", None) => Ok(Self::LastBranches),
            ("dwarf", None) => Ok(Self::StackCopies(USUAL_DUMP)),
            ("dwarf", Some(size)) => {
                let bytes = size.trim().parse().ok();
                let bytes = bytes.and_then(|bytes: u32| bytes.checked_next_multiple_of(8));
                match bytes {
                    Some(bytes @ 8..=LARGEST_DUMP) => Ok(Self::StackCopies(bytes)),
                    _ => Err(format!(
                        "expected a number of bytes of stack up to {LARGEST_DUMP}"
                    )),
                }
            }
            _ => Err("expected fp, dwarf, dwarf,BYTES, lbr or fp,defer".to_owned()),
        }
    }
}

impl CallGraph {
    /// Asks for what the method needs in samples.
    pub(super) fn ask(self, spec: &mut SamplerSpec) -> Result<(), Failure> {
        spec.sample_type |= SampleType::CALLCHAIN;
        match self {
            Self::FramePointers => {}
            Self::DeferredFramePointers => {
                spec.flags |= SamplerFlags::DEFER_USER_FRAMES;
                spec.extra_records |= ExtraRecords::DEFERRED_CALLCHAINS;
            }
            Self::StackCopies(bytes) => {
                let machine = Architecture::from_name(ARCH).ok_or_else(|| {
                    Failure::usage(format_args!(
                        "--call-graph dwarf: stacks are unwound on x86_64 and aarch64, and this is {ARCH}; -g follows \
                         frame pointers"
                    ))
                })?;
                spec.sample_type |= SampleType::REGS_USER | SampleType::STACK_USER;
                spec.user_registers = machine.registers();
                spec.user_stack = bytes;
                spec.flags |= SamplerFlags::NO_USER_FRAMES;
                // perf looks for call frame information where the whole of a file is mapped.
                spec.extra_records |= ExtraRecords::DATA_MAPPINGS;
            }
            Self::LastBranches => {
                if !spec.branches.is_empty() {
                    return Err(Failure::usage(
                        "--call-graph lbr has the CPU record calls, and -b or -j other branches: give one of them",
                    ));
                }
                spec.sample_type |= SampleType::BRANCH_STACK;
                spec.branches = BranchSampleType::USER
                    | BranchSampleType::CALL_STACK
                    | BranchSampleType::NO_FLAGS
                    | BranchSampleType::NO_CYCLES;
            }
        }
        Ok(())
    }
}

/// Returns true if call chains are found by frame pointers alone.
pub(super) fn follows_frame_pointers(spec: &SamplerSpec) -> bool {
    spec.sample_type.contains(SampleType::CALLCHAIN)
        && spec.user_stack == 0
        && !spec.branches.contains(BranchSampleType::CALL_STACK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_are_written_as_perf_has_them() {
        let read = |text: &str| text.parse::<CallGraph>().ok();
        assert_eq!(read("fp"), Some(CallGraph::FramePointers));
        assert_eq!(read("fp,defer"), Some(CallGraph::DeferredFramePointers));
        assert_eq!(read("lbr"), Some(CallGraph::LastBranches));
        assert_eq!(read("dwarf"), Some(CallGraph::StackCopies(8192)));
        assert_eq!(read("dwarf,4097"), Some(CallGraph::StackCopies(4104)));
        assert_eq!(read("dwarf,65528"), Some(CallGraph::StackCopies(65528)));
        for wrong in [
            "",
            "dwarf,",
            "dwarf,0",
            "dwarf,65529",
            "dwarf,4294967295",
            "fp,8",
            "no",
        ] {
            assert_eq!(read(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn what_the_user_called_is_copied_or_told_by_the_cpu() {
        let mut spec = SamplerSpec::new::<quipu::EventSpec>([]);
        CallGraph::LastBranches.ask(&mut spec).expect("it is asked");
        assert!(spec.branches.contains(BranchSampleType::CALL_STACK));
        assert!(spec.sample_type.contains(SampleType::BRANCH_STACK));
        assert!(!follows_frame_pointers(&spec));
        let mut spec = SamplerSpec::new::<quipu::EventSpec>([]);
        assert!(!follows_frame_pointers(&spec));
        CallGraph::FramePointers.ask(&mut spec).expect("asked");
        assert!(follows_frame_pointers(&spec));
        let mut spec = SamplerSpec::new::<quipu::EventSpec>([]);
        CallGraph::DeferredFramePointers
            .ask(&mut spec)
            .expect("asked");
        assert!(spec.flags.contains(SamplerFlags::DEFER_USER_FRAMES));
        let mut spec = SamplerSpec::new::<quipu::EventSpec>([]);
        let asked = CallGraph::StackCopies(4096).ask(&mut spec);
        match Architecture::from_name(ARCH) {
            Some(_) => {
                asked.expect("it is asked");
                assert_eq!(spec.user_stack, 4096);
                assert!(!follows_frame_pointers(&spec));
                assert!(spec.flags.contains(SamplerFlags::NO_USER_FRAMES));
            }
            None => assert!(asked.is_err()),
        }
    }
}
