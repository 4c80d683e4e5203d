//! Archives (ZIP, and so Android's APK): programs map libraries from where these lie in them, uncompressed.

use std::fs::File;
use std::ops::Range;
use std::path::{Path, PathBuf};

use rawzip::{CompressionMethod, FileReader, RECOMMENDED_BUFFER_SIZE, ZipArchive};

use crate::input::regular_file;

/// Separator of the path of an archive and the name of a file in it, as in a JAR URL; simpleperf and Android's linker write it.
const IN_ARCHIVE: &str = "!/";

/// A part of an archive.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Its name in the archive; `None` for what is compressed or no file of it.
    pub(crate) name: Option<String>,
    /// The bytes of the archive that it takes.
    pub(crate) range: Range<u64>,
}

/// Returns the part at an offset of an archive; `None` if the file is none.
pub(crate) fn part_at(path: &Path, offset: u64) -> Option<Part> {
    let mut found: Option<(u64, Entry)> = None;
    let mut next = u64::MAX;
    let archive = for_each(path, |at, entry| {
        if at > offset {
            next = next.min(at);
        } else if found.as_ref().is_none_or(|(before, _)| *before <= at) {
            found = Some((at, entry()));
        }
    })?;
    let file = found.and_then(|(_, entry)| {
        let range = entry.range_in(&archive)?;
        range.contains(&offset).then_some(Part {
            name: Some(entry.name),
            range,
        })
    });
    Some(file.unwrap_or(Part {
        name: None,
        range: offset..next,
    }))
}

/// Returns the bytes of an archive in which a file lies uncompressed.
pub(crate) fn range_of(path: &Path, name: &str) -> Option<Range<u64>> {
    let mut found = None;
    let archive = for_each(path, |_, entry| {
        if found.is_none() {
            found = Some(entry()).filter(|entry| entry.name == name);
        }
    })?;
    found?.range_in(&archive)
}

/// Returns the path of a file in an archive.
pub(crate) fn path_in(archive: &Path, name: &str) -> PathBuf {
    let mut path = archive.as_os_str().to_owned();
    path.push(IN_ARCHIVE);
    path.push(name);
    path.into()
}

/// Returns the archive and the name in it of which a path consists.
pub(crate) fn split(path: &Path) -> Option<(&Path, &str)> {
    let (archive, name) = path.to_str()?.rsplit_once(IN_ARCHIVE)?;
    Some((Path::new(archive), name))
}

type Archive = ZipArchive<FileReader>;

/// A file of an archive.
struct Entry {
    name: String,
    is_stored: bool,
    place: rawzip::ZipArchiveEntryWayfinder,
}

impl Entry {
    /// Returns the bytes of the archive that it takes, if it is not compressed.
    fn range_in(&self, archive: &Archive) -> Option<Range<u64>> {
        let (from, until) = archive.get_entry(self.place).ok()?.compressed_data_range();
        self.is_stored.then_some(from..until)
    }
}

/// Has the place of each file in an archive looked at; `None` if it is no archive.
fn for_each(path: &Path, mut look: impl FnMut(u64, &dyn Fn() -> Entry)) -> Option<Archive> {
    let file = regular_file(path).ok()??;
    if !begins_as_archive(&file) {
        return None;
    }
    let mut buffer = vec![0; RECOMMENDED_BUFFER_SIZE];
    let archive = ZipArchive::from_file(file, &mut buffer).ok()?;
    let mut entries = archive.entries(&mut buffer);
    while let Ok(Some(entry)) = entries.next_entry() {
        look(entry.local_header_offset(), &|| Entry {
            name: String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned(),
            is_stored: entry.compression_method() == CompressionMethod::STORE,
            place: entry.wayfinder(),
        });
    }
    Some(archive)
}

/// Returns true if a file begins with the header of a file in an archive (APPNOTE.TXT, 4.3.7).
fn begins_as_archive(mut file: &File) -> bool {
    use std::io::{Read, Seek};
    let mut magic = [0; 4];
    file.read_exact(&mut magic).is_ok() && magic == *b"PK\x03\x04" && file.rewind().is_ok()
}
