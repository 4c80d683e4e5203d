//! Hints for names that do not exist: the nearest ones that do.

use quipu_text::nearest_of;

/// The most names that a hint lists.
const LISTED: usize = 5;

/// "did you mean a, b?" with the names most like `wanted`, or, where none is, "`otherwise` ..." with
/// the first few of them.
pub(crate) fn did_you_mean(wanted: &str, names: &[String], otherwise: &str) -> String {
    let near = nearest_of(wanted, names.iter().map(String::as_str));
    if !near.is_empty() {
        return format!("did you mean {}?", near.join(", "));
    }
    let listed = match names {
        [] => "none".to_owned(),
        few if few.len() <= LISTED => few.join(", "),
        many => format!(
            "{} and {} more",
            many[..LISTED].join(", "),
            many.len() - LISTED
        ),
    };
    format!("{otherwise} {listed}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_or_else_a_few() {
        let names = "event umask edge inv cmask ldlat".split(' ');
        let names: Vec<String> = names.map(String::from).collect();
        for (wanted, names, hint) in [
            ("evnt", &names[..], "did you mean event?"),
            ("zzz", &names[..2], "there are event, umask"),
            (
                "zzz",
                &names,
                "there are event, umask, edge, inv, cmask and 1 more",
            ),
            ("x", &[], "there are none"),
        ] {
            assert_eq!(did_you_mean(wanted, names, "there are"), hint);
        }
    }
}
