//! docs/c-api.md names what there is: our functions as the header has them, and all of PAPI's.

use std::collections::BTreeSet;
use std::fs;

use crate::commands::{root, skip};

/// The words of a text that begin so.
fn words<'t>(text: &'t str, beginning: &str) -> BTreeSet<&'t str> {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .filter(|word| word.starts_with(beginning) && *word != beginning)
        .collect()
}

fn guide() -> String {
    fs::read_to_string(root().join("../../docs/c-api.md")).expect("the guide")
}

#[test]
fn what_the_guide_names_is_in_the_headers() {
    let of = |name| fs::read_to_string(root().join("include").join(name)).expect("a header");
    let header = of("quipu.h") + &of("quipu.hpp");
    let guide = guide();
    for beginning in ["quipu_", "QUIPU_"] {
        let known = words(&header, beginning);
        let named = words(&guide, beginning);
        // An environment variable.
        let unknown: Vec<_> = named
            .difference(&known)
            .filter(|w| **w != "QUIPU_EVENTS")
            .collect();
        assert!(unknown.is_empty(), "the header has no {unknown:?}");
        assert!(named.len() > 10, "{named:?}");
    }
}

/// Also the other way round: a function that nothing is said of would not be found.
#[test]
fn the_guide_names_everything_of_papi() {
    let Ok(papi) = fs::read_to_string("/usr/include/papi.h") else {
        return skip("functions of PAPI", "libpapi-dev is not installed");
    };
    if !papi.contains("PAPI_VERSION_NUMBER(7,0,0,0)") {
        return skip(
            "functions of PAPI",
            "libpapi-dev is of another version than 7.0.0",
        );
    }
    let is_function = |word: &&str| {
        word["PAPI_".len()..].starts_with(|c: char| c.is_ascii_lowercase())
            && papi.contains(&format!("{word}("))
    };
    let guide = guide();
    let named = words(&guide, "PAPI_");
    let functions: BTreeSet<&str> = words(&papi, "PAPI_")
        .into_iter()
        .filter(is_function)
        .collect();
    assert!(functions.len() > 80, "{functions:?}");
    let definitions: Vec<(&str, &str)> = papi.lines().filter_map(definition).collect();
    let position = |name| definitions.iter().position(|(known, _)| *known == name);
    let options = position("PAPI_DETACH").zip(position("PAPI_USER_EVENTS_FILE"));
    let (first, last) = options.expect("the options");
    let is_code =
        |(name, value): &&(&str, &str)| name.starts_with("PAPI_E") && value.starts_with('-');
    let codes = definitions.iter().filter(is_code);
    let constants = codes
        .chain(&definitions[first..=last])
        .map(|(name, _)| *name);
    let wanted: BTreeSet<&str> = functions.into_iter().chain(constants).collect();
    assert!(wanted.contains("PAPI_ECNFLCT") && wanted.contains("PAPI_CPU_ATTACH"));
    let missing: Vec<_> = wanted.difference(&named).collect();
    assert!(missing.is_empty(), "the guide has no {missing:?}");
}

/// The name and the value of a constant: return codes are negative, options between two of them.
fn definition(line: &str) -> Option<(&str, &str)> {
    let mut words = line.strip_prefix("#define ")?.split_whitespace();
    let (name, value) = (words.next()?, words.next()?);
    name.starts_with("PAPI_").then_some((name, value))
}
