//! Fields in the raw bytes of a tracepoint's sample: its `format` file.
//!
//! `Documentation/trace/events.rst`, "Event formats": one line for each field with its C declaration,
//! place and size. `__data_loc` fields hold the place and length of data that follows the fixed part
//! (`include/trace/stages/stage1_struct_define.h`), `__rel_loc` ones the place after themselves.

use quipu_hal::{Error, ErrorKind, Result};

use crate::text::until_nul;

/// The fields of a tracepoint.
///
/// ```
/// use quipu_perf_data::{FieldValue, TraceFormat};
///
/// let format = TraceFormat::parse(
///     "name: sched_wakeup\nID: 5\nformat:\n\
///      \tfield:int pid;\toffset:0;\tsize:4;\tsigned:1;\n",
/// )?;
/// let raw = 42i32.to_ne_bytes();
/// let pid = format.field("pid").and_then(|field| field.value(&raw));
/// assert_eq!(pid, Some(FieldValue::Signed(42)));
/// # Ok::<_, quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceFormat {
    name: String,
    id: u64,
    fields: Vec<TraceField>,
    print: String,
}

/// A field of a tracepoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceField {
    name: String,
    declaration: String,
    offset: usize,
    size: usize,
    signed: bool,
    layout: Layout,
}

/// Type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layout {
    /// One number.
    Scalar,
    /// Characters up to a zero.
    Text,
    /// Numbers of this many bytes each.
    List(usize),
    /// The bytes as they are.
    Opaque,
    /// 32 bits: length in the upper half, place in the lower.
    Elsewhere {
        /// The place is after this field, not from the start.
        relative: bool,
        /// Characters; otherwise numbers of this many bytes.
        element: Option<usize>,
    },
}

/// The value of a field, borrowed from the sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue<'a> {
    /// A signed number.
    Signed(i64),
    /// An unsigned number or an address.
    Unsigned(u64),
    /// Text, without the zero at its end. The kernel does not say in which encoding.
    Text(&'a [u8]),
    /// Several numbers.
    List(FieldList<'a>),
    /// Bytes of a structure that the format does not describe.
    Bytes(&'a [u8]),
}

/// The numbers of a field that is an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FieldList<'a> {
    bytes: &'a [u8],
    element: usize,
    signed: bool,
}

impl<'a> FieldList<'a> {
    /// Returns the numbers, in order. Signed ones keep their sign in two's complement.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = FieldValue<'a>> + use<'a> {
        let signed = self.signed;
        let elements = self.bytes.chunks_exact(self.element);
        elements.map(move |bytes| number(bytes, signed))
    }
}

impl TraceFormat {
    /// Reads the text of a `format` file.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) when a line is not understood.
    pub fn parse(text: &str) -> Result<Self> {
        let mut format = Self {
            name: String::new(),
            id: 0,
            fields: Vec::new(),
            print: String::new(),
        };
        // What follows it may hold anything, in several lines.
        let (text, print) = text.split_once("\nprint fmt:").unwrap_or((text, ""));
        format.print = print.trim().to_owned();
        for line in text.lines() {
            let line = line.trim();
            if let Some(name) = line.strip_prefix("name:") {
                format.name = name.trim().to_owned();
            } else if let Some(id) = line.strip_prefix("ID:") {
                format.id = id.trim().parse().map_err(|_| malformed(line))?;
            } else if line.starts_with("field:") {
                let field = parse_field(line).ok_or_else(|| malformed(line))?;
                format.fields.push(field);
            }
        }
        Ok(format)
    }

    /// Returns the names of the fields in the text of a `format` file, without parsing the rest.
    pub fn field_names(text: &str) -> impl Iterator<Item = &str> {
        let (text, _) = text.split_once("\nprint fmt:").unwrap_or((text, ""));
        let declarations = text.lines().filter_map(|line| {
            let (declaration, _) = line.trim().strip_prefix("field:")?.split_once(';')?;
            Some(declaration)
        });
        declarations.filter_map(|declaration| Some(split_declaration(declaration.trim())?.1))
    }

