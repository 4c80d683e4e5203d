//! Files of profiles, compressed if their names say so.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

/// Writes a file, which has this path, by a function: through gzip if its name ends in `.gz`.
///
/// # Errors
/// If it cannot be written.
pub fn fill(
    file: File,
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let mut file = BufWriter::new(file);
    if path.extension().is_some_and(|extension| extension == "gz") {
        let mut packed = GzEncoder::new(&mut file, Compression::default());
        write(&mut packed)?;
        packed.finish()?;
    } else {
        write(&mut file)?;
    }
    file.flush()
}
