//! `quipu events`.

use tempfile::TempDir;

use super::all_printed;

#[test]
fn files_are_checked_and_searched() {
    let directory = TempDir::new().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).expect("writable");
    };
    write(
        "good.toml",
        "[[cpu]]\nid = \"amd-k7\"\n[cpu.events]\nMINE = 0x99\n",
    );
    write(
        "large.toml",
        "[[cpu]]\nid = \"amd-k7\"\n[cpu.events]\nMINE = 0x100\n",
    );
    write(
        "key.toml",
        "[[cpu]]\nid = \"amd-k7\"\n[cpu.events]\nMINE = { code = 0x99, umask = 1 }\n",
    );
    write("syntax.toml", "[[cpu\n");
    let runs: [&[&str]; 7] = [
        &["events", "check", "good.toml"],
        &["events", "check", "large.toml", "key.toml", "syntax.toml"],
        &["events", "check", "missing.toml"],
        &[
            "events",
            "which",
            "MINE",
            "--cpu",
            "amd-k7",
            "--events",
            "good.toml",
        ],
        &["events", "which", "MINE", "--cpu", "amd-k7"],
        &["events", "which", "ex_ret_opps", "--cpu", "amd-zen4"],
        &[
            "encode",
            "MINE",
            "--cpu",
            "amd-k7",
            "--events",
            "large.toml",
        ],
    ];
    insta::assert_snapshot!(all_printed(&directory, &runs));
}
