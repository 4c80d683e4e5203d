//! Which file is read for one that was mapped: of several that may be it, the first one that is.

use std::fmt::{self, Display, Formatter};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::build_id::{self, is_same_build_id};
use crate::debug_files::BuildFiles;
use crate::debuginfod::{self, Artifact};
use crate::elf::ElfImage;
use crate::input::{metadata, regular_file};
use crate::mapped_file::{FileIdentity, MappedFile};
use crate::process_maps::{ProcessMaps, as_path};

/// The file that is read for one that was mapped.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) path: PathBuf,
    pub(crate) elf: ElfImage,
    pub(crate) doubt: Option<Doubt>,
}

/// Reason why no file is read.
#[derive(Debug)]
pub(crate) enum NotLocated {
    /// There is none, or it is no ELF file.
    Gone,
    /// Another file is there.
    Other,
    /// It could not be opened or read.
    Unreadable(io::Error),
}

/// Reason why a file without a build ID may be another one than was recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Doubt {
    /// The device is another, as that of layers of one file system may be, while the inode has the same number.
    OtherDevice,
    /// It has changed since.
    Changed,
    /// The recording is of another machine.
    OtherMachine,
}

impl Display for Doubt {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("it has no build ID, and ")?;
        f.write_str(match self {
            Self::OtherDevice => "is on another device",
            Self::Changed => "has changed since the recording",
            Self::OtherMachine => "the recording is of another machine",
        })
    }
}

/// A file that may be the one that was mapped.
#[derive(Debug)]
pub(crate) struct Candidate {
    pub(crate) path: PathBuf,
    /// True for a copy of the file that was mapped, which is that whatever its inode is.
    pub(crate) is_copy: bool,
}

impl From<PathBuf> for Candidate {
    fn from(path: PathBuf) -> Self {
        let is_copy = false;
        Self { path, is_copy }
    }
}

/// The time and the machine of a recording.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RecordedAt {
    pub(crate) this_machine: bool,
    /// The time of its end.
    pub(crate) time: Option<SystemTime>,
    /// Returns the generation of the inode of a file.
    pub(crate) generation: Option<fn(&File) -> Option<u64>>,
}

/// Returns the file that was mapped, of those that may be it. `id` is its build ID as far as one is recorded: then
/// copies that tools keep of it are as good.
pub(crate) fn locate(
    file: &MappedFile,
    id: Option<&[u8]>,
    candidates: impl Iterator<Item = Candidate>,
    at: RecordedAt,
) -> Result<Located, NotLocated> {
    let (mut doubtful, mut why) = (None, NotLocated::Gone);
    for Candidate { path, is_copy } in candidates {
        let doubt = |elf: &ElfImage| match is_copy {
            true => Ok(None),
            false => doubt_of(&path, elf, (file, id), at),
        };
        match ElfImage::open(&path) {
            Ok(Some(elf)) => match doubt(&elf) {
                Ok(None) => {
                    let doubt = None;
                    return Ok(Located { path, elf, doubt });
                }
                Ok(doubt) => drop(doubtful.get_or_insert(Located { path, elf, doubt })),
                Err(Another) => why = NotLocated::Other,
            },
            Ok(None) => {}
            Err(error) => {
                if let NotLocated::Gone = why {
                    why = NotLocated::Unreadable(error);
                }
            }
        }
    }
    let copies = id.into_iter().flat_map(build_id::forms);
    let copies = copies.flat_map(|id| BuildFiles::of(&id).copies);
    let from_servers = || debuginfod::fetch(id?, Artifact::Executable);
    let mut copies = copies.chain(std::iter::once_with(from_servers).flatten());
    let copy = copies.find_map(|path| {
        let elf = ElfImage::open(&path).ok()??;
        let is_it = is_same_build_id(elf.build_id()?, id?);
        is_it.then_some(Located {
            path,
            elf,
            doubt: None,
        })
    });
    doubtful.or(copy).ok_or(why)
}

/// It is another file than the one that was mapped.
struct Another;

