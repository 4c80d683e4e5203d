//! Data of Quipu's own behind the end of a file, which perf does not read.
//!
//! A bit of the header beyond those of perf would say so too, but `perf inject` looks up what it writes for each bit, and reads
//! behind its table.

use std::io::{Read, Seek, SeekFrom, Write};

use crate::Result;

/// The last bytes of a file that has an appendix, behind its length.
const MAGIC: [u8; 8] = *b"QUIPUAPX";
/// Length of what says that there is one.
const FOOTER_LEN: usize = 16;
/// No longer one is read.
const LONGEST: u64 = 64 << 20;

/// Appends data to a complete file, which [`Reader::appendix`](crate::Reader::appendix) returns. Other readers do not see it.
///
/// # Errors
/// [`Io`](crate::Error::Io) when it cannot be written; the file is as good as before if it is cut to its length.
pub fn append(out: &mut (impl Write + Seek), appendix: &[u8]) -> Result<()> {
    out.seek(SeekFrom::End(0))?;
    let len = (appendix.len() as u64).to_le_bytes();
    out.write_all(&[appendix, &len, &MAGIC].concat())?;
    Ok(out.flush()?)
}

/// Returns the appendix of a file of `len` bytes, if it has one that lies behind `from`.
pub(crate) fn read(input: &mut (impl Read + Seek), (from, len): (u64, u64)) -> Option<Vec<u8>> {
    let footer_at = len.checked_sub(FOOTER_LEN as u64)?;
    input.seek(SeekFrom::Start(footer_at)).ok()?;
    let mut footer = [0; FOOTER_LEN];
    input.read_exact(&mut footer).ok()?;
    let (size, magic) = footer.split_first_chunk()?;
    let size = u64::from_le_bytes(*size);
    if magic != MAGIC || size > LONGEST {
        return None;
    }
    let at = footer_at.checked_sub(size).filter(|at| *at >= from)?;
    input.seek(SeekFrom::Start(at)).ok()?;
    let mut appendix = vec![0; usize::try_from(size).ok()?];
    input.read_exact(&mut appendix).ok()?;
    Some(appendix)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Cursor;

    #[test]
    fn an_appendix_lies_behind_the_file_and_is_whole() {
        let mut file = Cursor::new(b"of the file".to_vec());
        append(&mut file, b"appendix").expect("memory");
        let bytes = file.into_inner();
        let read = |bytes: &[u8], from| {
            let len = bytes.len() as u64;
            read(&mut Cursor::new(bytes), (from, len))
        };
        assert_eq!(read(&bytes, 11).as_deref(), Some(&b"appendix"[..]));
        assert_eq!(read(&bytes, 12), None);
        for len in 0..bytes.len() {
            assert_eq!(read(&bytes[..len], 0), None, "{len}");
        }
        for at in 19..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x80;
            assert_ne!(read(&wrong, 0).as_deref(), Some(&b"appendix"[..]), "{at}");
        }
    }
}
