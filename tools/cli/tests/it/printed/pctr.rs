//! `quipu pctr` on simulated devices.

use tempfile::TempDir;

use super::{all_printed, printed};

#[test]
fn counters_and_refusals() {
    let runs: [&[&str]; 8] = [
        &["pctr", "--simulate", "i386-2003:p6"],
        &["pctr", "--simulate", "amd64-2019:k8"],
        &[
            "pctr",
            "--simulate",
            "i386-2003:p6",
            "-s",
            "0",
            "-f",
            "29",
            "-M",
            "-E",
        ],
        &[
            "pctr",
            "--simulate",
            "i386-2003:p5",
            "-s",
            "1",
            "-f",
            "16",
            "-c",
            "-u",
        ],
        &[
            "pctr",
            "--simulate",
            "amd64-2019:core",
            "-s",
            "1",
            "-f",
            "L2_LD",
        ],
        &[
            "pctr",
            "--simulate",
            "amd64-2019:core",
            "-s",
            "1",
            "-f",
            "L2_LDD",
        ],
        &[
            "pctr",
            "--simulate",
            "amd64-2019:core",
            "-s",
            "3",
            "-f",
            "L2_LD",
        ],
        &["pctr", "--device", "missing"],
    ];
    let directory = TempDir::new().expect("a directory");
    insta::assert_snapshot!(all_printed(&directory, &runs));
}

#[test]
fn events() {
    let directory = TempDir::new().expect("a directory");
    let list = printed(&directory, &["pctr", "--simulate", "i386-2003:p5", "-l"]);
    insta::assert_snapshot!(list);
}
