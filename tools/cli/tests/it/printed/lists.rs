//! `quipu list`, `encode` and `decode`, of CPUs that are named.

use tempfile::TempDir;

use super::{all_printed, printed};

#[test]
fn native_events_and_metrics() {
    let runs: [&[&str]; 8] = [
        &["list", "native", "l2_ld", "--cpu", "intel-p6"],
        &["list", "native", "fp_assist", "--cpu", "intel-p6", "--json"],
        &[
            "list",
            "uncore",
            "llc_misses.mem_read",
            "--cpu",
            "intel-skx",
        ],
        &["list", "metrics", "TopdownL1", "--cpu", "amd-zen4"],
        &[
            "list",
            "uncore",
            "llc_misses.mem_read",
            "--cpu",
            "intel-skx",
            "--json",
        ],
        &["list", "metrics", "retiring", "--cpu", "amd-zen4", "--json"],
        &["list", "native", "ld_blcks", "--cpu", "intel-skl"],
        &["list", "native", "--cpu", "intel-slk"],
    ];
    let directory = TempDir::new().expect("a directory");
    insta::assert_snapshot!(all_printed(&directory, &runs));
}

#[test]
fn encodings() {
    let runs: [&[&str]; 8] = [
        &["encode", "L2_RQSTS:MISS:u", "--cpu", "intel-skl"],
        &["encode", "unc_m_cas_count.rd", "--cpu", "intel-skx"],
        &["encode", "cycles", "--cpu", "amd-zen4"],
        &["encode", "cpu_cycles", "--cpu", "arm-neoverse-n1"],
        &["encode", "CPU_CLK_UNHALTED", "--cpu", "intel-p6"],
        &["encode", "cylces", "--cpu", "intel-skl"],
        &["encode", "cycles:foo", "--cpu", "intel-skl"],
        &["encode", "cycles", "--cpu", "intel-slk"],
    ];
    let directory = TempDir::new().expect("a directory");
    insta::assert_snapshot!(all_printed(&directory, &runs));
}

#[test]
fn decodings() {
    let runs: [&[&str]; 5] = [
        &["decode", "0x3f24", "--cpu", "intel-skl"],
        &["decode", "0x76", "0x11", "--cpu", "amd-zen4"],
        &["decode", "0x430079", "--cpu", "intel-p6"],
        &["decode", "0xffffffffffff", "--cpu", "intel-p6"],
        &["decode", "text", "--cpu", "intel-p6"],
    ];
    let directory = TempDir::new().expect("a directory");
    insta::assert_snapshot!(all_printed(&directory, &runs));
}

#[test]
fn cpus() {
    let text = printed(&TempDir::new().expect("a directory"), &["list", "cpus"]);
    let some = text
        .lines()
        .filter(|line| line.starts_with("arm-neoverse-") || line.starts_with("intel-p"));
    insta::assert_snapshot!(some.collect::<Vec<_>>().join("\n"));
}
