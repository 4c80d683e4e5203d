//! The methods of finding call chains.

use std::str::FromStr;

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
}
