//! The commands that are compared, from the command line.

use std::ffi::{OsStr, OsString};

use serde::{Deserialize, Serialize};

use quipu_shell::Failure;

use crate::options::{Options, Shell};

/// The word between two commands.
const SEPARATOR: &str = ":::";
/// The most commands: they are called by letters.
const MOST: usize = 26;

/// One of the commands that are compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Subject {
    /// Its letter in the report.
    pub(crate) label: String,
    /// Its text, or the name that it was given.
    pub(crate) name: String,
    /// The values of parameters that are in it.
    pub(crate) parameters: Vec<(String, String)>,
    /// The program and its arguments.
    #[serde(skip)]
    pub(crate) words: Vec<OsString>,
}

/// Returns the commands of a command line; the first is called by the letter of `first`.
pub(crate) fn subjects(options: &Options, first: usize) -> Result<Vec<Subject>, Failure> {
    let parameters = parameters(&options.parameter_list)?;
    let mut subjects = Vec::new();
    for written in written(options)? {
        for values in combinations(&parameters) {
            let words = written.words.iter().map(|word| filled(word, &values));
            subjects.push(Subject {
                label: String::new(),
                name: filled(OsStr::new(&written.name), &values)
                    .to_string_lossy()
                    .into_owned(),
                words: words.collect(),
                parameters: values,
            });
        }
    }
    call(&mut subjects, &options.name, first)?;
    Ok(subjects)
}

/// Gives commands their letters, and the names that they were given.
pub(crate) fn call(
    subjects: &mut [Subject],
    names: &[String],
    first: usize,
) -> Result<(), Failure> {
    if first + subjects.len() > MOST {
        let count = subjects.len();
        return Err(Failure::usage(format_args!(
            "{count} commands are more than the {MOST} that can be compared at once"
        )));
    }
    if names.len() > subjects.len() {
        return Err(Failure::usage(
            "there are more names (--name) than commands",
        ));
    }
    for (subject, letter) in subjects.iter_mut().zip(('A'..='Z').skip(first)) {
        subject.label = letter.to_string();
    }
    for (subject, name) in subjects.iter_mut().zip(names) {
        subject.name.clone_from(name);
    }
    Ok(())
}

/// A command before its parameters are filled in.
struct Written {
    name: String,
    words: Vec<OsString>,
}

fn written(options: &Options) -> Result<Vec<Written>, Failure> {
    let as_words = |words: &[OsString]| -> Result<Vec<Written>, Failure> {
        words
            .split(|word| word == SEPARATOR)
            .map(|words| of_words(words, options.shell))
            .collect()
    };
    if options.texts.iter().any(|text| text == SEPARATOR) {
        let words: Vec<OsString> = options.texts.iter().map(OsString::from).collect();
        return as_words(&words);
    }
    let mut written = Vec::new();
    for text in &options.texts {
        written.push(of_text(text, options.shell)?);
    }
    if !options.words.is_empty() {
        written.extend(as_words(&options.words)?);
    }
    Ok(written)
}

fn of_words(words: &[OsString], shell: Shell) -> Result<Written, Failure> {
    if words.is_empty() {
        return Err(Failure::usage("there is no command on one side of :::"));
    }
    let text: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let quoted = shlex::try_join(text.iter().map(String::as_str));
    let name = quoted.unwrap_or_else(|_| text.join(" "));
    match shell {
        Shell::None => Ok(Written {
            name,
            words: words.to_vec(),
        }),
        Shell::Sh => of_text(&name, shell),
    }
}

fn of_text(text: &str, shell: Shell) -> Result<Written, Failure> {
    let words = match shell {
        Shell::Sh => vec!["sh".to_owned(), "-c".to_owned(), text.to_owned()],
        Shell::None => {
            let words = shlex::split(text);
            words.ok_or_else(|| {
                Failure::usage(format_args!(
                    "a quotation mark has no other in the command: {text}"
                ))
            })?
        }
    };
    if words.is_empty() || text.trim().is_empty() {
        return Err(Failure::usage("a command is empty"));
    }
    Ok(Written {
        name: text.to_owned(),
        words: words.into_iter().map(OsString::from).collect(),
    })
}

