//! Formats of tracepoints, in the form in which tools expect them
//! (`tools/perf/util/trace-event-info.c`).

use std::collections::BTreeMap;

/// The bytes that it begins with.
const MAGIC: &[u8] = b"\x17\x08\x44tracing";

/// The descriptions in tracefs of the tracepoints of a recording: the content of
/// [`Features::tracing_data`](crate::Features::tracing_data).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct TracingData {
    /// The size of a page of memory, in bytes.
    pub page_size: u32,
    /// `events/header_page`.
    pub header_page: Vec<u8>,
    /// `events/header_event`.
    pub header_event: Vec<u8>,
    /// By system, the files `events/SYSTEM/NAME/format` of its tracepoints.
    pub formats: BTreeMap<String, Vec<Vec<u8>>>,
}

impl TracingData {
    /// Reads what [`to_bytes`](Self::to_bytes) or another tool wrote, as far as the formats of tracepoints. `None` where it
    /// makes no sense, or is of a machine of the other byte order, of whose tracepoints the data cannot be read either.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        take_text(&mut rest)?;
        let [order, _] = *take(&mut rest, 2)? else {
            return None;
        };
        if order != u8::from(cfg!(target_endian = "big")) {
            return None;
        }
        let mut data = Self {
            page_size: take_count(&mut rest)?,
            ..Self::default()
        };
        rest = rest.strip_prefix(b"header_page\0")?;
        data.header_page = take_file(&mut rest)?.to_owned();
        rest = rest.strip_prefix(b"header_event\0")?;
        data.header_event = take_file(&mut rest)?.to_owned();
        for _ in 0..take_count(&mut rest)? {
            take_file(&mut rest)?;
        }
        for _ in 0..take_count(&mut rest)? {
            let system = String::from_utf8_lossy(take_text(&mut rest)?).into_owned();
            let formats = data.formats.entry(system).or_default();
            for _ in 0..take_count(&mut rest)? {
                formats.push(take_file(&mut rest)?.to_owned());
            }
        }
        Some(data)
    }

    /// Returns its bytes. Symbols of the kernel, formats of `trace_printk` and names of threads, which also
    /// have their place there, are left empty.
    pub fn to_bytes(&self) -> Vec<u8> {
        const VERSION: &[u8] = b"0.6\0";
        let mut out = [MAGIC, VERSION].concat();
        out.push(u8::from(cfg!(target_endian = "big")));
        out.push(size_of::<usize>() as u8);
        out.extend_from_slice(&self.page_size.to_ne_bytes());
        out.extend_from_slice(b"header_page\0");
        push_file(&mut out, &self.header_page);
        out.extend_from_slice(b"header_event\0");
        push_file(&mut out, &self.header_event);
        // Formats of ftrace's own events: none.
        push_count(&mut out, 0);
        push_count(&mut out, self.formats.len());
        for (system, formats) in &self.formats {
            out.extend_from_slice(system.as_bytes());
            out.push(0);
            push_count(&mut out, formats.len());
            for format in formats {
                push_file(&mut out, format);
            }
        }
        // Kernel symbols and printk formats, with short sizes; thread names, with a long one.
        push_count(&mut out, 0);
        push_count(&mut out, 0);
        push_file(&mut out, b"");
        out
    }
}

/// Takes bytes from the start of what is left.
fn take<'a>(rest: &mut &'a [u8], len: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(len)?;
    *rest = left;
    Some(taken)
}

/// Takes text that a zero ends, without that.
fn take_text<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = rest.iter().position(|byte| *byte == 0)?;
    let text = take(rest, len)?;
    take(rest, 1)?;
    Some(text)
}

fn take_count(rest: &mut &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(take(rest, 4)?.try_into().ok()?))
}

/// Takes the content of a file, before which its length stands.
fn take_file<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = u64::from_ne_bytes(take(rest, 8)?.try_into().ok()?);
    take(rest, usize::try_from(len).ok()?)
}

fn push_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&u32::try_from(count).unwrap_or(u32::MAX).to_ne_bytes());
}

fn push_file(out: &mut Vec<u8>, content: &[u8]) {
    out.extend_from_slice(&(content.len() as u64).to_ne_bytes());
    out.extend_from_slice(content);
}

#[cfg(all(test, target_endian = "little", target_pointer_width = "64"))]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_are_those_that_perf_expects() {
        let data = TracingData {
            page_size: 0x1000,
            header_page: b"P".to_vec(),
            header_event: b"EE".to_vec(),
            formats: BTreeMap::from([("sys".to_owned(), vec![b"F".to_vec()])]),
        };
        let golden = [
            &b"\x17\x08\x44tracing0.6\0\0\x08\x00\x10\0\0"[..],
            b"header_page\0\x01\0\0\0\0\0\0\0P",
            b"header_event\0\x02\0\0\0\0\0\0\0EE",
            b"\0\0\0\0\x01\0\0\0sys\0\x01\0\0\0\x01\0\0\0\0\0\0\0F",
            b"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
        ];
        assert_eq!(data.to_bytes(), golden.concat());
        assert_eq!(TracingData::from_bytes(&golden.concat()), Some(data));
        // The counts after the formats are not needed.
        let needed = golden[..4].concat();
        assert!(TracingData::from_bytes(&needed).is_some());
        for len in 0..needed.len() {
            assert_eq!(TracingData::from_bytes(&needed[..len]), None, "{len}");
        }
    }
}
