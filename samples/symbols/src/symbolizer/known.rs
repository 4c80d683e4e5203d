//! Builds a symbolizer: the kernel, files and names that it knows.

use std::fs::File;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use crate::copies::Copies;
use crate::demangled::Style;
use crate::kernel::KernelSymbols;
use crate::kernel_space::{KERNEL, LazySymbols};
use crate::recorded_symbols::RecordedSymbols;

use super::Symbolizer;

impl Symbolizer {
    /// Adds the kernel's symbols; see [`KernelSymbols::recorded_at`].
    #[must_use]
    pub fn with_kernel(mut self, kernel: Option<KernelSymbols>) -> Self {
        self.set_kernel(kernel);
        self
    }

    /// For a recording of this machine and its kernel: files that compilers of its processes left in /tmp are theirs, what has no
    /// build ID is known by its inode, and the vDSO is that of this process.
    #[must_use]
    pub fn of_this_machine(mut self, yes: bool) -> Self {
        self.has_this_kernel = yes;
        self.recorded_at.this_machine = yes;
        self
    }

    /// Sets the time at which the recording ended: files without a build ID that have changed since are doubted.
    #[must_use]
    pub fn recorded_until(mut self, time: Option<SystemTime>) -> Self {
        self.recorded_at.time = time;
        self
    }

    /// Sets the function that returns the generation of the inode of a file, where its file system has one: another generation is
    /// another file, though the number of its inode is the same.
    #[must_use]
    pub fn with_generations(mut self, of: fn(&File) -> Option<u64>) -> Self {
        self.recorded_at.generation = Some(of);
        self
    }

    /// Finds inlined functions and source lines too, where there is debug information. Reading it takes
    /// time and memory.
    #[must_use]
    pub fn with_lines(mut self, yes: bool) -> Self {
        self.with_lines = yes;
        self
    }

    /// Leaves out the parameters and the types of results of C++ functions, as perf does.
    #[must_use]
    pub fn without_parameters(mut self, yes: bool) -> Self {
        self.style = if yes { Style::Short } else { Style::Whole };
        self
    }

    /// Reads a `/tmp/perf-PID.map` also if it is of a user who is neither root, nor that of this process, nor that of the process
    /// with this number while it runs.
    #[must_use]
    pub fn with_maps_of_others(mut self, yes: bool) -> Self {
        self.with_maps_of_others = yes;
        self
    }

    /// Sets a directory that stands for the root of the file system that was recorded: files are looked for under it, and not at
    /// their paths here.
    #[must_use]
    pub fn under(mut self, root: Option<PathBuf>) -> Self {
        self.root = root;
        self
    }

    /// Sets the build IDs that were recorded by path, for mappings that have none of their own. A file that has another one by
    /// now has other functions, and is left out. A copy with the recorded ID is read in its place, and in that of a file that is
    /// gone: from perf's cache (`~/.debug`), or that of debuginfod's clients (`$DEBUGINFOD_CACHE_PATH`,
    /// `~/.cache/debuginfod_client`).
    #[must_use]
    pub fn with_build_ids(mut self, ids: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> Self {
        self.build_ids = ids.into_iter().collect();
        self
    }

    /// Sets copies of files, for those that are in none of their places any more.
    #[must_use]
    pub fn with_copies(mut self, copies: &Copies) -> Self {
        let files = copies.files.iter().cloned();
        self.copies = files.clone().collect();
        self.jit.copied_dumps = files.collect();
        self.jit.copied_maps = copies.maps.iter().cloned().collect();
        self
    }

    /// Sets the functions that the recording itself lists, by the paths of their files, or by `[kernel.kallsyms]`. They are read
    /// where the file, or the kernel's symbols, are not here.
    #[must_use]
    pub fn with_recorded_symbols(
        mut self,
        files: impl IntoIterator<Item = (Vec<u8>, RecordedSymbols)>,
    ) -> Self {
        for (path, symbols) in files {
            let table = Arc::new(symbols.build());
            match path == KERNEL.as_bytes() {
                true => self.kernel.recorded = Some(table),
                false => drop(self.recorded.insert(path, table)),
            }
        }
        self
    }

    /// For a recording of the kernel that runs here, on any machine: the vDSO is that of this process.
    pub fn set_this_kernel(&mut self, yes: bool) {
        self.has_this_kernel = yes;
    }

    /// Sets or removes the kernel's symbols.
    pub fn set_kernel(&mut self, kernel: Option<KernelSymbols>) {
        self.kernel.symbols = LazySymbols::of(kernel);
    }

    /// Has the kernel's functions named by the symbols of the kernel that runs here, which are read when the first is looked for;
    /// see [`KernelSymbols::of_this_machine`].
    pub fn set_kernel_of_this_machine(&mut self) {
        self.kernel.symbols = LazySymbols::of_this_machine();
    }

    /// Returns true if the kernel's symbols are known.
    pub fn has_kernel(&self) -> bool {
        self.kernel.symbols.get().is_some()
    }

    /// Returns true if functions of FreeBSD's kernel or of a module, by the name that addresses in it have, were read from its file.
    pub fn has_kernel_functions(&self, object: &str) -> bool {
        self.kernel.has_functions(object)
    }

    /// Adds a mapping of the kernel: its own code, whose name begins with `[kernel.`, or a module, by its name in brackets or its
    /// path.
    pub fn map_kernel(&mut self, addresses: Range<u64>, name: &[u8]) {
        self.kernel.map(addresses.start, addresses.end, name);
    }

    /// Adds code of a module of FreeBSD's kernel that runs here, whose functions are those of the section at an offset in its file.
    pub fn map_kernel_code(&mut self, addresses: Range<u64>, path: &[u8], offset: u64) {
        self.kernel.map_code(addresses, path, offset);
    }

    /// Adds a symbol of the kernel that came while it was recorded, such as a BPF program.
    pub fn add_kernel_symbol(&mut self, start: u64, len: u32, name: &[u8]) {
        self.kernel.add(start, len, name);
    }

    /// Removes a symbol of the kernel that went.
    pub fn remove_kernel_symbol(&mut self, start: u64) {
        self.kernel.remove(start);
    }

    /// Sets where a symbol of the kernel was when it was recorded. If this kernel is located by the same
    /// symbol, addresses are moved as [`KernelSymbols::recorded_at`] does.
    pub fn set_kernel_reference(&mut self, symbol: &[u8], address: u64) {
        if address > 0 {
            self.kernel.symbols.locate(symbol, address);
        }
    }
}
