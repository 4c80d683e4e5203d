//! Lines of source files.

use std::collections::HashMap;
use std::io::Read;

use quipu_symbols::regular_file;

/// No source file is longer than this.
const LONGEST: u64 = 16 << 20;

/// Source files, read when they are first asked for.
#[derive(Debug, Default)]
pub(super) struct Sources(HashMap<String, Vec<String>>);

impl Sources {
    /// Returns a line, from 1 on, of a file; `None` where the file is not there.
    pub(super) fn line(&mut self, path: &str, number: u32) -> Option<&str> {
        if !self.0.contains_key(path) {
            self.0.insert(path.to_owned(), read(path));
        }
        let lines = self.0.get(path)?;
        let line = lines.get(usize::try_from(number).ok()?.checked_sub(1)?)?;
        Some(line.as_str())
    }
}

fn read(path: &str) -> Vec<String> {
    let mut content = Vec::new();
    // Debug information can name anything.
    if let Ok(Some(file)) = regular_file(path.as_ref()) {
        let read = file.take(LONGEST + 1).read_to_end(&mut content);
        if read.is_err() || content.len() as u64 > LONGEST {
            content.clear();
        }
    }
    let text = String::from_utf8_lossy(&content);
    text.lines().map(str::to_owned).collect()
}
