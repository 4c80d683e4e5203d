//! Printing the data of a tracepoint as the kernel does: its `print fmt`.
//!
//! `Documentation/trace/events.rst`, "Event formats". Where the kernel and libtraceevent, by which perf prints, differ,
//! this does as libtraceevent: fields are read without their sign, which the conversion gives them.

mod conversion;
mod parse;
mod pointer;

use std::fmt::Write;

use quipu_hal::{Error, ErrorKind, Result};

use crate::text::{hex, until_nul};
use crate::trace_format::{FieldValue, TraceField, TraceFormat, unsigned};

use conversion::{Amount, Piece, pieces};
use parse::{Argument, Parser};

/// No width is larger than this.
const WIDEST: usize = 4096;

/// Printer of the data of a tracepoint.
///
/// ```
/// use quipu_perf_data::{TraceFormat, TracePrint};
///
/// let format = TraceFormat::parse(
///     "name: sched_wakeup\nID: 5\nformat:\n\
///      \tfield:int pid;\toffset:0;\tsize:4;\tsigned:1;\n\n\
///      print fmt: \"pid=%d%s\", REC->pid, REC->pid < 2 ? \" (init)\" : \"\"\n",
/// )?;
/// let print = TracePrint::new(&format)?;
/// let mut text = String::new();
/// print.print(&1i32.to_ne_bytes(), &mut |_| None, &mut text);
/// assert_eq!(text, "pid=1 (init)");
/// # Ok::<_, quipu_hal::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct TracePrint {
    format: TraceFormat,
    pieces: Vec<Piece>,
    arguments: Vec<Argument>,
}

/// Finds the kernel's symbol at an address: its name, and its start.
type Symbols<'a> = dyn FnMut(u64) -> Option<(String, u64)> + 'a;

impl TracePrint {
    /// Reads how a tracepoint is printed.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) where it calls a function of the kernel that is not known.
    pub fn new(format: &TraceFormat) -> Result<Self> {
        let wrong = |rest: &str| {
            let shown: String = rest.chars().take(80).collect();
            Error::new(
                ErrorKind::UnsupportedFeature,
                format!("read how {} is printed", format.name()),
            )
            .with_reason(format!("`{}` is not understood", shown.escape_debug()))
        };
        let (template, arguments) = Parser::new(format).parse().map_err(wrong)?;
        Ok(Self {
            pieces: pieces(&template).ok_or_else(|| wrong(&template))?,
            format: format.clone(),
            arguments,
        })
    }

    /// Appends the text of a sample's raw data (`PERF_SAMPLE_RAW`). `symbols` finds the kernel's symbol at an address: its
    /// name, and its start. Data that end too early are as zeros.
    pub fn print(&self, raw: &[u8], symbols: &mut Symbols<'_>, out: &mut String) {
        let mut arguments = self.arguments.iter();
        for piece in &self.pieces {
            let conversion = match piece {
                Piece::Literal(text) => {
                    out.push_str(text);
                    continue;
                }
                Piece::Conversion(conversion) => conversion,
            };
            let mut amount = |amount: Option<Amount>| match amount? {
                Amount::Fixed(amount) => Some(amount.min(WIDEST)),
                Amount::Argument => {
                    let value = number(arguments.next()?, raw, &self.format);
                    Some(usize::try_from(value).unwrap_or(WIDEST).min(WIDEST))
                }
            };
            let width = amount(conversion.width);
            let precision = amount(conversion.precision);
            let Some(argument) = arguments.next() else {
                return;
            };
            let columns = width.unwrap_or(0);
            match conversion.letter {
                's' => {
                    let text = self.text(argument, raw);
                    conversion.text(&text, columns, precision, out);
                }
                'c' => {
                    let value = number(argument, raw, &self.format) as u8;
                    conversion.text(&char::from(value).to_string(), columns, None, out);
                }
                'p' => {
                    let bytes = match uncast(argument) {
                        Argument::Field(field) => self.bytes(*field, raw),
                        _ => &[],
                    };
                    match pointer::text(&conversion.pointer, bytes, width) {
                        Some(text) => out.push_str(&text),
                        None => self.address(&conversion.pointer, argument, raw, symbols, out),
                    }
                }
                _ => {
                    let value = number(argument, raw, &self.format);
                    conversion.number(value, columns, precision, out);
                }
            }
        }
    }

