//! Keeping what was found for a time when the files are gone, and finding what was kept.

use std::sync::Arc;

use crate::call_frames::Rules;
use crate::demangled::Style;
use crate::kept::{CodeOf, KeptNames};
use crate::locate::Located;
use crate::mapped_file::MappedFile;
use crate::processes::Processes;

use super::{AddressOwner, Function, Symbolizer};

/// Lines of files that are longer are not kept.
const LONGEST_WITH_LINES: u64 = 256 << 20;

impl Symbolizer {
    /// Takes note of all that is found from here on, which [`take_kept`](Self::take_kept) returns.
    #[must_use]
    pub fn keeping(mut self) -> Self {
        self.noted = Some(KeptNames::default());
        // What reads them chooses a style.
        self.style = Style::Raw;
        self
    }

    /// Returns what was found since, and takes note of no more.
    pub fn take_kept(&mut self) -> KeptNames {
        let mut noted = self.noted.take().unwrap_or_default();
        noted.doubtful.extend(self.doubtful.clone());
        noted.no_names.extend(self.no_names.clone());
        noted
    }

    /// Sets names that were kept with the recording. They come before those of files that are there now: what they say was found
    /// when it was recorded. Where they have none, or no line where lines are looked for, files are read as without them.
    #[must_use]
    pub fn with_kept(mut self, kept: Option<KeptNames>) -> Self {
        if let Some(kept) = &kept {
            self.doubtful.extend(kept.doubtful.clone());
            self.kept_no_names = kept.no_names.clone();
        }
        self.kept = kept;
        self
    }

    /// Returns the names that were kept with the recording.
    pub fn kept(&self) -> Option<&KeptNames> {
        self.kept.as_ref()
    }

    /// Returns false for a file of which no lines are kept: they are read as a whole, and a recording is to end soon.
    pub(super) fn has_room_for_lines(&self, located: &Located) -> bool {
        let files = [Some(&*located.path), located.elf.debug_file()];
        let files = files.into_iter().flatten();
        let mut lengths = files.filter_map(|path| Some(path.metadata().ok()?.len()));
        self.noted.is_none() || lengths.all(|len| len <= LONGEST_WITH_LINES)
    }

    /// Appends what is kept of an address; false if it is nothing, or less than a file says.
    pub(super) fn resolve_kept(
        &mut self,
        processes: &Processes,
        owner: AddressOwner,
        address: u64,
        out: &mut Vec<Function>,
    ) -> bool {
        let Some((of, at)) = self.code_at(processes, owner, address) else {
            return false;
        };
        let has_symbol_alone = |kept: &mut KeptNames| kept.has_symbol_alone(of, at);
        if self.with_lines
            && let (CodeOf::File(_), AddressOwner::Process(pid)) = (of, owner)
            && self.kept.as_mut().is_some_and(has_symbol_alone)
            && self.has_lines_at(processes, pid, address)
        {
            return false;
        }
        let form = (self.with_lines, self.style);
        let kept = self.kept.as_mut();
        kept.is_some_and(|kept| kept.find(of, at, form, out))
    }

    /// Takes note of the functions at an address.
    pub(super) fn note(
        &mut self,
        processes: &Processes,
        owner: AddressOwner,
        address: u64,
        functions: &[Function],
    ) {
        let at = self.code_at(processes, owner, address);
        if let (Some((of, at)), Some(noted)) = (at, &mut self.noted) {
            noted.note(of, at, functions);
        }
    }

    /// Takes note of the rules at an address of a process.
    pub(super) fn note_rules(
        &mut self,
        processes: &Processes,
        (pid, address): (i32, u64),
        rules: (&Rules, u64),
    ) {
        if let (Some(mapped), Some(noted)) = (processes.mapping(pid, address), &mut self.noted) {
            noted.note_rules(&mapped.file, mapped.offset_of(address), rules);
        }
    }

    /// Returns the code that an address is in, and the address or offset by which it is kept. BPF programs come and go, and
    /// have their names in the recording's own records.
    fn code_at<'a>(
        &self,
        processes: &'a Processes,
        owner: AddressOwner,
        address: u64,
    ) -> Option<(CodeOf<'a>, u64)> {
        match owner {
            AddressOwner::Kernel if self.kernel.is_program(address) => None,
            AddressOwner::Kernel => Some((CodeOf::Kernel, address)),
            AddressOwner::Process(pid) => {
                let mapped = processes.mapping(pid, address);
                let in_file = mapped.filter(|mapped| self.is_code_of_file(&mapped.file));
                Some(match in_file {
                    Some(mapped) => (CodeOf::File(&mapped.file), mapped.offset_of(address)),
                    None => (CodeOf::Process(pid), address),
                })
            }
            _ => None,
        }
    }

    /// Returns true for a file, or a memfd that a program was executed from; compilers make code in the memory of others.
    fn is_code_of_file(&self, file: &Arc<MappedFile>) -> bool {
        if !file.is_anonymous() || !file.is_memfd() {
            return !file.is_anonymous();
        }
        let read = self.by_file.get(&Arc::as_ptr(file).addr());
        let mut images = read.into_iter().flat_map(|(_, images)| images);
        let is_of_file = |index: usize| self.images.get(index).is_some_and(|i| !i.is_anonymous);
        let is_read = images.any(|(_, index)| is_of_file(*index));
        is_read || self.kept.as_ref().is_some_and(|kept| kept.has_file(file))
    }

    /// Returns true if lines are read of the file at an address of a process.
    fn has_lines_at(&mut self, processes: &Processes, pid: i32, address: u64) -> bool {
        let Some(mapped) = processes.mapping(pid, address) else {
            return false;
        };
        let index = self.image((processes, pid), mapped);
        let image = self.images.get(index);
        image.is_some_and(|image| image.lines.is_some())
    }
}
