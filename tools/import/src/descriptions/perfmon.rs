//! The sentences of Intel's lists (<https://github.com/intel/perfmon>).

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::Sentences;

/// The folders of CPUs whose ids are not called like them, and what the files of their kind of core are called.
const FOLDERS: [(&str, &str, &str); 19] = [
    ("intel-adl-core", "ADL", "goldencove"),
    ("intel-adl-atom", "ADL", "gracemont"),
    ("intel-arl-core", "ARL", "lioncove"),
    ("intel-arl-atom", "ARL", "skymont"),
    ("intel-arl-lp", "ARL", "crestmont"),
    ("intel-lnl-core", "LNL", "lioncove"),
    ("intel-lnl-atom", "LNL", "skymont"),
    ("intel-mtl-core", "MTL", "redwoodcove"),
    ("intel-mtl-atom", "MTL", "crestmont"),
    ("intel-nvl-core", "NVL", "coyotecove"),
    ("intel-nvl-atom", "NVL", "arcticwolf"),
    ("intel-ptl-core", "PTL", "cougarcove"),
    ("intel-ptl-atom", "PTL", "darkmont"),
    ("intel-nhm", "NHM-EP", ""),
    ("intel-wsm", "WSM-EP-SP", ""),
    ("intel-wsm-dp", "WSM-EP-DP", ""),
    ("intel-adl", "ADL", ""),
    ("intel-nhm-ex", "NHM-EX", ""),
    ("intel-wsm-ex", "WSM-EX", ""),
];

/// The start of a description that names another event: that event's sentence is taken.
const DEPRECATED: &str = "This event is deprecated.";

/// Returns the sentences of a CPU; none where Intel has no list of it.
pub(crate) fn sentences(source: &Path, cpu: &str) -> Result<Sentences, Box<dyn Error>> {
    let mut sentences = Sentences::default();
    let Some(called) = cpu.strip_prefix("intel-") else {
        return Ok(sentences);
    };
    let listed = FOLDERS.iter().find(|(id, _, _)| *id == cpu);
    let (folder, core) = match listed {
        Some((_, folder, core)) => ((*folder).to_owned(), *core),
        None => (called.to_ascii_uppercase(), ""),
    };
    let folder = source.join(folder).join("events");
    if !folder.is_dir() {
        return Ok(sentences);
    }
    let mut files = Vec::new();
    for file in fs::read_dir(&folder)? {
        let path = file?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .to_lowercase();
        if name.ends_with(".json") && (name.contains(core) || name.contains("uncore")) {
            files.push(path);
        }
    }
    files.sort();
    let mut renamed = Vec::new();
    for path in files {
        let list: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
        let rows = list.get("Events").unwrap_or(&list);
        for row in rows.as_array().into_iter().flatten() {
            let text = |key: &str| row.get(key).and_then(Value::as_str).unwrap_or_default();
            let name = text("EventName")
                .replace(":request=", ".")
                .replace(":response=", ".");
            for key in ["BriefDescription", "PublicDescription"] {
                match text(key).split_once(DEPRECATED) {
                    Some((_, rest)) => renamed.push((name.clone(), rest.trim().to_owned())),
                    None => sentences.name(&name, text(key)),
                }
            }
        }
    }
    for (name, new) in renamed {
        let new = new.trim_start_matches("Refer to new event ");
        let new = new.split_whitespace().next().unwrap_or_default();
        let known = sentences
            .by_name
            .get(&new.trim_end_matches('.').to_ascii_uppercase());
        if let Some(sentence) = known.cloned() {
            let name = name.to_ascii_uppercase();
            sentences.by_name.entry(name).or_insert(sentence);
        }
    }
    Ok(sentences)
}