/// Returns each parameter with its values.
fn parameters(lists: &[String]) -> Result<Vec<(String, Vec<String>)>, Failure> {
    let (pairs, _) = lists.as_chunks::<2>();
    let parsed = pairs.iter().map(|[name, values]| {
        let values: Vec<String> = values.split(',').map(str::to_owned).collect();
        match name.is_empty() || values.iter().any(String::is_empty) {
            true => Err(Failure::usage(format_args!(
                "-L takes a name and values, such as -L n 1,2,4, and {name:?} has an empty one"
            ))),
            false => Ok((name.clone(), values)),
        }
    });
    parsed.collect()
}

/// Returns each choice of a value for each parameter; the last one changes first.
fn combinations(parameters: &[(String, Vec<String>)]) -> Vec<Vec<(String, String)>> {
    let mut all = vec![Vec::new()];
    for (name, values) in parameters {
        let with = |chosen: &Vec<(String, String)>| {
            let chosen = chosen.clone();
            let each = values
                .iter()
                .map(move |value| (name.clone(), value.clone()));
            each.map(move |one| chosen.iter().cloned().chain([one]).collect())
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(with).collect();
    }
    all
}

/// Returns a word with the values of parameters in place of their names in braces.
fn filled(word: &OsStr, values: &[(String, String)]) -> OsString {
    // Bytes that are not text have no parameters beside them.
    let Some(text) = word.to_str() else {
        return word.to_owned();
    };
    let filled = values.iter().fold(text.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{name}}}"), value)
    });
    filled.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words_of(options: &Options) -> Vec<Vec<String>> {
        let subjects = subjects(options, 0).expect("they are well formed");
        let text = |word: &OsString| word.to_string_lossy().into_owned();
        subjects
            .iter()
            .map(|subject| subject.words.iter().map(text).collect())
            .collect()
    }

    fn texts(texts: &[&str]) -> Options {
        Options {
            texts: texts.iter().map(|text| (*text).to_owned()).collect(),
            ..Options::default()
        }
    }

    #[test]
    fn commands_are_words_or_text() {
        let words = Options {
            words: ["ls", "-l", "a b", ":::", "ls"]
                .map(OsString::from)
                .to_vec(),
            ..Options::default()
        };
        assert_eq!(words_of(&words), [vec!["ls", "-l", "a b"], vec!["ls"]]);
        assert_eq!(subjects(&words, 0).expect("two")[0].name, "ls -l 'a b'");
        assert_eq!(
            words_of(&texts(&["ls -l 'a b'", "ls"])),
            [vec!["ls", "-l", "a b"], vec!["ls"]]
        );
        assert_eq!(words_of(&texts(&["ls", ":::", "true"])), [["ls"], ["true"]]);
        let by_shell = Options {
            shell: Shell::Sh,
            ..texts(&["a | b"])
        };
        assert_eq!(words_of(&by_shell), [["sh", "-c", "a | b"]]);
        for wrong in [&["ls 'a"][..], &[" "], &["ls", ":::"]] {
            assert!(subjects(&texts(wrong), 0).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn parameters_are_filled_in() {
        let options = Options {
            parameter_list: ["a", "1,2", "b", "x,y"].map(str::to_owned).to_vec(),
            ..texts(&["run {a} --{b}"])
        };
        let names: Vec<String> = subjects(&options, 1)
            .expect("four")
            .into_iter()
            .map(|s| s.label + ": " + &s.name)
            .collect();
        assert_eq!(
            names,
            [
                "B: run 1 --x",
                "C: run 1 --y",
                "D: run 2 --x",
                "E: run 2 --y"
            ]
        );
        let empty = Options {
            parameter_list: ["a", "1,,2"].map(str::to_owned).to_vec(),
            ..texts(&["run {a}"])
        };
        assert!(subjects(&empty, 0).is_err());
    }
}