    fn text(&self, argument: &Argument, raw: &[u8]) -> String {
        let value = |argument| number(argument, raw, &self.format);
        match argument {
            Argument::Text(text) => text.clone(),
            Argument::Field(at) => self.field_text(&self.format.fields()[*at], raw),
            Argument::Choice(parts) => {
                let [condition, yes, no] = &**parts;
                let chosen = if value(condition) != 0 { yes } else { no };
                self.text(chosen, raw)
            }
            Argument::Flags(flags, between, names) => {
                let mut left = value(flags);
                let mut set: Vec<String> = Vec::new();
                for (bits, name) in names {
                    match bits {
                        Some(bits @ 1..) if left & bits == *bits => {
                            set.push(name.clone());
                            left &= !bits;
                        }
                        None if left == 0 && set.is_empty() => return name.clone(),
                        _ => {}
                    }
                }
                if left != 0 {
                    set.push(format!("{left:#x}"));
                }
                set.join(between)
            }
            Argument::Symbol(symbol, names) => {
                let value = value(symbol);
                let found = names.iter().find(|(named, _)| *named == Some(value));
                found.map_or_else(|| format!("{value:#x}"), |(_, name)| name.clone())
            }
            Argument::Hex(field, len, between) => {
                let bytes = self.bytes(*field, raw);
                let len = usize::try_from(value(len)).unwrap_or(usize::MAX);
                hex(&bytes[..len.min(bytes.len())], between)
            }
            Argument::Numbers(field, parts) => {
                let [count, size] = &**parts;
                let size = usize::try_from(value(size)).unwrap_or(0);
                if !matches!(size, 1 | 2 | 4 | 8) {
                    return String::new();
                }
                let count = usize::try_from(value(count)).unwrap_or(usize::MAX);
                let numbers = self.bytes(*field, raw).chunks_exact(size).take(count);
                let numbers: Vec<_> = numbers.map(|n| format!("{:#x}", unsigned(n))).collect();
                format!("{{{}}}", numbers.join(","))
            }
            Argument::Mask(field) => {
                let mut bytes = least_first(self.bytes(*field, raw));
                bytes.reverse();
                let words = bytes.chunks(4).map(|word| hex(word, ""));
                words.collect::<Vec<_>>().join(",")
            }
            Argument::Cpus(field) => ranges(&least_first(self.bytes(*field, raw))),
            _ => String::new(),
        }
    }

    fn field_text(&self, field: &TraceField, raw: &[u8]) -> String {
        match field.value(raw) {
            // A pointer to text, which is not here.
            Some(FieldValue::Unsigned(address)) if field.size() == 8 => format!("{address:x}"),
            None | Some(FieldValue::Signed(_) | FieldValue::Unsigned(_)) => String::new(),
            Some(_) => String::from_utf8_lossy(until_nul(self.bytes_of(field, raw))).into_owned(),
        }
    }

    /// Appends an address, as a symbol where the letters ask for it.
    fn address(
        &self,
        letters: &str,
        argument: &Argument,
        raw: &[u8],
        symbols: &mut Symbols<'_>,
        out: &mut String,
    ) {
        let address = number(argument, raw, &self.format);
        let known = match letters {
            "" => None,
            _ => symbols(address),
        };
        let _ = match (known, letters) {
            (Some((name, start)), "S" | "F") => {
                write!(out, "{name}+{:#x}", address.wrapping_sub(start))
            }
            (Some((name, _)), _) => write!(out, "{name}"),
            (None, "") if address == 0 => write!(out, "(nil)"),
            (None, _) => write!(out, "{address:#x}"),
        };
    }

    fn bytes<'r>(&self, field: usize, raw: &'r [u8]) -> &'r [u8] {
        self.bytes_of(&self.format.fields()[field], raw)
    }

    /// Returns the bytes of a field, wherever they are.
    fn bytes_of<'r>(&self, field: &TraceField, raw: &'r [u8]) -> &'r [u8] {
        field.bytes(raw).unwrap_or_default()
    }
}

