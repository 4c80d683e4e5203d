//! Changes of the kernel's own text: symbols, BPF programs, patches.

use crate::bytes::{Cursor, Malformed};

/// A symbol of the kernel came or went (`PERF_RECORD_KSYMBOL`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ksymbol<'a> {
    /// Start address.
    pub address: u64,
    /// Length in bytes.
    pub len: u32,
    /// Kind of the symbol.
    pub kind: KsymbolKind,
    /// True if it went (`PERF_RECORD_KSYMBOL_FLAGS_UNREGISTER`).
    pub is_removed: bool,
    /// Its name.
    pub name: &'a [u8],
}

/// Kind of a symbol that came or went (`enum perf_record_ksymbol_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum KsymbolKind {
    /// A BPF program.
    Bpf,
    /// Code of a probe or a trampoline, out of line.
    OutOfLine,
    /// Another, by the kernel's number.
    Other(u16),
}

impl<'a> Ksymbol<'a> {
    pub(crate) fn decode(mut cursor: Cursor<'a>) -> Result<Self, Malformed> {
        const FIELD: &str = "symbol";
        Ok(Self {
            address: cursor.u64(FIELD)?,
            len: cursor.u32(FIELD)?,
            kind: match cursor.u16(FIELD)? {
                1 => KsymbolKind::Bpf,
                2 => KsymbolKind::OutOfLine,
                other => KsymbolKind::Other(other),
            },
            is_removed: cursor.u16(FIELD)? & 1 != 0,
            name: cursor.text(),
        })
    }
}

/// A BPF program came or went (`PERF_RECORD_BPF_EVENT`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct BpfEvent {
    /// The event in its life.
    pub change: BpfChange,
    /// Flags, of which the kernel defines none yet.
    pub flags: u16,
    /// The id of the program.
    pub id: u32,
    /// Its tag.
    pub tag: [u8; 8],
}

/// Event in the life of a BPF program (`enum perf_bpf_event_type`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BpfChange {
    /// It was loaded.
    Loaded,
    /// It was unloaded.
    Unloaded,
    /// Another, by the kernel's number.
    Other(u16),
}

impl BpfEvent {
    pub(crate) fn decode(mut cursor: Cursor<'_>) -> Result<Self, Malformed> {
        const FIELD: &str = "BPF program";
        Ok(Self {
            change: match cursor.u16(FIELD)? {
                1 => BpfChange::Loaded,
                2 => BpfChange::Unloaded,
                other => BpfChange::Other(other),
            },
            flags: cursor.u16(FIELD)?,
            id: cursor.u32(FIELD)?,
            tag: cursor.u64(FIELD)?.to_ne_bytes(),
        })
    }
}

/// The kernel changed its own text (`PERF_RECORD_TEXT_POKE`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct TextPoke<'a> {
    /// Address.
    pub address: u64,
    /// The bytes before; none when text was added.
    pub old: &'a [u8],
    /// The bytes after; none when text was removed.
    pub new: &'a [u8],
}

impl<'a> TextPoke<'a> {
    pub(crate) fn decode(mut cursor: Cursor<'a>) -> Result<Self, Malformed> {
        const FIELD: &str = "changed text";
        let address = cursor.u64(FIELD)?;
        let (old, new) = (cursor.u16(FIELD)?, cursor.u16(FIELD)?);
        Ok(Self {
            address,
            old: cursor.bytes(old.into(), FIELD)?,
            new: cursor.bytes(new.into(), FIELD)?,
        })
    }
}
