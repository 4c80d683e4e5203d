//! The files of code.

use std::sync::Arc;

use foldhash::HashMap;
use serde::{Serialize, Serializer};

use crate::{Frame, Recording};

/// Files of code, each once.
#[derive(Default)]
pub(super) struct Libs {
    all: Vec<Lib>,
    places: HashMap<Arc<str>, usize>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Lib {
    name: String,
    path: String,
    debug_name: String,
    debug_path: String,
    breakpad_id: String,
    code_id: Option<String>,
    arch: Option<()>,
}

impl Serialize for Libs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}

impl Libs {
    /// Returns the position of the file of a function; `None` if it is not known.
    pub(super) fn of(&mut self, recording: &Recording, frame: &Frame) -> Option<usize> {
        if &*frame.object == "[unknown]" {
            return None;
        }
        if let Some(place) = self.places.get(&frame.object) {
            return Some(*place);
        }
        let build_id = recording.build_id(&frame.object);
        self.all.push(Lib {
            name: frame.short_object().to_owned(),
            path: frame.object.as_ref().to_owned(),
            debug_name: frame.short_object().to_owned(),
            debug_path: frame.object.as_ref().to_owned(),
            breakpad_id: breakpad_id(build_id),
            code_id: (!build_id.is_empty()).then(|| build_id.to_owned()),
            arch: None,
        });
        let place = self.all.len() - 1;
        self.places.insert(frame.object.clone(), place);
        Some(place)
    }

    /// Returns the name of a file.
    pub(super) fn name(&self, lib: usize) -> &str {
        &self.all[lib].name
    }
}

/// Returns the debug ID that Breakpad makes of a build ID: its first 16 bytes as a GUID, whose first three fields have the
/// other byte order, and an age of 0 (`FileID::ConvertIdentifierToUUIDString` of Breakpad).
fn breakpad_id(build_id: &str) -> String {
    let digits: Vec<char> = build_id
        .chars()
        .chain(std::iter::repeat('0'))
        .take(32)
        .collect();
    let byte = |at: usize| [digits[2 * at], digits[2 * at + 1]];
    let order = [3, 2, 1, 0, 5, 4, 7, 6, 8, 9, 10, 11, 12, 13, 14, 15];
    let id: String = order.into_iter().flat_map(byte).collect();
    id.to_uppercase() + "0"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_ids_are_those_of_breakpad() {
        let id = "0123456789abcdeffedcba98765432100a0b0c0d";
        assert_eq!(breakpad_id(id), "67452301AB89EFCDFEDCBA98765432100");
        assert_eq!(breakpad_id(""), "0".repeat(33));
    }
}
