//! Opening a file or standard input.

use std::fs::File;
use std::io::{self, Cursor, Read, Seek};
use std::path::Path;

use quipu_perf_data::{Error, Reader};

use crate::failure::Failure;

use super::replay::{Begin, Replay};

/// A recording that is to be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Input<'a> {
    /// The file; `-` is standard input.
    pub(crate) path: &'a Path,
    /// True if files of other users are read.
    pub(crate) force: bool,
    /// True if inlined functions and source lines are looked up.
    pub(crate) lines: bool,
}

impl Input<'_> {
    /// Goes through the records in the order of their times. `begin` is called when the description of the recording has
    /// been read, and makes what the records are given to.
    pub(crate) fn replay<V: super::Visit>(
        self,
        begin: impl Begin<V>,
    ) -> Result<(Replay, V), Failure> {
        let name = self.path.display();
        let fail =
            |e: &dyn std::fmt::Display| Failure::new(format_args!("cannot read {name}: {e}"));
        if self.path == Path::new("-") {
            let fail = |e| Failure::new(format_args!("cannot read standard input: {e}"));
            return self.replay_stdin(begin, &fail);
        }
        let file = open(self.path, self.force, "record")?;
        let len = file.metadata().ok().map(|file| file.len());
        self.replay_file(file, len, begin, &|e: Error| fail(&e))
    }

    /// Reads a stream as it comes, or a file as a whole, whose records are not last in it.
    fn replay_stdin<V: super::Visit>(
        self,
        begin: impl Begin<V>,
        fail: &dyn Fn(Error) -> Failure,
    ) -> Result<(Replay, V), Failure> {
        let mut stdin = io::stdin().lock();
        let mut start = Vec::new();
        let read = stdin.by_ref().take(16).read_to_end(&mut start);
        read.map_err(|e| fail(e.into()))?;
        let is_stream = quipu_perf_data::is_stream(&start).map_err(fail)?;
        let mut input = Cursor::new(start).chain(stdin);
        if is_stream {
            let mut reader = Reader::from_stream(input).map_err(fail)?;
            let (replay, visit) = Replay::begin(&reader, self, begin)?;
            return replay
                .run(reader.stream_records(), visit, None)
                .map_err(fail);
        }
        let mut file = Vec::new();
        input.read_to_end(&mut file).map_err(|e| fail(e.into()))?;
        self.replay_file(Cursor::new(file), None, begin, fail)
    }

    fn replay_file<V: super::Visit, R: Read + Seek>(
        self,
        file: R,
        len: Option<u64>,
        begin: impl Begin<V>,
        fail: &dyn Fn(Error) -> Failure,
    ) -> Result<(Replay, V), Failure> {
        let mut reader = Reader::new(file).map_err(fail)?;
        let (replay, visit) = Replay::begin(&reader, self, begin)?;
        let records = reader.records().map_err(fail)?;
        replay.run(records, visit, len).map_err(fail)
    }
}

/// Opens a file that this user, root, or with `force` anyone wrote; `maker` is the subcommand that makes such files.
pub(crate) fn open(path: &Path, force: bool, maker: &str) -> Result<File, Failure> {
    let name = path.display();
    let fail = |e: &dyn std::fmt::Display| Failure::new(format_args!("cannot read {name}: {e}"));
    let file = File::open(path).map_err(|e| match e.kind() {
        io::ErrorKind::NotFound => {
            let on = if cfg!(target_os = "linux") {
                ""
            } else {
                "on Linux "
            };
            fail(&format_args!(
                "there is no such file; {on}`quipu {maker} -- COMMAND` makes one"
            ))
        }
        _ => fail(&e),
    })?;
    if !force && is_of_another_user(&file) {
        return Err(fail(
            &"it belongs to another user, who can have written anything: -f reads it all the same",
        ));
    }
    Ok(file)
}

/// Returns true if a file belongs to neither this user nor root.
fn is_of_another_user(file: &File) -> bool {
    cfg_if::cfg_if! {
        if #[cfg(unix)] {
            let owner = file.metadata().map(|m| std::os::unix::fs::MetadataExt::uid(&m));
            owner.is_ok_and(|owner| owner != 0 && owner != rustix::process::geteuid().as_raw())
        } else {
            let _ = file;
            false
        }
    }
}
