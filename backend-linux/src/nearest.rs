//! Hints for names that do not exist: the nearest ones that do.

/// How many names a hint lists.
const LISTED: usize = 5;

/// "did you mean a, b?" with the names most like `wanted`, or, where none is, "`otherwise` ..." with
/// the first few of them.
pub(crate) fn did_you_mean(wanted: &str, names: &[String], otherwise: &str) -> String {
    let mut near: Vec<(f64, &str)> = names
        .iter()
        .map(|name| (strsim::jaro_winkler(wanted, name), name.as_str()))
        .filter(|(likeness, name)| *likeness > 0.8 || strsim::osa_distance(wanted, name) == 1)
        .collect();
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    if near.is_empty() {
        let mut text = format!(
            "{otherwise} {}",
            names[..names.len().min(LISTED)].join(", ")
        );
        if names.is_empty() {
            text.push_str("none");
        } else if names.len() > LISTED {
            text.push_str(&format!(" and {} more", names.len() - LISTED));
        }
        return text;
    }
    let near: Vec<&str> = near.iter().take(3).map(|(_, name)| *name).collect();
    format!("did you mean {}?", near.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_or_else_a_few() {
        let names: Vec<String> = ["event", "umask", "edge", "inv", "cmask", "ldlat"]
            .map(String::from)
            .into();
        assert_eq!(did_you_mean("evnt", &names, "-"), "did you mean event?");
        assert_eq!(did_you_mean("imv", &names, "-"), "did you mean inv?");
        assert_eq!(
            did_you_mean("zzz", &names, "there are"),
            "there are event, umask, edge, inv, cmask and 1 more"
        );
        assert_eq!(did_you_mean("x", &[], "there are"), "there are none");
    }
}