/// Returns the reason why a file may be another one than was mapped, if there is one.
fn doubt_of(
    path: &Path,
    elf: &ElfImage,
    (file, id): (&MappedFile, Option<&[u8]>),
    at: RecordedAt,
) -> Result<Option<Doubt>, Another> {
    if let Some(id) = id {
        let is_it = elf.build_id().is_some_and(|own| is_same_build_id(own, id));
        return if is_it { Ok(None) } else { Err(Another) };
    }
    let Some(found) = place_of(path) else {
        return Ok(None);
    };
    if at.this_machine && has_other_generation(path, file, at) {
        return Err(Another);
    }
    let has_changed = matches!((found.changed, at.time), (Some(then), Some(end)) if then > end);
    let of_time = has_changed.then_some(Doubt::Changed);
    match file.identity {
        FileIdentity::Inode { inode: 1.., .. } if !found.is_at(&file.identity) => {
            let is_elsewhere = !found.has_inode(&file.identity);
            match (is_elsewhere, at.this_machine) {
                (true, true) => Err(Another),
                (true, false) => Ok(Some(Doubt::OtherMachine)),
                (false, _) => Ok(Some(Doubt::OtherDevice)),
            }
        }
        _ => Ok(of_time),
    }
}

/// Returns true if the inode of a file has another generation than the one that was mapped.
fn has_other_generation(path: &Path, mapped: &MappedFile, at: RecordedAt) -> bool {
    let FileIdentity::Inode {
        generation: recorded @ 1..,
        ..
    } = mapped.identity
    else {
        return false;
    };
    let found = at.generation.and_then(|of| of(&regular_file(path).ok()??));
    found.is_some_and(|found| found != recorded)
}

/// Place of a file in a file system, and the time of its last change, of content or of status.
struct Place {
    device: (u32, u32),
    inode: u64,
    changed: Option<SystemTime>,
}

impl Place {
    fn is_at(&self, identity: &FileIdentity) -> bool {
        matches!(identity, FileIdentity::Inode { device, .. } if *device == self.device)
            && self.has_inode(identity)
    }

    fn has_inode(&self, identity: &FileIdentity) -> bool {
        matches!(identity, FileIdentity::Inode { inode, .. } if *inode == self.inode)
    }
}

/// Returns true if a file that is no ELF file is the one that was mapped.
pub(crate) fn is_there(file: &MappedFile, path: &Path, at: RecordedAt) -> bool {
    match file.identity {
        FileIdentity::Inode { inode: 1.., .. } => {
            place_of(path).is_some_and(|found| found.has_inode(&file.identity))
        }
        _ => at.this_machine,
    }
}

/// Returns the build ID of the first file of several that is the one of an identity; `None` if it has none.
pub(crate) fn build_id_in(
    identity: &FileIdentity,
    places: impl IntoIterator<Item = PathBuf>,
) -> Option<Vec<u8>> {
    let mut places = places.into_iter();
    let path = places.find(|path| place_of(path).is_some_and(|found| found.is_at(identity)))?;
    crate::elf::build_id_of(&path)
}

/// Returns the build ID of a file that a process has mapped at an address; `None` if it has none, or the file is not there any
/// more.
pub fn build_id_of_mapped(
    pid: i32,
    address: u64,
    path: &[u8],
    identity: &FileIdentity,
) -> Option<Vec<u8>> {
    let maps = ProcessMaps::read(pid);
    let line = maps.as_ref().and_then(|maps| maps.line_at(address));
    let line = line.filter(|line| {
        matches!(identity, FileIdentity::Inode { inode, .. } if *inode == line.inode)
            && line.path.starts_with(path)
    });
    match (&maps, line) {
        (Some(maps), Some(line)) => maps.build_id_of(&line),
        _ => build_id_in(identity, [as_path(path)]),
    }
}

/// Returns the identity of the file at a path: its build ID if it has one, else its place.
pub fn identity_of_file(path: &Path) -> FileIdentity {
    let by_place = |place: Place| FileIdentity::Inode {
        device: place.device,
        inode: place.inode,
        generation: 0,
    };
    match crate::elf::build_id_of(path) {
        Some(id) => FileIdentity::BuildId(id.into()),
        None => place_of(path).map(by_place).unwrap_or_default(),
    }
}

/// Returns true if a file is the one of an identity.
pub fn is_file_of(path: &Path, identity: &FileIdentity) -> bool {
    match identity {
        FileIdentity::BuildId(id) => {
            let own = crate::elf::build_id_of(path);
            own.is_some_and(|own| is_same_build_id(&own, id))
        }
        _ => place_of(path).is_some_and(|found| found.is_at(identity)),
    }
}

/// Returns the file that a process has mapped at an address; `None` if it cannot be opened any more.
pub fn open_mapped(pid: i32, address: u64, path: &[u8], identity: &FileIdentity) -> Option<File> {
    let maps = ProcessMaps::read(pid)?;
    let line = maps.line_at(address);
    // Layers of a file system may give its inode another device than the mapping has.
    let is_mapped = line.is_some_and(|line| {
        let FileIdentity::Inode { device, inode, .. } = identity else {
            return false;
        };
        (line.device, line.inode) == (*device, *inode)
    });
    let mapped = line.map(|line| maps.mapped_at(&line));
    if let (true, Some(mapped)) = (is_mapped, &mapped)
        && let Ok(Some(file)) = regular_file(mapped)
    {
        return Some(file);
    }
    let mut places = mapped.into_iter().chain([maps.in_root(path)]);
    let path = places.find(|path| is_file_of(path, identity))?;
    regular_file(&path).ok()?
}

