//! Writes `events/db/metrics/intel.toml`: levels 1 and 2 of Intel's top-down analysis, from intel/perfmon.
//!
//! Each formula is written with the events in the places of its letters, and where hyper-threading matters once for either state. What
//! several CPUs have in common is written once.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt::Write;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// The kinds of core, with their files.
const CPUS: [(&str, &str); 15] = [
    ("intel-skl", "SKL/metrics/skylake_metrics.json"),
    ("intel-skx", "SKX/metrics/skylakex_metrics.json"),
    ("intel-clx", "CLX/metrics/cascadelakex_metrics.json"),
    ("intel-icl", "ICL/metrics/icelake_metrics.json"),
    ("intel-icx", "ICX/metrics/icelakex_metrics.json"),
    ("intel-rkl", "RKL/metrics/rocketlake_metrics.json"),
    ("intel-tgl", "TGL/metrics/tigerlake_metrics.json"),
    ("intel-spr", "SPR/metrics/sapphirerapids_metrics.json"),
    ("intel-emr", "EMR/metrics/emeraldrapids_metrics.json"),
    ("intel-gnr", "GNR/metrics/graniterapids_metrics.json"),
    (
        "intel-adl-core",
        "ADL/metrics/alderlake_metrics_goldencove_core.json",
    ),
    (
        "intel-mtl-core",
        "MTL/metrics/meteorlake_metrics_redwoodcove_core.json",
    ),
    (
        "intel-arl-core",
        "ARL/metrics/arrowlake_metrics_lioncove_core.json",
    ),
    (
        "intel-lnl-core",
        "LNL/metrics/lunarlake_metrics_lioncove_core.json",
    ),
    (CRESTMONT, "SRF/metrics/sierraforest_metrics.json"),
];

/// The efficiency core that has a file of its own.
const CRESTMONT: &str = "intel-srf";

/// The other efficiency cores, with what is not as in the file of [`CRESTMONT`]: the slots of a cycle and the events of
/// all slots (`tools/perf/pmu-events/arch/x86` of Linux: `adl-metrics.json`, `mtl-metrics.json`, `lnl-metrics.json`,
/// `arl-metrics.json`).
const EFFICIENCY_CORES: [(&str, &[(&str, &str)]); 4] = [
    (
        "intel-adl-atom",
        &[
            ("( 6 )", "( 5 )"),
            (
                "TOPDOWN_BAD_SPECULATION.ALL_P / ( ( 5 ) * ( CPU_CLK_UNHALTED.CORE ) )",
                "1 - ( TOPDOWN_FE_BOUND.ALL_P + TOPDOWN_BE_BOUND.ALL_P + TOPDOWN_RETIRING.ALL_P ) \
                 / ( ( 5 ) * ( CPU_CLK_UNHALTED.CORE ) )",
            ),
            (".ALL_P", ".ALL"),
        ],
    ),
    ("intel-mtl-atom", &[]),
    ("intel-lnl-atom", SKYMONT),
    ("intel-arl-atom", SKYMONT),
];

const SKYMONT: &[(&str, &str)] = &[
    ("( 6 )", "( 8 )"),
    ("TOPDOWN_FE_BOUND.ALL_P", "TOPDOWN_FE_BOUND.ALL"),
];

/// Intel's groups of the levels, and perf's names of them.
const LEVELS: [(&str, &str); 2] = [("TmaL1", "TopdownL1"), ("TmaL2", "TopdownL2")];

