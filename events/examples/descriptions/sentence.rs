//! One sentence of a description.

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

/// Returns the first sentence of a text, in one line and without its point; `None` where there is none.
pub(crate) fn first(text: &str) -> Option<String> {
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
    let words: Vec<&str> = plain.split_whitespace().collect();
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
