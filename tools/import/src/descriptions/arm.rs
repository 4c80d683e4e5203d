//! The sentences of Arm's lists (<https://github.com/ARM-software/data>).

use std::error::Error;
use std::fs;
use std::path::Path;

use serde_json::Value;

use super::Sentences;

/// The lists of the architectural events, which CPUs of any vendor have.
const ARCHITECTURAL: [&str; 2] = ["common_armv9", "common_armv8"];

/// CPUs that are no Arm architecture's PMUv3.
const OTHERS: [&str; 2] = ["apple-m1", "arm-armv8"];

/// Returns the sentences of a CPU: the architecture's by name, and for others those of its own list by number.
pub(crate) fn sentences(source: &Path, cpu: &str) -> Result<Sentences, Box<dyn Error>> {
    let mut sentences = Sentences::default();
    let arms = [
        "arm-",
        "ampere-",
        "apm-",
        "cavium-",
        "fujitsu-",
        "hisilicon-",
        "nvidia-",
    ];
    if !arms.iter().any(|vendor| cpu.starts_with(vendor)) {
        return Ok(sentences);
    }
    let own = cpu.strip_prefix("arm-").filter(|_| !OTHERS.contains(&cpu));
    if let Some(own) = own {
        for (_, code, text) in list(source, own)? {
            sentences.bits(code, 0, &text);
        }
    }
    for file in ARCHITECTURAL {
        for (name, _, text) in list(source, file)? {
            sentences.name(&name, &text);
        }
    }
    Ok(sentences)
}

/// The name of an event, its number and its sentence.
type Row = (String, u64, String);

/// Returns name, number and description of each event of a list.
fn list(source: &Path, name: &str) -> Result<Vec<Row>, Box<dyn Error>> {
    let path = source.join(format!("{name}.json"));
    if !path.is_file() {
        return Ok(Vec::new());
    }
    let list: Value = serde_json::from_str(&fs::read_to_string(path)?)?;
    let rows = list["events"].as_array().cloned().unwrap_or_default();
    let event = |row: &Value| {
        let text = |key: &str| row.get(key)?.as_str().map(str::to_owned);
        Some((
            text("name")?,
            row.get("code")?.as_u64()?,
            text("description")?,
        ))
    };
    Ok(rows.iter().filter_map(event).collect())
}
