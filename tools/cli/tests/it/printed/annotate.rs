//! `quipu annotate`.

use super::{all_printed, recording};

#[test]
fn instructions_with_their_shares() {
    let runs: [&[&str]; 6] = [
        &["annotate", "hash"],
        &["annotate", "main", "-M", "att"],
        &["annotate", "--percent-limit", "50"],
        &["annotate", "hsah"],
        &["annotate", "-d", "libnosuch.so"],
        &["annotate", "-i", "missing.data"],
    ];
    insta::assert_snapshot!(all_printed(&recording::directory(), &runs));
}
