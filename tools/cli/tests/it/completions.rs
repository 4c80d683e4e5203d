//! Completions of shells: the words that `quipu complete` offers, and the scripts that ask it for them.

use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::skip;

const QUIPU: &str = env!("CARGO_BIN_EXE_quipu");

/// Returns the words that may stand at the end of a command line, each with its description.
fn offered(line: &str) -> Vec<(String, String)> {
    let mut command = Command::new(QUIPU);
    command
        .args(["complete", "--", "quipu"])
        .args(line.split(' '));
    let output = command.output().expect("it starts");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{output:?}"
    );
    let text = String::from_utf8(output.stdout).expect("text");
    let words = text
        .lines()
        .map(|line| line.split_once('\t').expect("a tab"));
    words
        .map(|(word, help)| (word.to_owned(), help.to_owned()))
        .collect()
}

fn words(line: &str) -> Vec<String> {
    offered(line).into_iter().map(|(word, _)| word).collect()
}

#[test]
fn words_of_each_kind_are_offered() {
    let has = |line: &str, word: &str| {
        let words = words(line);
        assert!(
            words.iter().any(|offered| offered == word),
            "{line}: {words:?}"
        );
    };
    has("sta", "stat");
    has("stat --interval-p", "--interval-print");
    has("--color al", "always");
    // Events: in lists and groups, by other names, and in the letter case they were begun in.
    has("stat -e page-f", "page-faults");
    has("stat -e cycles,instr", "cycles,instructions");
    has("record -e {cycles,instr", "{cycles,instructions");
    has("top --event=fau", "--event=faults");
    has("stat -e PAGE-F", "PAGE-FAULTS");
    has("stat -e duration", "duration_time");
    has("encode page-f", "page-faults");
    has("events which page-f", "page-faults");
    has("encode --cpu intel-sk", "intel-skl");
    has("list --cpu amd-zen", "amd-zen5");
    has("list met", "metricgroups");
    has("list trace", "tracepoint");
    has("report --sort dso,sy", "dso,sym");
    has("report --fields over", "overhead");
    has("record --call-graph d", "dwarf");
    has("diff -c del", "delta-abs");
    has("help perm", "permissions");
    has("help sta", "stat");
    has("annotate -M in", "intel");
    assert_eq!(words("stat -e no-such-event"), [""; 0]);
    assert_eq!(
        offered("stat -e page-f"),
        [(
            "page-faults".to_owned(),
            "page faults, minor and major".to_owned()
        )]
    );
    assert!(!words("").contains(&"complete".to_owned()));
    #[cfg(target_os = "linux")]
    has("stat --backend li", "linux");
    #[cfg(target_os = "linux")]
    for (line, word) in [
        ("stat -e sche", "sched:"),
        ("stat -e sched:sched_switc", "sched:sched_switch"),
    ] {
        match quipu_linux_tracepoints() {
            true => has(line, word),
            false => skip("tracepoints are offered", "no tracefs"),
        }
    }
}

/// Returns true if tracepoints can be listed here.
#[cfg(target_os = "linux")]
fn quipu_linux_tracepoints() -> bool {
    let mut list = Command::new(QUIPU);
    let output = list
        .args(["list", "--raw-dump", "tracepoint", "sched:sched_switch"])
        .output();
    output
        .expect("it starts")
        .stdout
        .starts_with(b"sched:sched_switch")
}

/// Words that the parsers of other crates list when they refuse one.
#[test]
fn words_of_parsers_are_those_that_they_take() {
    for (line, offered) in [
        (
            &["report", "-i", "/nowhere", "--sort"][..],
            "report --sort ",
        ),
        (&["diff", "-c"], "diff -c "),
        #[cfg(target_os = "linux")]
        (&["record", "--call-graph"], "record --call-graph "),
    ] {
        let refused = Command::new(QUIPU).args(line).arg("nonsense").output();
        let refused = String::from_utf8_lossy(&refused.expect("it starts").stderr).into_owned();
        let is_separator = |c: char| c.is_whitespace() || ",;:.".contains(c);
        let there = refused.split("nonsense").nth(1).unwrap_or_default();
        let there: Vec<&str> = there.split(is_separator).collect();
        for word in words(offered) {
            let word = word.split([',', ':']).next().unwrap_or_default();
            assert!(there.contains(&word), "{word}: {refused}");
        }
    }
}

