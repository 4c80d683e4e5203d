//! Files that are read for names.

use std::cell::RefCell;
use std::fs::{File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;

use crate::archive;

/// Opens a file, but nothing that waits for another process or does not end, also if its owner puts such a thing in its place
/// meanwhile. `None` when it is not there.
///
/// # Errors
/// The operating system's when it is there and cannot be opened.
pub fn regular_file(path: &Path) -> io::Result<Option<File>> {
    let open = || -> io::Result<Option<File>> {
        // To open a device may have an effect; another thing may be there a moment later.
        if !path.metadata()?.is_file() {
            return Ok(None);
        }
        let file = open_without_waiting(path)?;
        let is_file = file.metadata()?.is_file();
        Ok(is_file.then_some(file))
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

/// Opens a file for reading, also where opening it would wait for another process, as that of a FIFO does.
fn open_without_waiting(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, libc::O_NONBLOCK);
    options.read(true).open(path)
}

/// Opens a file, or one that lies uncompressed in an archive, by a path that goes on in there: `base.apk!/lib/x.so`.
///
/// # Errors
/// The operating system's when it is there and cannot be opened.
pub(crate) fn input_file(path: &Path) -> io::Result<Option<InputFile>> {
    if let Some(file) = regular_file(path)? {
        return Ok(Some(InputFile {
            file,
            from: 0,
            until: None,
        }));
    }
    let part = archive::split(path).and_then(|(archive, name)| {
        let range = archive::range_of(archive, name)?;
        Some((archive, range))
    });
    let Some((archive, range)) = part else {
        return Ok(None);
    };
    let mut part = match regular_file(archive)? {
        Some(file) => InputFile {
            file,
            from: range.start,
            until: Some(range.end),
        },
        None => return Ok(None),
    };
    part.rewind()?;
    Ok(Some(part))
}

/// Returns what the file system knows of a file, or of the archive that it is in.
pub(crate) fn metadata(path: &Path) -> io::Result<Metadata> {
    let found = path.metadata();
    found.or_else(|error| match archive::split(path) {
        Some((archive, _)) => archive.metadata(),
        None => Err(error),
    })
}

/// A file, or a part of one.
#[derive(Debug)]
pub(crate) struct InputFile {
    file: File,
    from: u64,
    /// The end of the part.
    until: Option<u64>,
}

impl InputFile {
    /// Returns the bytes to read at most, of so many that are wanted.
    fn most(&mut self, wanted: usize) -> io::Result<usize> {
        let Some(until) = self.until else {
            return Ok(wanted);
        };
        let left = until.saturating_sub(self.file.stream_position()?);
        Ok(wanted.min(usize::try_from(left).unwrap_or(usize::MAX)))
    }
}

impl Read for InputFile {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        let most = self.most(to.len())?;
        self.file.read(&mut to[..most])
    }
}

impl Seek for InputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let outside = || io::Error::from(io::ErrorKind::InvalidInput);
        let to = match (to, self.until) {
            (SeekFrom::Start(at), _) => {
                SeekFrom::Start(self.from.checked_add(at).ok_or_else(outside)?)
            }
            (SeekFrom::End(by), Some(until)) => {
                SeekFrom::Start(until.checked_add_signed(by).ok_or_else(outside)?)
            }
            (to, _) => to,
        };
        self.file
            .seek(to)?
            .checked_sub(self.from)
            .ok_or_else(outside)
    }
}

/// A file that keeps the first error of reading it, for readers that take every error for a malformed file.
#[derive(Debug)]
pub(crate) struct CheckedFile {
    file: InputFile,
    error: Rc<RefCell<Option<io::Error>>>,
}

impl CheckedFile {
    /// Has a file read, and returns what was made of it.
    ///
    /// # Errors
    /// The operating system's when it could not be read.
    pub(crate) fn read_by<T>(file: InputFile, reader: impl FnOnce(Self) -> T) -> io::Result<T> {
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
            let file = input_file(Path::new(path)).expect("it opens");
            let file = file.expect("a regular file");
            CheckedFile::read_by(file, |mut input| input.read(&mut [0; 8]).is_ok())
        };
        // Address 0 is not mapped: EIO.
        let error = read("/proc/self/mem").expect_err("not readable");
        assert_eq!(error.raw_os_error(), Some(5));
        assert!(read("/proc/self/maps").expect("readable"));
    }

    #[test]
    fn a_fifo_that_takes_the_place_of_a_file_does_not_stop_it() {
        const TEST: &str = "a_fifo_that_takes_the_place_of_a_file_does_not_stop_it";
        let directory = tempfile::tempdir().expect("writable");
        let path = |name| directory.path().join(name);
        let made = std::process::Command::new("mkfifo")
            .arg(path("fifo"))
            .status();
        if !made.is_ok_and(|status| status.success()) {
            use std::io::Write as _;
            let _ = writeln!(io::stderr(), "SKIP {TEST}: no mkfifo");
            return;
        }
        std::fs::write(path("file"), "text").expect("writable");
        let (done, is_done) = std::sync::mpsc::channel();
        let opened = path("path");
        std::thread::spawn(move || {
            let (mut files, mut others) = (0, 0);
            // Until both were seen often enough that one came in the place of the other between the looks.
            while files < 2000 || others < 2000 {
                match regular_file(&opened).expect("no error") {
                    Some(file) => {
                        assert!(file.metadata().expect("open").is_file());
                        files += 1;
                    }
                    None => others += 1,
                }
            }
            let _ = done.send(());
        });
        let end = std::time::Instant::now() + std::time::Duration::from_secs(60);
        let replace = |name| {
            std::fs::hard_link(path(name), path("link")).expect("linked");
            std::fs::rename(path("link"), path("path")).expect("renamed");
        };
        while is_done.try_recv().is_err() {
            replace("file");
            replace("fifo");
            assert!(std::time::Instant::now() < end, "it waits");
        }
    }
}
