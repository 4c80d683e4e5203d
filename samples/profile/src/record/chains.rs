//! The methods of finding call chains, and what each needs in samples.

use std::env::consts::ARCH;

use quipu_linux::sampling::{
    BranchSampleType, ExtraRecords, SampleType, SamplerFlags, SamplerSpec,
};
use quipu_symbols::Architecture;

use quipu_shell::Failure;

use super::call_graph::CallGraph;

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
