//! The build ids of the files that were mapped (`HEADER_BUILD_ID`, `perf_record_header_build_id` of
//! `tools/lib/perf/include/perf/event.h`).

use crate::byte_order::ByteOrder;
use crate::bytes::u16_at;
use crate::record::{CpuMode, HEADER_LEN, Misc};
use crate::text::until_nul;
use crate::{Error, Result};

/// Address space in which something that has a build id is mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BuildIdOwner {
    /// In the kernel: itself or a module.
    Kernel,
    /// In user mode: a program or library.
    User,
}

/// The build id of a file (ELF note `NT_GNU_BUILD_ID`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BuildId {
    /// Address space in which it is mapped.
    pub owner: BuildIdOwner,
    /// The id, 20 bytes at most.
    pub id: Vec<u8>,
    /// The file's path, or a name in brackets.
    pub path: Vec<u8>,
}

impl BuildId {
    /// Returns the build id of a file by its path.
    pub fn new(owner: BuildIdOwner, id: impl Into<Vec<u8>>, path: impl Into<Vec<u8>>) -> Self {
        let (id, path) = (id.into(), path.into());
        Self { owner, id, path }
    }
}

/// The longest build id that a file can hold (`BUILD_ID_SIZE`).
const BUILD_ID_LEN: usize = 20;
/// Room for a build id, its length and padding.
const BUILD_ID_ROOM: usize = 24;
/// `PERF_RECORD_MISC_BUILD_ID_SIZE`: the length is there.
const BUILD_ID_HAS_LEN: u16 = 1 << 15;

/// Returns the section of build ids, if there are any.
pub(crate) fn build_id_section(build_ids: &[BuildId]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for build_id in build_ids {
        let id = build_id.id.get(..BUILD_ID_LEN).unwrap_or(&build_id.id);
        let path = (build_id.path.len() + 1).next_multiple_of(64);
        let Ok(size) = u16::try_from(HEADER_LEN + 4 + BUILD_ID_ROOM + path) else {
            continue;
        };
        let place = match build_id.owner {
            BuildIdOwner::Kernel => Misc::KERNEL.0,
            BuildIdOwner::User => Misc::USER.0,
        };
        let end = out.len() + usize::from(size);
        out.extend_from_slice(&0u32.to_ne_bytes());
        out.extend_from_slice(&(place | BUILD_ID_HAS_LEN).to_ne_bytes());
        out.extend_from_slice(&size.to_ne_bytes());
        // The host, and no guest (`HOST_KERNEL_ID`).
        out.extend_from_slice(&(-1i32).to_ne_bytes());
        let id_end = out.len() + BUILD_ID_LEN;
        out.extend_from_slice(id);
        out.resize(id_end, 0);
        // The length of an id that is at most 20 bytes long, and three bytes that mean nothing.
        out.extend_from_slice(&[id.len() as u8, 0, 0, 0]);
        out.extend_from_slice(&build_id.path);
        out.resize(end, 0);
    }
    (!out.is_empty()).then_some(out)
}

/// The build ids of a section, or of a record of a stream that has one.
pub(crate) fn read_build_ids(section: &[u8], order: ByteOrder) -> Result<Vec<BuildId>> {
    let mut build_ids = Vec::new();
    let mut at = 0;
    while at < section.len() {
        let rest = &section[at..];
        let wrong = || Error::malformed("a build id", at as u64);
        let size = usize::from(order.u16(u16_at(rest, 6).ok_or_else(wrong)?));
        let entry = rest.get(..size).ok_or_else(wrong)?;
        let body = entry.get(HEADER_LEN + 4..).ok_or_else(wrong)?;
        let (room, path) = body.split_at_checked(BUILD_ID_ROOM).ok_or_else(wrong)?;
        let flags = order.u16(u16_at(entry, 4).ok_or_else(wrong)?);
        let len = match flags & BUILD_ID_HAS_LEN {
            0 => BUILD_ID_LEN,
            _ => room[BUILD_ID_LEN].into(),
        };
        build_ids.push(BuildId {
            owner: match Misc(flags).cpu_mode() {
                CpuMode::Kernel => BuildIdOwner::Kernel,
                _ => BuildIdOwner::User,
            },
            id: room[..len.min(BUILD_ID_LEN)].to_owned(),
            path: until_nul(path).to_owned(),
        });
        at += size;
    }
    Ok(build_ids)
}
