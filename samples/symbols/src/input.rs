//! Files that are read for names.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

/// Opens a file, but nothing that waits for another process or does not end. `None` when it is not there.
///
/// # Errors
/// The operating system's when it is there and cannot be opened.
pub(crate) fn regular_file(path: &Path) -> io::Result<Option<File>> {
    let open = || match path.metadata()?.is_file() {
        true => File::open(path).map(Some),
        false => Ok(None),
    };
    match open() {
        // Names that no file can have are names of other things that were mapped.
        Err(e) => match e.kind() {
            io::ErrorKind::NotFound
            | io::ErrorKind::NotADirectory
            | io::ErrorKind::InvalidInput
            | io::ErrorKind::InvalidFilename => Ok(None),
            _ => Err(e),
        },
        opened => opened,
    }
}

/// A file that keeps the first error of reading it, for readers that take every error for a malformed file.
#[derive(Debug)]
pub(crate) struct CheckedFile {
    file: File,
    error: Rc<RefCell<Option<io::Error>>>,
}

impl CheckedFile {
    /// Has a file read, and returns what was made of it.
    ///
    /// # Errors
    /// The operating system's when it could not be read.
    pub(crate) fn read_by<T>(file: File, reader: impl FnOnce(Self) -> T) -> io::Result<T> {
        let error = Rc::new(RefCell::new(None));
        let made = reader(Self {
            file,
            error: error.clone(),
        });
        match error.take() {
            Some(error) => Err(error),
            None => Ok(made),
        }
    }

    fn keep<T>(&self, result: io::Result<T>) -> io::Result<T> {
        result.inspect_err(|e| {
            // The standard library reads again what was interrupted.
            if e.kind() != io::ErrorKind::Interrupted {
                let same = io::Error::from_raw_os_error(e.raw_os_error().unwrap_or_default());
                self.error.borrow_mut().get_or_insert(same);
            }
        })
    }
}

impl Read for CheckedFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let result = self.file.read(to);
        self.keep(result)
    }
}

impl Seek for CheckedFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let result = self.file.seek(to);
        // A place that a malformed file names may be none.
        match result {
            Err(e) if e.kind() == io::ErrorKind::InvalidInput => Err(e),
            other => self.keep(other),
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_reading_is_kept() {
        let read = |path| {
            let file = regular_file(Path::new(path)).expect("it opens");
            let file = file.expect("a regular file");
            CheckedFile::read_by(file, |mut input| input.read(&mut [0; 8]).is_ok())
        };
        // Address 0 is not mapped: EIO.
        let error = read("/proc/self/mem").expect_err("not readable");
        assert_eq!(error.raw_os_error(), Some(5));
        assert!(read("/proc/self/maps").expect("readable"));
    }
}
