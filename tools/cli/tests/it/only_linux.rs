//! Commands that only Linux has: elsewhere they say so.

use assert_cmd::Command;

#[test]
fn what_only_linux_can_do_is_refused_with_that_reason() {
    let record = (!cfg!(target_os = "freebsd")).then_some("record");
    for command in record.into_iter().chain(["top"]) {
        for arguments in [&["-a", "-e", "cycles"][..], &["--help"], &["--", "ls"]] {
            let mut quipu = Command::cargo_bin("quipu").expect("cargo builds it");
            let refused = quipu
                .arg(command)
                .args(arguments)
                .output()
                .expect("it starts");
            let text = String::from_utf8_lossy(&refused.stderr);
            assert!(text.contains("which only Linux has"), "{text}");
            assert_eq!(refused.status.code(), Some(2), "{text}");
        }
    }
}
