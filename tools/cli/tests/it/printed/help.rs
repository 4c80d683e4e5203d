//! The short help of all subcommands.

use tempfile::TempDir;

use super::{all_printed, printed};

#[test]
fn short_help() {
    let directory = TempDir::new().expect("a directory");
    let list = printed(&directory, &["-h"]);
    let (_, commands) = list.split_once("Commands:\n").expect("a list");
    let commands = commands.lines().take_while(|line| !line.is_empty());
    let mut all = vec![list.clone()];
    for command in commands.filter_map(|line| line.split_whitespace().next()) {
        all.push(printed(&directory, &[command, "-h"]));
    }
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn mistakes() {
    let runs: [&[&str]; 5] = [
        &["sta"],
        &["stat", "--repat", "3"],
        &["stat", "-r", "many", "--", "true"],
        &["report", "--percent-limit", "200"],
        &["help", "nosuch"],
    ];
    let directory = TempDir::new().expect("a directory");
    insta::assert_snapshot!(all_printed(&directory, &runs));
}
