//! Suggestions for a search that finds nothing.

use std::collections::BTreeSet;

use super::selection::words;

/// Returns `; did you mean ...?` if names or descriptions are near to what was sought, and nothing if none are. Of a text of
/// several words each that occurs nowhere is replaced.
pub(super) fn suggestion<'a>(
    sought: &[String],
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let near: Vec<String> = sought
        .iter()
        .flat_map(|text| match text.contains(' ') {
            true => respelled(text, &known).into_iter().collect(),
            false => {
                let names = known.iter().filter(|name| !name.contains(' '));
                quipu_text::nearest(text, names.copied())
            }
        })
        // An event of that very name is of a kind that was not asked for.
        .filter(|near| !sought.contains(&near.to_lowercase()))
        .collect();
    match near.as_slice() {
        [] => String::new(),
        near => format!("; did you mean {}?", near.join(", ")),
    }
}

/// Returns the text with the nearest word in the place of each that is not known; None if one has no such.
fn respelled(text: &str, known: &[&str]) -> Option<String> {
    let known: BTreeSet<String> = known
        .iter()
        .flat_map(|name| {
            words(name)
                .split(' ')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    let respelled = words(text)
        .split_whitespace()
        .map(
            |word| match known.iter().any(|known| known.contains(word)) {
                true => Some(word.to_owned()),
                false => {
                    let near = quipu_text::nearest_of(word, known.iter().map(String::as_str));
                    near.first().map(|near| (*near).to_owned())
                }
            },
        )
        .collect::<Option<Vec<_>>>()?;
    Some(format!("\"{}\"", respelled.join(" ")))
}
