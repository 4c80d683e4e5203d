//! The sentences of libpfm4's tables: for CPUs whose own lists have none, or none whose licence allows to take them.

use std::error::Error;
use std::fs;
use std::path::Path;

use super::Sentences;
use crate::c_tables::{Structure, Tables, Token, text};

/// The shifts that headers take from others of libpfm4's files.
const SHIFTS: &str = "
#define INTEL_X86_MOD_EDGE 0
#define INTEL_X86_MOD_ANY 0
#define INTEL_X86_MOD_INV 0
";

/// CPU entries with their headers and tables; the first table that has a name or number describes it.
const TABLES: [(&str, &str, &[&str]); 42] = [
    (
        "amd-10h-barcelona",
        "amd64_events_fam10h.h",
        &["amd64_fam10h_pe"],
    ),
    (
        "amd-10h-istanbul",
        "amd64_events_fam10h.h",
        &["amd64_fam10h_pe"],
    ),
    (
        "amd-10h-shanghai",
        "amd64_events_fam10h.h",
        &["amd64_fam10h_pe"],
    ),
    ("amd-11h", "amd64_events_fam11h.h", &["amd64_fam11h_pe"]),
    ("amd-12h", "amd64_events_fam12h.h", &["amd64_fam12h_pe"]),
    ("amd-14h", "amd64_events_fam14h.h", &["amd64_fam14h_pe"]),
    ("amd-15h", "amd64_events_fam15h.h", &["amd64_fam15h_pe"]),
    ("amd-16h", "amd64_events_fam16h.h", &["amd64_fam16h_pe"]),
    (
        "amd-arch",
        "amd64_events_fam17h_zen1.h",
        &["amd64_fam17h_zen1_pe"],
    ),
    ("amd-k7", "amd64_events_k7.h", &["amd64_k7_pe"]),
    ("amd-k8", "amd64_events_k8.h", &["amd64_k8_pe"]),
    ("amd-k8-c", "amd64_events_k8.h", &["amd64_k8_pe"]),
    ("amd-k8-e", "amd64_events_k8.h", &["amd64_k8_pe"]),
    (
        "amd-zen1",
        "amd64_events_fam17h_zen1.h",
        &["amd64_fam17h_zen1_pe"],
    ),
    (
        "amd-zen2",
        "amd64_events_fam17h_zen2.h",
        &["amd64_fam17h_zen2_pe"],
    ),
    (
        "amd-zen3",
        "amd64_events_fam19h_zen3.h",
        &["amd64_fam19h_zen3_pe"],
    ),
    (
        "amd-zen4",
        "amd64_events_fam19h_zen4.h",
        &["amd64_fam19h_zen4_pe"],
    ),
    (
        "amd-zen5",
        "amd64_events_fam1ah_zen5.h",
        &["amd64_fam1ah_zen5_pe"],
    ),
    (
        "amd-zen6",
        "amd64_events_fam1ah_zen6.h",
        &["amd64_fam1ah_zen6_pe"],
    ),
    ("apm-xgene", "arm_xgene_events.h", &["arm_xgene_pe"]),
    (
        "cavium-thunderx2",
        "arm_cavium_tx2_events.h",
        &["arm_thunderx2_pe"],
    ),
    (
        "fujitsu-a64fx",
        "arm_fujitsu_a64fx_events.h",
        &["arm_a64fx_pe"],
    ),
    (
        "hisilicon-tsv110",
        "arm_hisilicon_kunpeng_events.h",
        &["arm_kunpeng_pe"],
    ),
    ("ibm-power10", "power10_events.h", &["power10_pe"]),
    ("ibm-power8", "power8_events.h", &["power8_pe"]),
    ("ibm-power9", "power9_events.h", &["power9_pe"]),
    (
        "ibm-z10",
        S390,
        &["cpumcf_fvn1_counters", GENERIC, "cpumcf_z10_counters"],
    ),
    ("ibm-z13", S390, &[THIRD, GENERIC, "cpumcf_z13_counters"]),
    ("ibm-z14", S390, &[THIRD, GENERIC, "cpumcf_z14_counters"]),
    ("ibm-z15", S390, &[THIRD, GENERIC, "cpumcf_z15_counters"]),
    ("ibm-z16", S390, &[THIRD, GENERIC, "cpumcf_z16_counters"]),
    ("ibm-z17", S390, &[THIRD, GENERIC, "cpumcf_z16_counters"]),
    (
        "ibm-z196",
        S390,
        &["cpumcf_fvn1_counters", GENERIC, "cpumcf_z196_counters"],
    ),
    (
        "ibm-zec12",
        S390,
        &["cpumcf_fvn1_counters", GENERIC, "cpumcf_zec12_counters"],
    ),
    (
        "intel-arch",
        "intel_x86_arch_events.h",
        &["intel_x86_arch_pe"],
    ),
    ("intel-core2", "intel_core_events.h", &["intel_core_pe"]),
    ("intel-knc", "intel_knc_events.h", &["intel_knc_pe"]),
    (
        "intel-netburst",
        "intel_netburst_events.h",
        &["netburst_events"],
    ),
    ("intel-p6", "intel_p6_events.h", &["intel_p6_pe"]),
    ("intel-pii", "intel_pii_events.h", &["intel_pii_pe"]),
    ("intel-pm", "intel_pm_events.h", &["intel_pm_pe"]),
    (
        "intel-yonah",
        "intel_coreduo_events.h",
        &["intel_coreduo_pe"],
    ),
];
const S390: &str = "s390x_cpumf_events.h";
const GENERIC: &str = "cpumcf_svn_generic_counters";
const THIRD: &str = "cpumcf_fvn3_counters";