/// Writes the file from a source tree of github.com/intel/perfmon.
pub(crate) fn write(perfmon: &Path, to: &Path) -> Result<(), Box<dyn Error>> {
    let mut tables: BTreeMap<String, Vec<&str>> = BTreeMap::new();
    for (cpu, file) in CPUS {
        let list: Value = serde_json::from_str(&fs::read_to_string(perfmon.join(file))?)?;
        let mut text = String::new();
        for row in list["Metrics"].as_array().into_iter().flatten() {
            text += &metric(row).unwrap_or_default();
        }
        if cpu == CRESTMONT {
            for (cpu, changes) in EFFICIENCY_CORES {
                let changed = |text: String, (from, to): &(&str, &str)| text.replace(from, to);
                let text = changes.iter().fold(text.clone(), changed);
                tables.entry(text).or_default().push(cpu);
            }
        }
        tables.entry(text).or_default().push(cpu);
    }
    let mut file = String::from(
        "# Written by `quipu-import metrics` from intel/perfmon; NOTICE has its revision and licence.\n",
    );
    for (text, cpus) in tables {
        let cpus: Vec<String> = cpus.iter().map(|cpu| format!("\"{cpu}\"")).collect();
        let _ = write!(file, "\n[[metrics]]\ncpus = [{}]\n{text}", cpus.join(", "));
    }
    Ok(fs::write(to, file)?)
}

/// Longer formulas are not read: their parentheses may nest as deep.
const MOST_WORDS: usize = 2000;

/// Returns a metric of the two levels as a table; `None` for others.
fn metric(row: &Value) -> Option<String> {
    let groups: Vec<&str> = row["MetricGroup"].as_str()?.split(';').collect();
    let is_level = |(at, theirs): (usize, &str)| {
        // Crestmont's list has no groups, and gives figures of other kinds a level too.
        let by_number = row["CountDomain"] == "Slots" && row["Level"] == at + 1;
        groups.contains(&theirs) || by_number
    };
    let mut levels = LEVELS.iter().enumerate();
    let (_, (_, level)) = levels.find(|(at, (theirs, _))| is_level((*at, theirs)))?;
    if row["UnitOfMeasure"] != "percent" {
        return None;
    }
    let name = perfs_name(row["MetricName"].as_str()?);
    let mut events = HashMap::new();
    for event in row["Events"].as_array()? {
        events.insert(
            event["Alias"].as_str()?,
            perfs_event(event["Name"].as_str()?),
        );
    }
    let words: Vec<&str> = row["Formula"].as_str()?.split_whitespace().collect();
    if words.len() > MOST_WORDS {
        return None;
    }
    // The kernel wants the event `slots` first in the group of these.
    let needs_slots = events
        .values()
        .any(|event: &String| *event == "slots" || event.starts_with("topdown-"));
    let first = if needs_slots { "0 * slots + " } else { "" };
    let formula = |smt: bool| {
        let words: Vec<&str> = chosen(&words, smt);
        let parts = words.iter().map(|word| spelled(word, &events));
        first.to_owned() + &parts.collect::<Vec<_>>().join(" ")
    };
    let (without, with) = (formula(false), formula(true));
    let mut text = format!("\n[metrics.formulas.{name}]\nformula = \"{without}\"\n");
    if with != without {
        let _ = writeln!(text, "smt-formula = \"{with}\"");
    }
    let _ = writeln!(text, "unit = \"%\"\ngroups = [\"{level}\"]");
    let threshold = &row["Threshold"];
    let in_percent = threshold["BaseFormula"].as_str();
    let threshold = match (in_percent, threshold["Formula"].as_str()) {
        (Some(text), _) => text.to_owned(),
        // As a share of 1.
        (None, Some(text)) => text.replace("&&", "&").replace(">0.", "> 0."),
        (None, None) => String::new(),
    };
    let words = threshold.split_whitespace();
    let threshold: Vec<String> = words.map(in_threshold).collect();
    if !threshold.is_empty() {
        let _ = writeln!(
            text,
            "threshold = \"{}\"",
            threshold.join(" ").replace("( ", "").replace(" )", "")
        );
    }
    let description = row["BriefDescription"].as_str()?;
    let ends = description.match_indices(". ").map(|(at, _)| at);
    let mut ends = ends
        .filter(|at| !description[..*at].ends_with("i.e") && !description[..*at].ends_with("e.g"));
    let sentence = description[..ends.next().unwrap_or(description.len())].trim_end_matches('.');
    let _ = writeln!(text, "description = \"{}\"", sentence.replace('"', "'"));
    Some(text)
}

