//! Probes: places in code, of the kernel or of a program, that are counted when they are reached.

use std::path::PathBuf;

/// A place in code whose executions are counted, by a breakpoint instruction that the kernel puts
/// there: Linux's kprobes and uprobes (`Documentation/trace/kprobes.rst`, `uprobetracer.rst`).
///
/// Unlike a [`Breakpoint`](crate::Breakpoint) it takes no debug register, counts in every process
/// that runs the code, and costs an exception each time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Probe {
    /// The program or library that the place is in: a path, or its name alone (`libc`, or a program in `PATH`). `None` for
    /// the kernel.
    pub object: Option<PathBuf>,
    /// The function. `None` when [`offset`](Self::offset) alone says where.
    pub symbol: Option<String>,
    /// Bytes after the start of the function; without one, the byte in the object's file or the
    /// address in the kernel.
    pub offset: u64,
    /// Counts the returns of the function instead of reaching the place.
    pub on_return: bool,
}

impl Probe {
    /// A function of the kernel.
    pub fn kernel(symbol: impl Into<String>) -> Self {
        Self {
            object: None,
            symbol: Some(symbol.into()),
            offset: 0,
            on_return: false,
        }
    }

    /// A function of a program or library.
    pub fn user(object: impl Into<PathBuf>, symbol: impl Into<String>) -> Self {
        Self {
            object: Some(object.into()),
            ..Self::kernel(symbol)
        }
    }

    /// The instruction at a byte of a program's or library's file.
    pub fn user_offset(object: impl Into<PathBuf>, offset: u64) -> Self {
        Self {
            object: Some(object.into()),
            symbol: None,
            offset,
            on_return: false,
        }
    }

    /// Moves it this many bytes further.
    #[must_use]
    pub fn at(mut self, offset: u64) -> Self {
        self.offset = offset;
        self
    }

    /// Makes it count the function's returns.
    #[must_use]
    pub fn returning(mut self) -> Self {
        self.on_return = true;
        self
    }

    /// The word that the text form begins with: `kprobe`, `kretprobe`, `uprobe`, `uretprobe`.
    pub const fn kind(&self) -> &'static str {
        match (self.object.is_some(), self.on_return) {
            (false, false) => "kprobe",
            (false, true) => "kretprobe",
            (true, false) => "uprobe",
            (true, true) => "uretprobe",
        }
    }
}