    /// Returns the tracepoint's name, without its system.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its number, which every sample of it has in `common_type`.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the format of printf by which the kernel prints it, with its arguments in C.
    pub fn print_format(&self) -> &str {
        &self.print
    }

    /// Returns the fields in the order of the file, those that every tracepoint has (`common_*`) first.
    pub fn fields(&self) -> &[TraceField] {
        &self.fields
    }

    /// Returns the field of this name.
    pub fn field(&self, name: &str) -> Option<&TraceField> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl TraceField {
    /// Returns its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns its declaration in C, as the kernel writes it: `const char * buf`.
    pub fn declaration(&self) -> &str {
        &self.declaration
    }

    /// Returns its offset in the raw bytes of a sample.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Returns its size in bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns the field's value in the raw bytes of a sample of its tracepoint (`PERF_SAMPLE_RAW`). `None`
    /// where they end before it does, or what they say of its place does not fit into them.
    pub fn value<'a>(&self, raw: &'a [u8]) -> Option<FieldValue<'a>> {
        let end = self.offset.checked_add(self.size)?;
        let bytes = raw.get(self.offset..end)?;
        Some(match self.layout {
            Layout::Scalar => number(bytes, self.signed),
            Layout::Text => FieldValue::Text(until_nul(bytes)),
            Layout::List(element) => self.list(bytes, element),
            Layout::Opaque => FieldValue::Bytes(bytes),
            Layout::Elsewhere { element, .. } => {
                let data = self.bytes(raw)?;
                match element {
                    Some(element) => self.list(data, element),
                    None => FieldValue::Text(until_nul(data)),
                }
            }
        })
    }

    /// Returns the bytes of the field in the raw bytes of a sample; `None` if they lie outside of
    /// those.
    pub fn bytes<'a>(&self, raw: &'a [u8]) -> Option<&'a [u8]> {
        let end = self.offset.checked_add(self.size)?;
        let bytes = raw.get(self.offset..end)?;
        let Layout::Elsewhere { relative, .. } = self.layout else {
            return Some(bytes);
        };
        let word = u32::from_ne_bytes(bytes.try_into().ok()?);
        let start = usize::try_from(word & 0xffff).ok()?;
        let len = usize::try_from(word >> 16).ok()?;
        let start = start.checked_add(if relative { end } else { 0 })?;
        raw.get(start..start.checked_add(len)?)
    }

    fn list<'a>(&self, bytes: &'a [u8], element: usize) -> FieldValue<'a> {
        FieldValue::List(FieldList {
            bytes,
            element,
            signed: self.signed,
        })
    }
}

fn malformed(line: &str) -> Error {
    let shown: String = line.chars().take(80).collect();
    Error::new(ErrorKind::UnsupportedFeature, "read a tracepoint's format")
        .with_reason(format!("`{}` is not understood", shown.escape_debug()))
}

fn number<'a>(bytes: &[u8], signed: bool) -> FieldValue<'a> {
    let value = unsigned(bytes);
    let unused = u64::BITS - 8 * bytes.len() as u32;
    match signed {
        true => FieldValue::Signed((value << unused).cast_signed() >> unused),
        false => FieldValue::Unsigned(value),
    }
}

/// Returns bytes as a number, of more than eight the first ones.
pub(crate) fn unsigned(bytes: &[u8]) -> u64 {
    let bytes = &bytes[..bytes.len().min(8)];
    let appended = |number, byte: &u8| number << 8 | u64::from(*byte);
    match cfg!(target_endian = "big") {
        true => bytes.iter().fold(0, appended),
        false => bytes.iter().rev().fold(0, appended),
    }
}

