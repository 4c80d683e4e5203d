//! `quipu annotate`.

use super::{all_printed, recording};

#[test]
fn instructions_with_their_shares() {
    let runs: [&[&str]; 4] = [
        &["annotate", "hash"],
        &["annotate", "main", "-M", "att"],
        &["annotate", "hsah"],
        &["annotate", "-i", "missing.data"],
    ];
    insta::assert_snapshot!(all_printed(&recording::directory(), &runs));
}