/// Returns the value of an argument that is a number.
fn number(argument: &Argument, raw: &[u8], format: &TraceFormat) -> u64 {
    let value = |argument| number(argument, raw, format);
    match argument {
        Argument::Number(number) => *number,
        Argument::Field(at) => {
            let field = &format.fields()[*at];
            let end = field.offset().saturating_add(field.size().min(8));
            raw.get(field.offset()..end).map_or(0, unsigned)
        }
        Argument::Element(at, index) => {
            let Some(FieldValue::List(list)) = format.fields()[*at].value(raw) else {
                return 0;
            };
            let index = usize::try_from(value(index)).unwrap_or(usize::MAX);
            match list.iter().nth(index) {
                Some(FieldValue::Signed(value)) => value.cast_unsigned(),
                Some(FieldValue::Unsigned(value)) => value,
                _ => 0,
            }
        }
        Argument::Len(at) => format.fields()[*at].bytes(raw).map_or(0, <[u8]>::len) as u64,
        Argument::Cast(size, inner) => value(inner) & (u64::MAX >> (64 - 8 * size)),
        Argument::Unary(operator, inner) => {
            let inner = value(inner);
            match operator {
                '!' => u64::from(inner == 0),
                '~' => !inner,
                '-' => inner.wrapping_neg(),
                _ => inner,
            }
        }
        Argument::Binary(operator, left, right) => binary(operator, value(left), value(right)),
        Argument::Choice(parts) => {
            let [condition, yes, no] = &**parts;
            value(if value(condition) != 0 { yes } else { no })
        }
        _ => 0,
    }
}

fn binary(operator: &str, left: u64, right: u64) -> u64 {
    let shift = u32::try_from(right).unwrap_or(u32::MAX);
    match operator {
        "||" => u64::from(left != 0 || right != 0),
        "&&" => u64::from(left != 0 && right != 0),
        "|" => left | right,
        "^" => left ^ right,
        "&" => left & right,
        "==" => u64::from(left == right),
        "!=" => u64::from(left != right),
        "<=" => u64::from(left <= right),
        ">=" => u64::from(left >= right),
        "<" => u64::from(left < right),
        ">" => u64::from(left > right),
        "<<" => left.checked_shl(shift).unwrap_or(0),
        ">>" => left.checked_shr(shift).unwrap_or(0),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "*" => left.wrapping_mul(right),
        "/" => left.checked_div(right).unwrap_or(0),
        _ => left.checked_rem(right).unwrap_or(0),
    }
}

/// Returns an argument without the casts around it.
fn uncast(mut argument: &Argument) -> &Argument {
    while let Argument::Cast(_, inner) = argument {
        argument = inner;
    }
    argument
}

/// Returns the bytes of a mask in the order of its bits.
fn least_first(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if cfg!(target_endian = "big") {
        bytes.reverse();
    }
    bytes
}

/// Returns the numbers of the bits that are set, those that follow each other as a range: `0-3,8`.
fn ranges(bytes: &[u8]) -> String {
    let is_set = |bit: &usize| bytes[bit / 8] >> (bit % 8) & 1 != 0;
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for bit in (0..8 * bytes.len()).filter(is_set) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == bit => *last = bit,
            _ => ranges.push((bit, bit)),
        }
    }
    let ranges = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    ranges.collect::<Vec<_>>().join(",")
}

impl TraceFormat {
    /// Appends its fields by their names, as perf does where it is not known how the tracepoint is
    /// [printed](TracePrint): ` pid=1 comm=init`.
    pub fn print_fields(&self, raw: &[u8], out: &mut String) {
        let own = self.fields().iter();
        for field in own.filter(|field| !field.name().starts_with("common_")) {
            let declared = field.declaration().rsplit_once(field.name());
            let is_of = |types: &[&str]| {
                declared.is_some_and(|(before, _)| types.iter().any(|of| before.contains(of)))
            };
            let _ = write!(out, " {}=", field.name());
            let _ = match field.value(raw) {
                None => Ok(()),
                Some(FieldValue::Signed(value)) if field.size() == 2 => write!(out, "{value:2}"),
                Some(FieldValue::Signed(value)) => write!(out, "{value}"),
                // A long number mostly is an address.
                Some(FieldValue::Unsigned(value)) if is_of(&["*", "long"]) => {
                    write!(out, "{value:#x}")
                }
                Some(FieldValue::Unsigned(value)) => write!(out, "{value}"),
                Some(_) => {
                    let bytes = field.bytes(raw).unwrap_or_default();
                    let text = until_nul(bytes);
                    match is_of(&["char", "u8", "s8"]) && text.iter().all(is_printable) {
                        true => write!(out, "{}", String::from_utf8_lossy(text)),
                        false => write!(out, "ARRAY[{}]", hex(bytes, ", ")),
                    }
                }
            };
        }
    }
}

/// Returns true for a character that C prints, and for space.
fn is_printable(byte: &u8) -> bool {
    matches!(byte, b' '..=b'~' | b'\t'..=b'\r')
}