/// `field:TYPE NAME[N];`, `offset:N;`, `size:N;` and `signed:N;`, with tabs between them.
fn parse_field(line: &str) -> Option<TraceField> {
    let (declaration, rest) = line.strip_prefix("field:")?.split_once(';')?;
    let declaration = declaration.trim();
    let attribute = |name: &str| {
        let of = |part: &'_ str| {
            part.trim()
                .strip_prefix(name)?
                .strip_prefix(':')?
                .parse()
                .ok()
        };
        rest.split(';').find_map(|part| of(part) as Option<usize>)
    };
    let (offset, size) = (attribute("offset")?, attribute("size")?);
    // Kernels before 2.6.33 do not write the sign.
    let signed = attribute("signed").unwrap_or(0) != 0;
    let (type_, name, count) = split_declaration(declaration)?;
    Some(TraceField {
        layout: layout(type_, count, size),
        name: name.to_owned(),
        declaration: declaration.to_owned(),
        offset,
        size,
        signed,
    })
}

/// The type, the name, and what stands in brackets after it.
fn split_declaration(declaration: &str) -> Option<(&str, &str, Option<&str>)> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    // A pointer to a function: `void (*name)(int)`.
    if let Some((type_, rest)) = declaration.split_once("(*") {
        let end = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
        return (end > 0).then(|| (type_.trim(), &rest[..end], None));
    }
    let (declared, count) = match declaration.strip_suffix(']') {
        Some(array) => {
            let (declared, count) = array.rsplit_once('[')?;
            (declared.trim_end(), Some(count.trim()))
        }
        None => (declaration, None),
    };
    let start = declared.rfind(|c| !is_name(c)).map_or(0, |at| {
        at + declared[at..].chars().next().map_or(1, char::len_utf8)
    });
    let (type_, name) = declared.split_at(start);
    (!name.is_empty()).then_some((type_.trim(), name, count))
}

fn layout(type_: &str, count: Option<&str>, size: usize) -> Layout {
    let relative = type_.starts_with("__rel_loc ");
    if relative || type_.starts_with("__data_loc ") {
        let (_, array) = type_.split_once(' ').unwrap_or_default();
        let of = array.trim().trim_end_matches("[]").trim();
        let element = match base_size(of) {
            _ if is_char(of) => None,
            size => Some(size.unwrap_or(1)),
        };
        // Anything but 32 bits is nothing this knows.
        return match size {
            4 => Layout::Elsewhere { relative, element },
            _ => Layout::Opaque,
        };
    }
    if let Some(count) = count {
        let by_count = count
            .parse()
            .ok()
            .filter(|n| *n > 0 && size.is_multiple_of(*n));
        let element = base_size(type_)
            .filter(|element| size.is_multiple_of(*element))
            .or(by_count.map(|n: usize| size / n));
        return match element {
            _ if is_char(type_) => Layout::Text,
            Some(element @ (1 | 2 | 4 | 8)) => Layout::List(element),
            _ => Layout::Opaque,
        };
    }
    match size {
        1 | 2 | 4 | 8 => Layout::Scalar,
        _ => Layout::Opaque,
    }
}

fn is_char(type_: &str) -> bool {
    matches!(type_.trim_start_matches("const "), "char")
}

/// Returns the bytes of a type that arrays in formats have; `None` for other names, whose size follows from that of
/// the array.
fn base_size(type_: &str) -> Option<usize> {
    let pointer = size_of::<usize>();
    Some(match type_.trim_start_matches("const ") {
        "char" | "unsigned char" | "u8" | "__u8" | "s8" | "uint8_t" | "bool" => 1,
        "short" | "unsigned short" | "u16" | "__u16" | "s16" | "uint16_t" | "__be16" => 2,
        "int" | "unsigned int" | "u32" | "__u32" | "s32" | "uint32_t" | "__be32" => 4,
        "u64" | "__u64" | "s64" | "uint64_t" | "long long" | "unsigned long long" => 8,
        "long" | "unsigned long" => pointer,
        other if other.ends_with('*') => pointer,
        _ => return None,
    })
}
