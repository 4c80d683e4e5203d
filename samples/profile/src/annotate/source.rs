//! Lines of source files.

use std::collections::HashMap;
use std::fs;

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
    // Debug information can name anything: what is not a regular file may not end.
    let is_read = fs::metadata(path).is_ok_and(|file| file.is_file() && file.len() <= LONGEST);
    let content = match is_read {
        true => fs::read(path).unwrap_or_default(),
        false => Vec::new(),
    };
    let text = String::from_utf8_lossy(&content);
    text.lines().map(str::to_owned).collect()
}
