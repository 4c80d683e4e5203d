//! Why functions of an object have no names.

use std::fmt::{self, Display, Formatter};

/// Reason why functions of an object have no names, and what would help.
///
/// ```
/// use quipu_symbols::NoNames;
///
/// assert_eq!(NoNames::Gone.to_string(), "there is no such file");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NoNames {
    /// There is no file at its path.
    Gone,
    /// It was deleted while it was mapped, and no process has it any more.
    Deleted,
    /// Another file is there.
    AnotherFile,
    /// It is no ELF file.
    NoElf,
    /// It has no symbol table for debugging.
    Stripped,
    /// It has one, in which the functions are not.
    NotInTable,
    /// It is memory of no file: code that was made as the program ran.
    Memory,
    /// The vDSO of another kernel.
    Vdso,
    /// The recording has no mapping there.
    NotMapped,
    /// Another kernel was recorded.
    AnotherKernel,
    /// The addresses of the kernel's symbols are hidden.
    HiddenKernel,
    /// It was in a guest.
    Guest,
    /// The file of FreeBSD's kernel, or of a module, is not the one that was loaded, or not there.
    NotLoaded,
}

impl NoNames {
    /// All of them, in the order of their numbers in recordings, which stay.
    pub(crate) const ALL: [Self; 13] = [
        Self::Gone,
        Self::Deleted,
        Self::AnotherFile,
        Self::NoElf,
        Self::Stripped,
        Self::NotInTable,
        Self::Memory,
        Self::Vdso,
        Self::NotMapped,
        Self::AnotherKernel,
        Self::HiddenKernel,
        Self::Guest,
        Self::NotLoaded,
    ];

    /// Returns what would help, if something does.
    pub fn remedy(self) -> Option<&'static str> {
        Some(match self {
            Self::Gone | Self::Deleted => {
                "--symfs DIR finds it under a copy of its file system, and the cache ~/.debug by its build ID"
            }
            Self::AnotherFile => {
                "the recorded one is found under --symfs DIR, or by its build ID in ~/.debug"
            }
            Self::NoElf | Self::NotInTable | Self::NotMapped | Self::NotLoaded => return None,
            Self::Stripped => "install its debug symbols, or build it without -s",
            Self::Memory => {
                "compilers list their functions in /tmp/perf-PID.map (node --perf-basic-prof, java -XX:+DumpPerfMapAtExit, \
                 python -X perf)"
            }
            Self::Vdso => "read the file where it was recorded",
            Self::AnotherKernel => "--vmlinux FILE or --kallsyms FILE has its symbols",
            Self::HiddenKernel => "as root, or with kernel.kptr_restrict=0, they are seen",
            Self::Guest => "record in the guest",
        })
    }
}

impl Display for NoNames {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Gone => "there is no such file",
            Self::Deleted => "it was deleted",
            Self::AnotherFile => "not the file that was recorded",
            Self::NoElf => "it is no ELF file",
            Self::Stripped => "it is stripped",
            Self::NotInTable => "its symbol table has no functions there",
            Self::Memory => {
                "it is memory with code that was made as the program ran, and no map lists that"
            }
            Self::Vdso => "it is the vDSO of another kernel",
            Self::NotMapped => "the recording has no mapping there",
            Self::AnotherKernel => {
                "by its build ID, or its release and the host's name, it was another kernel"
            }
            Self::HiddenKernel => "kernel.kptr_restrict hides the kernel's addresses",
            Self::Guest => "it was in a guest",
            Self::NotLoaded => "its file is not there, or not the one that was loaded",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every reason by its number in recordings, with a part of its remedy.
    const EXPECTED: [(NoNames, &str, Option<&str>); 13] = [
        (
            NoNames::Gone,
            "there is no such file",
            Some("--symfs DIR finds it"),
        ),
        (
            NoNames::Deleted,
            "it was deleted",
            Some("--symfs DIR finds it"),
        ),
        (
            NoNames::AnotherFile,
            "not the file that was recorded",
            Some("the recorded one is found under --symfs DIR"),
        ),
        (NoNames::NoElf, "it is no ELF file", None),
        (
            NoNames::Stripped,
            "it is stripped",
            Some("install its debug symbols"),
        ),
        (
            NoNames::NotInTable,
            "its symbol table has no functions there",
            None,
        ),
        (
            NoNames::Memory,
            "it is memory with code that was made as the program ran, and no map lists that",
            Some(
                "/tmp/perf-PID.map (node --perf-basic-prof, java -XX:+DumpPerfMapAtExit, python -X perf)",
            ),
        ),
        (
            NoNames::Vdso,
            "it is the vDSO of another kernel",
            Some("read the file where it was recorded"),
        ),
        (
            NoNames::NotMapped,
            "the recording has no mapping there",
            None,
        ),
        (
            NoNames::AnotherKernel,
            "by its build ID, or its release and the host's name, it was another kernel",
            Some("--vmlinux FILE or --kallsyms FILE"),
        ),
        (
            NoNames::HiddenKernel,
            "kernel.kptr_restrict hides the kernel's addresses",
            Some("kernel.kptr_restrict=0"),
        ),
        (
            NoNames::Guest,
            "it was in a guest",
            Some("record in the guest"),
        ),
        (
            NoNames::NotLoaded,
            "its file is not there, or not the one that was loaded",
            None,
        ),
    ];

    #[test]
    fn every_reason_has_its_number_its_words_and_what_would_help() {
        assert_eq!(NoNames::ALL, EXPECTED.map(|(why, ..)| why));
        for (why, words, remedy) in EXPECTED {
            assert_eq!(why.to_string(), words);
            let found = why.remedy();
            assert_eq!(found.is_some(), remedy.is_some(), "{why:?}: {found:?}");
            let is_said = remedy.is_none_or(|part| found.unwrap_or_default().contains(part));
            assert!(is_said, "{why:?}: {found:?}");
        }
    }
}