/// Returns perf's name of a metric: `tma_frontend_bound`.
fn perfs_name(name: &str) -> String {
    format!("tma_{}", name.to_ascii_lowercase())
}

/// Returns a word of a threshold with perf's name in the place of `metric_TMA_..Fetch_Latency(%)`, and a share of 1 in
/// percent.
fn in_threshold(word: &str) -> String {
    match word.strip_prefix("metric_TMA_") {
        Some(name) => perfs_name(name.trim_start_matches('.').trim_end_matches("(%)")),
        None => match word.strip_prefix("0.").map(|share| format!("{share:0<2}")) {
            Some(percent) if percent.len() == 2 => percent.trim_start_matches('0').to_owned(),
            _ => word.to_owned(),
        },
    }
}

/// Returns an event as Linux names it: what the register of metrics counts are events of its own there.
fn perfs_event(name: &str) -> String {
    let parts = [
        ("RETIRING", "retiring"),
        ("BAD_SPECULATION", "bad-spec"),
        ("FRONTEND_BOUND", "fe-bound"),
        ("BACKEND_BOUND", "be-bound"),
        ("HEAVY_OPERATIONS", "heavy-ops"),
        ("BRANCH_MISPREDICTS", "br-mispredict"),
        ("FETCH_LATENCY", "fetch-lat"),
        ("MEMORY_BOUND", "mem-bound"),
    ];
    if name == "TOPDOWN.SLOTS:perf_metrics" {
        return "slots".to_owned();
    }
    let Some(metric) = name.strip_prefix("PERF_METRICS.") else {
        return name.replace(":c1", ":c=1");
    };
    let known = parts.iter().find(|(theirs, _)| *theirs == metric);
    known.map_or_else(|| name.to_owned(), |(_, linux)| format!("topdown-{linux}"))
}

/// Returns a word of a formula, an event in the place of its letter.
fn spelled(word: &str, events: &HashMap<&str, String>) -> String {
    if let Some(event) = events.get(word) {
        return event.clone();
    }
    word.to_owned()
}

/// Returns the words of a formula with `A if smt_on else B` decided.
fn chosen<'w>(words: &[&'w str], smt: bool) -> Vec<&'w str> {
    let mut depth = 0;
    let level = |word: &&str, depth: &mut i32| {
        match *word {
            "(" | "max(" | "min(" => *depth += 1,
            ")" => *depth -= 1,
            _ => {}
        }
        *depth
    };
    let at_top = words
        .iter()
        .position(|word| level(word, &mut depth) == 0 && *word == "if");
    if let Some(at) = at_top
        && words.get(at + 1..at + 3) == Some(&["smt_on", "else"])
    {
        return match smt {
            true => chosen(&words[..at], smt),
            false => chosen(&words[at + 3..], smt),
        };
    }
    // Each parenthesis by itself.
    let mut out = Vec::new();
    let mut at = 0;
    while at < words.len() {
        out.push(words[at]);
        if matches!(words[at], "(" | "max(" | "min(") {
            let mut depth = 1;
            let rest = &words[at + 1..];
            let end = rest.iter().position(|word| level(word, &mut depth) == 0);
            let end = end.unwrap_or(rest.len());
            out.extend(chosen(&rest[..end], smt));
            at += end;
        }
        at += 1;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formula_that_nests_without_an_end_is_left_out() {
        let nested = |levels: usize| {
            let formula = format!("{}a{}", "( ".repeat(levels), " )".repeat(levels));
            let row = serde_json::json!({
                "MetricGroup": LEVELS[0].0,
                "UnitOfMeasure": "percent",
                "MetricName": "Metric",
                "BriefDescription": "Of a test.",
                "Events": [{"Alias": "a", "Name": "INST_RETIRED.ANY"}],
                "Formula": formula,
            });
            metric(&row)
        };
        assert!(nested(3).is_some_and(|text| text.contains("( ( ( ")));
        assert_eq!(nested(100_000), None);
    }
}
