//! The sentences of a description.

/// Words with a point at their end that ends no sentence.
const ABBREVIATIONS: [&str; 9] = [
    "e.g.", "i.e.", "etc.", "vs.", "no.", "incl.", "excl.", "approx.", "instr.",
];

/// Starts of a sentence before which sources leave out the point.
const STARTS: [&str; 7] = [
    "This event ",
    "The event ",
    "The counter ",
    "The following ",
    "Note:",
    "NOTE:",
    "Counts ",
];

/// Returns a text in one line.
fn in_a_line(text: &str) -> String {
    let plain: String = text
        .chars()
        .map(|c| {
            if c.is_control() || c == '\u{a0}' {
                ' '
            } else {
                c
            }
        })
        .filter(|c| *c != '\u{200b}' && *c != '\u{feff}')
        .collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Returns what a text says after its first sentence, if that is this one, and otherwise all of it, without the last point.
pub(crate) fn after(text: &str, first: &str) -> String {
    let whole = in_a_line(text);
    let begins = whole.get(..first.len());
    let is_first = begins.is_some_and(|begins| begins.eq_ignore_ascii_case(first));
    let others = if is_first {
        &whole[first.len()..]
    } else {
        &whole
    };
    let others = others.trim_start_matches(['.', ' ', ',', ';', ':']);
    others.trim_end_matches(['.', ' ']).to_owned()
}

/// Returns the first sentence of a text, in one line and without its point; `None` where there is none.
pub(crate) fn first(text: &str) -> Option<String> {
    let plain = in_a_line(text);
    let words: Vec<&str> = plain.split(' ').collect();
    let mut end = words.len();
    for at in 1..words.len() {
        let rest = words[at..].join(" ");
        let stops = words[at - 1].ends_with(['.', '!', '?', ':'])
            && !ABBREVIATIONS.contains(
                &words[at - 1]
                    .trim_start_matches('(')
                    .to_ascii_lowercase()
                    .as_str(),
            )
            && !words[at - 1].ends_with(':')
            && words[at].starts_with(|c: char| c.is_ascii_uppercase() || c == '(' || c == '[');
        // A title may be such a start itself.
        let begins = at > 1
            && STARTS.iter().any(|start| rest.starts_with(start))
            && !words[at - 1].ends_with(':');
        if stops || begins || rest.starts_with("[This event is") {
            end = at;
            break;
        }
    }
    let sentence = words[..end].join(" ");
    let sentence = sentence.trim_end_matches(['.', ' ', ',', ';', ':']);
    (sentence.chars().filter(|c| c.is_alphabetic()).count() >= 3).then(|| sentence.to_owned())
}

/// Returns true if a sentence says no more than the name does.
pub(crate) fn repeats(sentence: &str, name: &str) -> bool {
    let folded = |text: &str| -> String {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.map(|c| c.to_ascii_uppercase()).collect()
    };
    folded(name).ends_with(&folded(sentence)) || !sentence.contains(' ') && sentence.contains('_')
}
