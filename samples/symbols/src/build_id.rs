//! Build IDs (`NT_GNU_BUILD_ID`): equal ones, their forms, and that of the running kernel.

use object::Endianness;
use object::elf::{ELF_NOTE_GNU, FileHeader64, NT_GNU_BUILD_ID};
use object::read::elf::{FileHeader, NoteIterator};

/// Returns true if two IDs are the same: one may be padded with zeros (`dso__build_id_equal`, `tools/perf/util/dso.c`).
pub fn is_same_build_id(a: &[u8], b: &[u8]) -> bool {
    let (short, long) = if a.len() < b.len() { (a, b) } else { (b, a) };
    match long.split_at_checked(short.len()) {
        Some((same, rest)) => {
            !short.is_empty() && same == short && rest.iter().all(|byte| *byte == 0)
        }
        None => false,
    }
}

/// Returns the forms in which an ID may be written: as it is, without what it may be padded with, and padded.
pub(crate) fn forms(id: &[u8]) -> Vec<Vec<u8>> {
    /// As older tools write all of them, of MD5 and UUIDs, and of lld's `--build-id=fast`.
    const LENGTHS: [usize; 3] = [20, 16, 8];
    let of_length = |len| {
        let mut form = id.to_vec();
        form.resize(len, 0);
        form
    };
    let others = LENGTHS.into_iter().filter(|len| *len != id.len());
    let lengths = std::iter::once(id.len()).chain(others);
    let mut forms: Vec<_> = lengths.map(of_length).collect();
    forms.retain(|form| is_same_build_id(form, id));
    forms
}

/// Returns the build ID of the kernel that runs; `None` if it has none, or this process may not read it.
pub fn build_id_of_this_kernel() -> Option<Vec<u8>> {
    in_notes(&std::fs::read("/sys/kernel/notes").ok()?)
}

/// Returns the build ID among the notes of a kernel of this machine's byte order.
fn in_notes(notes: &[u8]) -> Option<Vec<u8>> {
    let endian = match cfg!(target_endian = "big") {
        true => Endianness::Big,
        false => Endianness::Little,
    };
    let notes = NoteIterator::<FileHeader64<Endianness>>::new(endian, 4, notes).ok()?;
    among(notes, endian)
}

/// Returns the build ID among notes.
pub(crate) fn among<Elf: FileHeader>(
    mut notes: NoteIterator<'_, Elf>,
    endian: Elf::Endian,
) -> Option<Vec<u8>> {
    while let Ok(Some(note)) = notes.next() {
        if note.name() == ELF_NOTE_GNU && note.n_type(endian) == NT_GNU_BUILD_ID {
            return Some(note.desc().to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_padded_with_zeros_is_the_same() {
        let short = [7; 16];
        let padded = [&short[..], &[0; 4]].concat();
        assert!(is_same_build_id(&short, &padded) && is_same_build_id(&padded, &short));
        assert!(is_same_build_id(&short, &short));
        let other = [&short[..], &[0, 0, 0, 1]].concat();
        assert!(!is_same_build_id(&short, &other));
        assert!(!is_same_build_id(&short[..15], &short));
        assert!(!is_same_build_id(&[], &short) && !is_same_build_id(&[], &[]));
        let lengths = |id: &[u8]| forms(id).iter().map(Vec::len).collect::<Vec<_>>();
        assert_eq!(lengths(&padded), [20, 16]);
        assert_eq!(lengths(&[&short[..8], &[0; 12]].concat()), [20, 16, 8]);
        assert_eq!(lengths(&other), [20]);
        assert_eq!(forms(&short), [short.to_vec(), padded]);
    }

    #[test]
    fn the_id_is_found_among_the_notes_of_a_kernel() {
        let note = |kind: u32, name: &[u8; 4], content: &[u8]| {
            let head = [4, content.len() as u32, kind];
            let head: Vec<u8> = head.iter().flat_map(|n| n.to_ne_bytes()).collect();
            [&head, &name[..], content].concat()
        };
        let id = note(3, b"GNU\0", &[5; 20]);
        let other = note(1, b"Xen\0", &[1; 8]);
        assert_eq!(in_notes(&[other.clone(), id].concat()), Some(vec![5; 20]));
        assert_eq!(in_notes(&other), None);
        assert_eq!(in_notes(&other[..7]), None);
    }
}
