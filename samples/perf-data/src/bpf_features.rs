//! Features of BPF programs: where their functions lay, and their types, which have the functions' names
//! (`HEADER_BPF_PROG_INFO` and `HEADER_BPF_BTF`, `tools/perf/util/header.c`).

use crate::Result;
use crate::byte_order::ByteOrder;
use crate::bytes::{u32_at, u64_at};
use crate::section::SectionCursor;
use crate::text::{hex, until_nul};

/// Offsets in `struct bpf_prog_info` (`include/uapi/linux/bpf.h`), whose pointers are offsets in what follows it here.
mod info {
    pub(super) const ID: usize = 4;
    pub(super) const NAME: usize = 64;
    pub(super) const NAME_END: usize = 80;
    pub(super) const FUNCTIONS: usize = 104;
    pub(super) const ADDRESSES: usize = 112;
    pub(super) const LENGTHS: usize = 120;
    pub(super) const TYPES: usize = 128;
    pub(super) const TYPED_FUNCTION_LEN: usize = 132;
    pub(super) const TYPED_FUNCTIONS: usize = 136;
    pub(super) const TAGS: usize = 184;
}

/// A BPF program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BpfProgram {
    /// The kernel's id of it.
    pub id: u32,
    /// The kernel's id of its [types](BpfTypes); 0 where it has none.
    pub types: u32,
    /// Its functions; none where it was not compiled.
    pub functions: Vec<BpfFunction>,
}

/// A function of a BPF program.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BpfFunction {
    /// Its first address.
    pub address: u64,
    /// Its length, in bytes.
    pub len: u32,
    /// The hash of its instructions (`prog_tag`).
    pub tag: [u8; 8],
    /// Its number in the types of its program.
    pub type_number: Option<u32>,
    /// Its name where the types do not have it: the first 15 bytes of that of the program, or `F`.
    pub short_name: String,
}

/// The types of BPF programs: BTF (`Documentation/bpf/btf.rst`).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BpfTypes {
    /// The kernel's id of them.
    pub id: u32,
    /// Their names by their numbers, from 1 on.
    names: Vec<String>,
}

impl BpfFunction {
    /// Returns its name as the kernel's list of symbols has it: `bpf_prog_6deef7357e7b4530_name`.
    pub fn name(&self, types: Option<&BpfTypes>) -> String {
        let tag = hex(&self.tag, "");
        let of_type = types.zip(self.type_number);
        let of_type = of_type.and_then(|(types, number)| types.name(number));
        match of_type.unwrap_or(&self.short_name) {
            "" => format!("bpf_prog_{tag}"),
            name => format!("bpf_prog_{tag}_{name}"),
        }
    }
}

pub(crate) fn read_programs(
    mut cursor: SectionCursor<'_>,
    order: ByteOrder,
) -> Result<Vec<BpfProgram>> {
    let count = cursor.u32()?;
    let programs = (0..count).map(|_| {
        let (info_len, data_len) = (cursor.u32()?, cursor.u32()?);
        // Which of the arrays there are: the others have no length.
        cursor.u64()?;
        let info = cursor.bytes(info_len as usize)?;
        let data = cursor.bytes(data_len as usize)?;
        read_program((info, data), order).ok_or_else(|| cursor.error())
    });
    programs.collect()
}

/// Reads a program; `None` where an array is not in what follows it.
fn read_program((info, data): (&[u8], &[u8]), order: ByteOrder) -> Option<BpfProgram> {
    // A kernel of before has a shorter one, and nothing in what it does not have.
    let number = |at| u32_at(info, at).map_or(0, |number| order.u32(number));
    let array = |at, item: u32, len: usize| {
        let start = usize::try_from(order.u64(u64_at(info, at)?)).ok()?;
        let start = start.checked_add((item as usize).checked_mul(len)?)?;
        data.get(start..start.checked_add(len)?)
    };
    let count = number(info::FUNCTIONS);
    let typed_len = number(info::TYPED_FUNCTION_LEN) as usize;
    let types = number(info::TYPES);
    let short_name = info.get(info::NAME..info::NAME_END).unwrap_or_default();
    let short_name = match count {
        1 => String::from_utf8_lossy(until_nul(short_name)).into_owned(),
        _ => "F".to_owned(),
    };
    let functions = (0..count).map(|at| {
        Some(BpfFunction {
            address: order.u64(u64_at(array(info::ADDRESSES, at, 8)?, 0)?),
            len: order.u32(u32_at(array(info::LENGTHS, at, 4)?, 0)?),
            tag: array(info::TAGS, at, 8)?.try_into().ok()?,
            type_number: match types {
                0 => None,
                _ => {
                    let function = array(info::TYPED_FUNCTIONS, at, typed_len)?;
                    Some(order.u32(u32_at(function, 4)?))
                }
            },
            short_name: short_name.clone(),
        })
    });
    Some(BpfProgram {
        id: number(info::ID),
        types,
        functions: functions.collect::<Option<_>>()?,
    })
}

pub(crate) fn read_types(mut cursor: SectionCursor<'_>, order: ByteOrder) -> Result<Vec<BpfTypes>> {
    let count = cursor.u32()?;
    let types = (0..count).map(|_| {
        let (id, len) = (cursor.u32()?, cursor.u32()?);
        let names = BpfTypes::names(cursor.bytes(len as usize)?, order);
        Ok(BpfTypes { id, names })
    });
    types.collect()
}

impl BpfTypes {
    fn name(&self, number: u32) -> Option<&str> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.names.get(at).map(String::as_str)
    }

    /// Returns the names of types, as far as they make sense.
    fn names(bytes: &[u8], order: ByteOrder) -> Vec<String> {
        let number = |bytes: &[u8], at| Some(order.u32(u32_at(bytes, at)?) as usize);
        let part = |offset_at| {
            let start = number(bytes, 4)?.checked_add(number(bytes, offset_at)?)?;
            bytes.get(start..start.checked_add(number(bytes, offset_at + 4)?)?)
        };
        let (Some(mut types), Some(strings)) = (part(8), part(16)) else {
            return Vec::new();
        };
        let mut names = Vec::new();
        while let (Some(name), Some(info)) = (number(types, 0), number(types, 4)) {
            let Some(rest) = types.get(12 + more_than_the_start(info)..) else {
                break;
            };
            let name = until_nul(strings.get(name..).unwrap_or_default());
            names.push(String::from_utf8_lossy(name).into_owned());
            types = rest;
        }
        names
    }
}

/// Returns the length of what follows the start of a type with this `info`, in bytes.
fn more_than_the_start(info: usize) -> usize {
    let members = info & 0xffff;
    match info >> 24 & 0x1f {
        // BTF_KIND_INT, _VAR and _DECL_TAG.
        1 | 14 | 17 => 4,
        // BTF_KIND_ARRAY.
        3 => 12,
        // BTF_KIND_STRUCT, _UNION, _DATASEC and _ENUM64.
        4 | 5 | 15 | 19 => 12 * members,
        // BTF_KIND_ENUM and _FUNC_PROTO.
        6 | 13 => 8 * members,
        _ => 0,
    }
}