/// Returns the sentences of a CPU.
pub(crate) fn sentences(folder: &Path, cpu: &str) -> Result<Sentences, Box<dyn Error>> {
    let mut sentences = Sentences::default();
    for (_, header, arrays) in TABLES.iter().filter(|(id, _, _)| *id == cpu) {
        let mut tables = Tables::default();
        tables.read(SHIFTS);
        tables.read(&fs::read_to_string(folder.join(header))?);
        let by_bits = cpu.starts_with("amd-");
        for array in *arrays {
            let events = tables.array(array);
            if events.is_empty() {
                return Err(format!("{header} has no table {array}").into());
            }
            for event in events {
                add(&tables, event, by_bits, &mut sentences);
            }
        }
    }
    Ok(sentences)
}

/// Adds the sentences of an event and of its masks.
fn add(tables: &Tables, event: &Structure, by_bits: bool, sentences: &mut Sentences) {
    let own = |key: &str| text(event.get(key).or_else(|| event.get(&format!("pme_{key}"))));
    let name = own("name");
    let description = [own("desc"), own("long_desc"), own("short_desc")];
    let description = description.iter().find(|text| !text.is_empty());
    let description = description.map(String::as_str).unwrap_or_default();
    sentences.name(&name, description);
    let code = tables.number(event.get("code")).unwrap_or(u64::MAX);
    if by_bits {
        sentences.bits(code, 0, description);
    }
    let masks = event.get("umasks").map_or(&[][..], Vec::as_slice);
    let array = match masks {
        [Token::Word(array)] => tables.array(array),
        _ => &[],
    };
    let with_event = |what: String| match super::sentence::first(description) {
        Some(event) if !starts_alike(&what, &event) => format!("{event}: {what}"),
        _ => what,
    };
    for (mask, what) in nested(event.get("event_masks")) {
        sentences.name(&format!("{name}.{mask}"), &with_event(what));
    }
    for mask in array {
        let whole = with_event(text(mask.get("udesc")));
        sentences.name(&format!("{name}.{}", text(mask.get("uname"))), &whole);
        let unit_mask = tables.number(mask.get("ucode")).ok();
        if let (true, Some(unit_mask)) = (by_bits, unit_mask.and_then(|bits| bits.try_into().ok()))
        {
            sentences.bits(code, unit_mask, &whole);
        }
    }
}

/// Returns the names and descriptions of NetBurst's masks, which are structures in the event's.
fn nested(value: Option<&Vec<Token>>) -> Vec<(String, String)> {
    let mut masks: Vec<(String, String)> = Vec::new();
    let mut field = "";
    for window in value.map_or(&[][..], Vec::as_slice).windows(2) {
        match window {
            [Token::Sign('.'), Token::Word(word)] => field = word,
            [_, Token::Text(text)] if field == "name" => masks.push((text.clone(), String::new())),
            [_, Token::Text(text)] if field == "desc" => {
                if let Some((_, description)) = masks.last_mut() {
                    description.push_str(text);
                }
            }
            _ => {}
        }
    }
    masks
}

/// Returns true if the sentence of a mask begins like that of its event.
fn starts_alike(mask: &str, event: &str) -> bool {
    let words = |text: &str| -> Vec<String> {
        text.split_whitespace()
            .take(3)
            .map(str::to_ascii_lowercase)
            .collect()
    };
    words(mask) == words(event)
}