#[cfg(unix)]
fn place_of(path: &Path) -> Option<Place> {
    use std::os::unix::fs::MetadataExt;
    use std::time::Duration;
    let found = metadata(path).ok()?;
    // The parts of a `dev_t` (makedev(3)).
    let device = found.dev();
    let major = device >> 8 & 0xfff | device >> 32 & !0xfff;
    let minor = device & 0xff | device >> 12 & !0xff;
    let since = Duration::new(found.ctime().try_into().ok()?, found.ctime_nsec() as u32);
    Some(Place {
        device: (major as u32, minor as u32),
        inode: found.ino(),
        changed: SystemTime::UNIX_EPOCH.checked_add(since),
    })
}

/// Nothing was mapped on other systems.
#[cfg(not(unix))]
fn place_of(_: &Path) -> Option<Place> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The outcome for this program, mapped from a place that is so far from its own.
    fn outcome(device: u32, inode: u64, at: RecordedAt) -> Result<Option<Doubt>, ()> {
        outcome_of((device, inode, 0), at)
    }

    /// The outcome for an inode that has a generation too.
    fn outcome_of(
        (device, inode, generation): (u32, u64, u64),
        at: RecordedAt,
    ) -> Result<Option<Doubt>, ()> {
        let own = std::env::current_exe().expect("it runs");
        let place = place_of(&own).expect("a file");
        let file = MappedFile {
            path: b"/a"[..].into(),
            identity: FileIdentity::Inode {
                device: (place.device.0, place.device.1 + device),
                inode: place.inode + inode,
                generation,
            },
        };
        let located = locate(&file, None, [own.into()].into_iter(), at);
        located.map(|found| found.doubt).map_err(|why| {
            assert!(matches!(why, NotLocated::Other), "{why:?}");
        })
    }

    #[test]
    fn a_file_without_an_id_is_known_by_its_place_or_doubted() {
        let here = RecordedAt {
            this_machine: true,
            time: Some(SystemTime::now()),
            generation: Some(|_| Some(7)),
        };
        assert_eq!(outcome_of((0, 0, 7), here), Ok(None));
        assert_eq!(outcome_of((0, 0, 8), here), Err(()));
        let without = RecordedAt {
            generation: Some(|_| None),
            ..here
        };
        assert_eq!(outcome_of((0, 0, 8), without), Ok(None));
        let elsewhere = RecordedAt {
            this_machine: false,
            ..here
        };
        assert_eq!(outcome(0, 0, here), Ok(None));
        assert_eq!(outcome(0, 0, elsewhere), Ok(None));
        assert_eq!(outcome(1, 0, here), Ok(Some(Doubt::OtherDevice)));
        assert_eq!(outcome(0, 1, here), Err(()));
        assert_eq!(outcome(0, 1, elsewhere), Ok(Some(Doubt::OtherMachine)));
        let before = RecordedAt {
            time: Some(SystemTime::UNIX_EPOCH + Duration::from_secs(1)),
            ..here
        };
        assert_eq!(outcome(0, 0, before), Ok(Some(Doubt::Changed)));
    }

    #[test]
    fn a_file_with_an_id_is_known_by_that_alone() {
        let own = std::env::current_exe().expect("it runs");
        let Some(id) = crate::build_id_of(&own) else {
            return;
        };
        let file = MappedFile {
            path: b"/a"[..].into(),
            identity: FileIdentity::BuildId(id.clone().into()),
        };
        let places = || {
            let places = ["/nowhere".into(), own.clone()].into_iter();
            places.map(Candidate::from)
        };
        let located = locate(&file, Some(&id), places(), RecordedAt::default());
        assert_eq!(located.expect("it is there").path, own);
        let mut other = id;
        other[0] ^= 1;
        let located = locate(&file, Some(&other), places(), RecordedAt::default());
        assert!(matches!(located, Err(NotLocated::Other)));
        let nowhere = locate(
            &file,
            Some(&other),
            [PathBuf::from("/nowhere").into()].into_iter(),
            RecordedAt::default(),
        );
        assert!(matches!(nowhere, Err(NotLocated::Gone)));
    }
}
