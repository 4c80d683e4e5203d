//! The names of libpfm4's PMUs, by the entry of the event database that has their events.

/// Returns the names of the PMU whose events an entry has, the usual one last; none for a CPU that libpfm4 lacks.
pub(crate) fn pmu_names(cpu: &str) -> &'static [&'static str] {
    let found = NAMES.binary_search_by_key(&cpu, |(known, _)| known);
    found.map_or(&[], |at| NAMES[at].1)
}

/// Entries in order, and the names.
#[rustfmt::skip]
const NAMES: &[(&str, &[&str])] = &[
    ("amd-10h-barcelona", &["amd64_fam10h_barcelona"]),
    ("amd-10h-istanbul", &["amd64_fam10h_istanbul"]),
    ("amd-10h-shanghai", &["amd64_fam10h_shanghai"]),
    ("amd-11h", &["amd64_fam11h_turion"]),
    ("amd-12h", &["amd64_fam12h_llano"]),
    ("amd-14h", &["amd64_fam14h_bobcat"]),
    ("amd-15h", &["amd64_fam15h_interlagos"]),
    ("amd-16h", &["amd64_fam16h"]),
    ("amd-k7", &["amd64_k7"]),
    ("amd-k8", &["amd64_k8_revf", "amd64_k8_revg"]),
    ("amd-k8-c", &["amd64_k8_revb", "amd64_k8_revc"]),
    ("amd-k8-e", &["amd64_k8_revd", "amd64_k8_reve"]),
    ("amd-zen1", &["amd64_fam17h", "amd64_fam17h_zen1"]),
    ("amd-zen2", &["amd64_fam17h_zen2"]),
    ("amd-zen3", &["amd64_fam19h_zen3"]),
    ("amd-zen4", &["amd64_fam19h_zen4"]),
    ("amd-zen5", &["amd64_fam1ah_zen5"]),
    ("amd-zen6", &["amd64_fam1ah_zen6"]),
    ("apm-xgene", &["arm_xgene"]),
    ("arm-cortex-a15", &["arm_ac15"]),
    ("arm-cortex-a53", &["arm_ac53"]),
    ("arm-cortex-a55", &["arm_ac55"]),
    ("arm-cortex-a57", &["arm_ac57"]),
    ("arm-cortex-a7", &["arm_ac7"]),
    ("arm-cortex-a72", &["arm_ac72"]),
    ("arm-cortex-a76", &["arm_ac76"]),
    ("arm-cortex-a8", &["arm_ac8"]),
    ("arm-cortex-a9", &["arm_ac9"]),
    ("arm-cortex-x4", &["arm_x4"]),
    ("arm-neoverse-n1", &["arm_n1"]),
    ("arm-neoverse-n2", &["arm_n2"]),
    ("arm-neoverse-n3", &["arm_n3"]),
    ("arm-neoverse-v1", &["arm_v1"]),
    ("arm-neoverse-v2", &["arm_v2"]),
    ("arm-neoverse-v3", &["arm_v3"]),
    ("cavium-thunderx2", &["arm_thunderx2"]),
    ("fujitsu-a64fx", &["arm_a64fx"]),
    ("fujitsu-monaka", &["arm_monaka"]),
    ("hisilicon-tsv110", &["arm_kunpeng"]),
    ("ibm-power10", &["power10"]),
    ("ibm-power8", &["power8"]),
    ("ibm-power9", &["power9"]),
    ("intel-adl-atom", &["adl_grt"]),
    ("intel-adl-core", &["adl_glc"]),
    ("intel-arch", &["ix86arch"]),
    ("intel-arl-atom", &["ix86arch"]),
    ("intel-arl-core", &["ix86arch"]),
    ("intel-arl-lp", &["ix86arch"]),
    ("intel-bdw", &["bdw"]),
    ("intel-bdw-de", &["bdw_ep"]),
    ("intel-bdx", &["bdw_ep"]),
    ("intel-bnl", &["atom"]),
    ("intel-clx", &["clx"]),
    ("intel-core2", &["core"]),
    ("intel-cwf", &["ix86arch"]),
    ("intel-ehl", &["tmt"]),
    ("intel-emr", &["emr"]),
    ("intel-glm", &["glm"]),
    ("intel-glp", &["glm"]),
    ("intel-gnr", &["gnr"]),
    ("intel-grr", &["ix86arch"]),
    ("intel-hsw", &["hsw"]),
    ("intel-hsx", &["hsw_ep"]),
    ("intel-icl", &["icl"]),
    ("intel-icx", &["icx"]),
    ("intel-ivb", &["ivb"]),
    ("intel-ivt", &["ivb_ep"]),
    ("intel-jkt", &["snb_ep"]),
    ("intel-knc", &["knc"]),
    ("intel-knl", &["knl", "knm"]),
    ("intel-lnl-atom", &["ix86arch"]),
    ("intel-lnl-core", &["ix86arch"]),
    ("intel-mtl-atom", &["ix86arch"]),
    ("intel-mtl-core", &["ix86arch"]),
    ("intel-netburst", &["netburst"]),
    ("intel-nhm", &["nhm"]),
    ("intel-nhm-ex", &["nhm_ex"]),
    ("intel-nvl-atom", &["ix86arch"]),
    ("intel-nvl-core", &["ix86arch"]),
    ("intel-p6", &["p6", "ppro"]),
    ("intel-pii", &["pii"]),
    ("intel-pm", &["pm"]),
    ("intel-prescott", &["netburst_p"]),
    ("intel-ptl-atom", &["ix86arch"]),
    ("intel-ptl-core", &["ix86arch"]),
    ("intel-rkl", &["icl"]),
    ("intel-skl", &["skl"]),
    ("intel-skx", &["skx"]),
    ("intel-slm", &["slm"]),
    ("intel-snb", &["snb"]),
    ("intel-snr", &["tmt"]),
    ("intel-spr", &["spr"]),
    ("intel-srf", &["ix86arch"]),
    ("intel-tgl", &["icl"]),
    ("intel-wsm", &["wsm"]),
    ("intel-wsm-dp", &["wsm_dp"]),
    ("intel-wsm-ex", &["wsm_dp"]),
    ("intel-yonah", &["coreduo"]),
    ("nvidia-olympus", &["arm_olympus"]),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The list that the tests of the event database go by.
    const LIST: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/it/data/libpfm4/pmus.tsv"
    );

    #[test]
    fn names_are_those_of_the_event_database() {
        let list = std::fs::read_to_string(LIST).expect("the list");
        let mut wanted = 0;
        for line in list.lines().filter(|line| !line.starts_with('#')) {
            let mut columns = line.split('\t');
            let (pmu, cpus) = (columns.next().unwrap(), columns.next().unwrap());
            for cpu in cpus.split(',') {
                assert!(pmu_names(cpu).contains(&pmu), "{cpu} is {pmu}");
                wanted += 1;
            }
        }
        assert_eq!(
            wanted,
            NAMES.iter().map(|(_, names)| names.len()).sum::<usize>()
        );
        assert_eq!(pmu_names("amd-zen0"), [""; 0]);
    }
}
