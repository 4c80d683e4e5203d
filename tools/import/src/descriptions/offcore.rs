//! Sentences for pairs of an offcore request and a response that no list describes.

/// The events whose masks are such pairs.
const EVENTS: [&str; 4] = [
    "OCR",
    "OFFCORE_RESPONSE",
    "OFFCORE_RESPONSE_0",
    "OFFCORE_RESPONSE_1",
];

/// The words of names, and what they stand for.
const WORDS: [(&str, &str); 44] = [
    ("DMND", "demand"),
    ("DATA_RD", "data reads"),
    ("CODE_RD", "code reads"),
    ("IFETCH", "instruction fetches"),
    ("RFO", "reads for ownership"),
    ("PF", "prefetched"),
    ("L1D", "L1 data cache"),
    ("ANY_RESPONSE", "any response"),
    ("ANY_SNOOP", "any snoop"),
    ("SNOOP_MISS", "a snoop that missed"),
    ("SNOOP_NONE", "no snoop"),
    ("SNOOP_NOT_NEEDED", "no snoop needed"),
    ("NO_SNOOP_NEEDED", "no snoop needed"),
    ("HITM_OTHER_CORE", "a modified line in another core"),
    ("HIT_OTHER_CORE_FWD", "a line forwarded by another core"),
    (
        "HIT_OTHER_CORE_NO_FWD",
        "a line in another core that was not forwarded",
    ),
    ("SNOOP_HITM", "a snoop that hit a modified line"),
    ("SNOOP_HIT_WITH_FWD", "a snoop that hit and was forwarded"),
    ("SNOOP_HIT_NO_FWD", "a snoop that hit and was not forwarded"),
    ("SNOOP_NON_DRAM", "a snoop of what is no memory"),
    (
        "SNOOP_MISS_OR_NO_FWD",
        "a snoop that missed or was not forwarded",
    ),
    ("REMOTE_HIT_FORWARD", "a line forwarded by another socket"),
    ("REMOTE_HITM", "a modified line in another socket"),
    ("L3_HIT_E", "an L3 hit of an exclusive line"),
    ("L3_HIT_F", "an L3 hit of a forward line"),
    ("L3_HIT_M", "an L3 hit of a modified line"),
    ("L3_HIT_S", "an L3 hit of a shared line"),
    ("L3_HIT", "an L3 hit"),
    ("LLC_HIT", "a hit of the last level cache"),
    ("LLC_MISS", "a miss of the last level cache"),
    (
        "L3_MISS_LOCAL_DRAM",
        "an L3 miss that local memory supplied",
    ),
    (
        "L3_MISS_REMOTE_HOP0_DRAM",
        "an L3 miss that remote memory supplied",
    ),
    (
        "L3_MISS_REMOTE_HOP1_DRAM",
        "an L3 miss that remote memory supplied, one hop away",
    ),
    (
        "L3_MISS_REMOTE_HOP2P_DRAM",
        "an L3 miss that remote memory supplied, two hops or more away",
    ),
    (
        "L3_MISS_REMOTE_DRAM",
        "an L3 miss that remote memory supplied",
    ),
    ("L3_MISS", "an L3 miss"),
    ("L4_HIT_LOCAL_L4", "a hit of the local L4"),
    ("SUPPLIER_NONE", "no supplier known"),
    ("NO_SUPP", "no supplier known"),
    ("PMM_HIT_LOCAL_PMM", "a hit of local persistent memory"),
    ("LOCAL_DRAM", "local memory"),
    ("REMOTE_DRAM", "remote memory"),
    ("STREAMING_STORES", "streaming stores"),
    ("READS", "reads"),
];

/// Returns a sentence for the name of such a pair.
pub(crate) fn sentence(name: &str) -> Option<String> {
    let (event, mask) = name.split_once('.')?;
    if !EVENTS.contains(&event) {
        return None;
    }
    let (request, response) = mask.split_once('.')?;
    let responses: Vec<String> = response.split('.').map(words).collect();
    Some(format!(
        "Offcore requests ({}) with the response: {}",
        words(request),
        responses.join(", ")
    ))
}

/// Returns a part of a name in words.
fn words(part: &str) -> String {
    if let Some((_, words)) = WORDS.iter().find(|(name, _)| *name == part) {
        return (*words).to_owned();
    }
    let mut rest = part;
    let mut words: Vec<String> = Vec::new();
    while !rest.is_empty() {
        let fits = |(name, _): &&(&str, &str)| {
            rest.strip_prefix(name)
                .is_some_and(|after| after.is_empty() || after.starts_with('_'))
        };
        let known = WORDS.iter().filter(fits).max_by_key(|(name, _)| name.len());
        let (length, word) = match known {
            Some((name, words)) => (name.len(), (*words).to_owned()),
            None => {
                let length = rest.find('_').unwrap_or(rest.len());
                let word = &rest[..length];
                let is_level = word.starts_with('L')
                    && word.len() <= 4
                    && word.contains(|c: char| c.is_ascii_digit());
                (
                    length,
                    if is_level {
                        word.to_owned()
                    } else {
                        word.to_ascii_lowercase()
                    },
                )
            }
        };
        words.push(word);
        rest = rest.get(length + 1..).unwrap_or_default();
    }
    words.join(" ")
}
