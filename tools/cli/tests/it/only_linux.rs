//! Commands that Linux and FreeBSD have: elsewhere they say so.

use assert_cmd::Command;

#[test]
fn what_this_system_cannot_do_is_refused_with_that_reason() {
    for command in ["record", "top"] {
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
