//! `quipu script`.

use super::{all_printed, recording};

#[test]
fn lines_and_fields() {
    let runs: [&[&str]; 5] = [
        &["script"],
        &[
            "script",
            "-F",
            "comm,pid,tid,cpu,time,event,period,ip,sym,dso",
        ],
        &["script", "-F", "ip,sym,symoff"],
        &["script", "--json"],
        &["script", "-F", "nothing"],
    ];
    insta::assert_snapshot!(all_printed(&recording::directory(), &runs));
}