/// Writes the scripts of the shells into a directory.
fn scripts() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    let mut generate = Command::new(QUIPU);
    generate
        .args(["generate", "completions"])
        .arg(directory.path());
    assert!(generate.status().expect("it starts").success());
    directory
}

/// Runs a shell with quipu in its search path; `None`, which is said, if it is not installed.
fn in_shell(test: &str, shell: &[&str], script: &str) -> Option<String> {
    let beside = Path::new(QUIPU).parent().expect("a directory");
    let mut path = OsString::from(beside);
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new(shell[0]);
    match command
        .args(&shell[1..])
        .args(["-c", script])
        .env("PATH", path)
        .output()
    {
        Ok(output) => {
            assert!(
                output.stderr.is_empty(),
                "{}",
                String::from_utf8_lossy(&output.stderr)
            );
            Some(String::from_utf8(output.stdout).expect("text"))
        }
        Err(error) => {
            skip(test, format_args!("no {}: {error}", shell[0]));
            None
        }
    }
}

#[test]
fn bash_asks_for_words() {
    let directory = scripts();
    let script = format!(
        r#"source {}/quipu.bash
        offer() {{
            COMP_LINE=$1 COMP_POINT=${{#1}}; shift
            COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
            _quipu 2>/dev/null # compopt has no completion to change here
            echo "${{COMPREPLY[*]}}"
        }}
        offer 'quipu stat -e page-f' quipu stat -e page-f
        offer 'quipu stat --event=page-f' quipu stat --event = page-f
        offer "quipu stat -e 'cycles,instr" quipu stat -e "'cycles,instr"
        offer 'quipu stat -- ls quip' quipu stat -- ls quip
        complete -p quipu"#,
        directory.path().display()
    );
    let Some(offered) = in_shell("bash_asks_for_words", &["bash", "--norc"], &script) else {
        return;
    };
    let lines: Vec<&str> = offered.lines().collect();
    let (registered, offered) = lines.split_last().expect("lines");
    assert_eq!(
        offered,
        ["page-faults", "page-faults", "cycles,instructions", ""]
    );
    assert!(registered.contains("-F _quipu quipu"), "{registered}");
}

#[test]
fn zsh_asks_for_words() {
    let directory = scripts();
    // Its own functions print what they are given.
    let script = format!(
        r#"compdef() {{ print registered $@ }}
        compadd() {{ local words=${{@[-1]}} display=${{@[-3]}}; print -l -- ${{(P)words}} ${{(P)display}} }}
        _files() {{ print files }}
        _normal() {{ print normal $words }}
        source {}/_quipu
        offer() {{ words=("$@") CURRENT=$#; _quipu }}
        offer quipu stat -e page-f
        offer quipu report -i Car
        offer quipu stat -- ls quip"#,
        directory.path().display()
    );
    let Some(offered) = in_shell("zsh_asks_for_words", &["zsh", "-f"], &script) else {
        return;
    };
    let expected = "registered _quipu quipu\npage-faults\npage-faults  -- page faults, minor and major\nfiles\nnormal ls quip\n";
    assert_eq!(offered, expected);
}

#[test]
fn fish_asks_for_words() {
    let directory = scripts();
    fs::write(directory.path().join("measured"), "").expect("it is ours");
    let script = format!(
        "source {0}/quipu.fish
        complete -C 'quipu stat -e page-f'
        complete -C 'quipu report -i {0}/mea'
        complete -C 'quipu stat -- cat {0}/mea'",
        directory.path().display()
    );
    let Some(offered) = in_shell("fish_asks_for_words", &["fish", "--no-config"], &script) else {
        return;
    };
    let file = directory.path().join("measured");
    let file = file.display();
    let expected = format!("page-faults\tpage faults, minor and major\n{file}\n{file}\n");
    assert_eq!(offered, expected);
}
