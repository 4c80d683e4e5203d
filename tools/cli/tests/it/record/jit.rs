//! Functions that compilers made as the program ran: of processes that were forked, of other users, in other namespaces, in jitdump.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use super::{Bench, quipu, skip, stderr};

/// Makes functions in memory, lists them in a map or a jitdump, and calls them. Its processes are forked from each other, each with
/// a function of its own, and call all that they have. With one word more the memory is of a file that was deleted.
pub(super) const COMPILER: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
typedef void (*made)(long);
#if defined(__x86_64__)
#define MACHINE 62
static const unsigned char code[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xc8, 0x75, 0xfb, 0xc3};
#else
#define MACHINE 183
static const unsigned code[] = {0xf1000400, 0x54ffffe1, 0xd65f03c0};
#endif
static unsigned char *memory;
static int in_dump;
static void tell(unsigned char *at, const char *name) {
    char path[64];
    if (!in_dump) {
        sprintf(path, "/tmp/perf-%d.map", getpid());
        FILE *map = fopen(path, "a");
        fprintf(map, "%lx\t%x  %s\n", (long)at, 32, name);
        fclose(map);
        FILE *maps = fopen("maps", "a");
        fprintf(maps, "%s\n", path);
        fclose(maps);
        return;
    }
    struct { uint32_t magic, version, total, machine, pad, pid; uint64_t time, flags; }
        head = {0x4A695444, 1, sizeof head, MACHINE, 0, getpid(), 0, 0};
    // One line for all of it.
    static const char source[] = "made.js";
    struct { uint32_t id, total; uint64_t time, address, count, first; uint32_t line, column; }
        lines = {2, sizeof lines + sizeof source, 0, (uint64_t)at, 1, (uint64_t)at, 7, 0};
    struct { uint32_t id, total; uint64_t time; uint32_t pid, tid; uint64_t vma, address, size, index; }
        load = {0, sizeof load + strlen(name) + 1 + sizeof code, 0, getpid(), getpid(), (uint64_t)at, (uint64_t)at, sizeof code, 1};
    sprintf(path, "jit-%d.dump", getpid());
    int fd = open(path, O_CREAT | O_TRUNC | O_RDWR, 0666);
    write(fd, &head, sizeof head);
    mmap(0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    write(fd, &lines, sizeof lines);
    write(fd, source, sizeof source);
    write(fd, &load, sizeof load);
    write(fd, name, strlen(name) + 1);
    write(fd, code, sizeof code);
    close(fd);
}
int main(int count, char **words) {
    in_dump = !strcmp(words[1], "dump");
    int generations = atoi(words[2]);
    double seconds = atof(words[3]);
    int fd = -1;
    if (count > 4) {
        char path[] = "code.XXXXXX";
        fd = mkstemp(path);
        unlink(path);
        ftruncate(fd, 65536);
    }
    memory = mmap(0, 65536, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | (fd < 0 ? MAP_ANONYMOUS : 0), fd, 0);
    for (int generation = 0; generation < generations; generation++) {
        char name[64];
        sprintf(name, "made in generation %d", generation);
        memcpy(memory + 256 * generation, code, sizeof code);
        __builtin___clear_cache((char *)memory, (char *)memory + 65536);
        tell(memory + 256 * generation, name);
        if (generation + 1 < generations && fork()) {
            wait(0);
            return 0;
        }
    }
    puts("made");
    fflush(stdout);
    double end = now() + seconds;
    while (now() < end) for (int i = 0; i < generations; i++) ((made)(memory + 256 * i))(100000);
    return 0;
}
"#;

/// Returns a bench with the compiler.
fn bench(test: &str) -> Option<Bench> {
    if !cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        skip(test, "the code that it makes is of x86-64 and 64-bit Arm");
        return None;
    }
    let bench = Bench::new(test)?;
    bench.compile("jit", COMPILER).expect("it compiled another");
    Some(bench)
}

/// Records a command that runs the compiler.
fn record(bench: &Bench, command: &[&str]) {
    let output = recorded(bench, command);
    assert!(output.status.success(), "{}", stderr(&output));
}

fn recorded(bench: &Bench, command: &[&str]) -> Output {
    quipu()
        .current_dir(bench.directory.path())
        .args(["record", "-q", "-e", "cpu-clock:u", "-F", "999", "--"])
        .args(command)
        .output()
        .expect("it starts")
}

/// Asserts that each generation has its share of the samples, and nothing else has more than a tenth.
fn assert_generations(bench: &Bench, generations: u64) {
    let rows = bench.rows(&[]);
    let samples = |row: &serde_json::Value| row["samples"].as_u64().expect("a number");
    let all: u64 = rows.iter().map(samples).sum();
    let mut made = 0;
    for generation in 0..generations {
        let name = format!("made in generation {generation}");
        let own = rows.iter().filter(|row| row["symbol"] == name.as_str());
        let own: u64 = own.map(samples).sum();
        assert!(
            own * 3 * generations > all,
            "{name}: {own} of {all}: {rows:?}"
        );
        made += own;
    }
    assert!(made * 10 > all * 9, "{rows:?}");
}

#[test]
fn processes_have_the_functions_of_those_that_they_were_forked_from() {
    const TEST: &str = "processes_have_the_functions_of_those_that_they_were_forked_from";
    let Some(bench) = bench(TEST) else {
        return;
    };
    record(&bench, &["./jit", "map", "3", "0.4"]);
    assert_generations(&bench, 3);
}

#[test]
fn a_process_that_was_forked_before_it_was_recorded_has_them_too() {
    const TEST: &str = "a_process_that_was_forked_before_it_was_recorded_has_them_too";
    let Some(bench) = bench(TEST) else {
        return;
    };
    let script = "./jit map 3 60 > out & until [ -s out ]; do sleep 0.05; done; \
                  for pid in $(pgrep -f 'jit map 3 60' -s 0); do last=$pid; done; \
                  \"$QUIPU\" record -q -e cpu-clock:u -F 999 -p $last -- sleep 0.4; pkill -s 0 -x jit";
    let output = Command::new("setsid")
        .current_dir(bench.directory.path())
        .env("QUIPU", env!("CARGO_BIN_EXE_quipu"))
        .args(["-w", "sh", "-c", script])
        .output();
    match output {
        Ok(output) if output.status.success() => assert_generations(&bench, 3),
        other => skip(TEST, format!("setsid, pgrep or pkill: {other:?}")),
    }
}

#[test]
fn functions_in_memory_of_a_deleted_file_have_names() {
    const TEST: &str = "functions_in_memory_of_a_deleted_file_have_names";
    let Some(bench) = bench(TEST) else {
        return;
    };
    record(&bench, &["./jit", "map", "2", "0.4", "deleted"]);
    assert_generations(&bench, 2);
}

#[test]
fn functions_in_a_jitdump_have_names() {
    const TEST: &str = "functions_in_a_jitdump_have_names";
    let Some(bench) = bench(TEST) else {
        return;
    };
    record(&bench, &["./jit", "dump", "2", "0.4"]);
    assert_generations(&bench, 2);
    // Their source lines and instructions are in it too.
    let rows = bench.rows(&["-s", "sym,srcline"]);
    let made = "made in generation 1";
    let row = rows.iter().find(|row| row["symbol"] == made);
    let row = row.unwrap_or_else(|| panic!("{rows:?}"));
    assert_eq!(row["source"], "made.js:7", "{row}");
    let annotated = quipu()
        .current_dir(bench.directory.path())
        .args(["annotate", "-l", "-s", made])
        .output()
        .expect("it starts");
    let text = super::stdout(&annotated);
    let jump = if cfg!(target_arch = "x86_64") {
        "jne"
    } else {
        "b.ne"
    };
    assert!(
        text.contains(jump) && text.contains("made.js:7"),
        "{text}{}",
        stderr(&annotated)
    );
}

/// Runs a script that records a process while that runs, and reads the recording before it ends.
fn while_it_runs(test: &str, bench: &Bench, start: &[&str]) -> Option<String> {
    let directory = bench.directory.path();
    fs::set_permissions(directory, fs::Permissions::from_mode(0o777)).expect("its own");
    let child = Command::new(start[0])
        .current_dir(directory)
        .args(&start[1..])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn();
    let mut child = match child {
        Ok(child) => super::names::Started(child),
        Err(e) => {
            skip(test, format!("{}: {e}", start[0]));
            return None;
        }
    };
    let out = child.0.stdout.as_mut().expect("a pipe");
    if std::io::Read::read_exact(out, &mut [0; 5]).is_err() {
        skip(test, format!("{start:?} is not permitted here"));
        return None;
    }
    // That which runs the compiler, or that itself.
    let pid = child.0.id();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"));
    let children = children.unwrap_or_default();
    let pid = children
        .split_whitespace()
        .next()
        .map_or(pid.to_string(), str::to_owned);
    let output = quipu()
        .current_dir(directory)
        .args(["record", "-q", "-e", "cpu-clock:u", "-F", "999", "-p", &pid])
        .args(["--names", "none"])
        .args(["--", "sleep", "0.4"])
        .output()
        .expect("it starts");
    assert!(output.status.success(), "{}", stderr(&output));
    assert_generations(bench, 1);
    Some(super::top::table(&["-K"], pid.parse().expect("a number")))
}

#[test]
fn the_map_of_the_user_of_the_process_is_trusted() {
    const TEST: &str = "the_map_of_the_user_of_the_process_is_trusted";
    let Some(bench) = bench(TEST) else {
        return;
    };
    let of_other = [
        "setpriv",
        "--reuid",
        "65534",
        "--clear-groups",
        "./jit",
        "map",
        "1",
        "60",
    ];
    let Some(table) = while_it_runs(TEST, &bench, &of_other) else {
        return;
    };
    assert!(table.contains("made in generation 0"), "{table}");
    // It has ended: nothing says whose process it was, but the user may be trusted.
    let output = bench.report(&[]);
    assert!(
        stderr(&output).contains("belongs to user 65534"),
        "{}",
        stderr(&output)
    );
    let text = super::stdout(&bench.report(&["-f"]));
    assert!(text.contains("made in generation 0"), "{text}");
}

#[test]
fn the_map_of_a_process_of_other_namespaces_is_found_there() {
    const TEST: &str = "the_map_of_a_process_of_other_namespaces_is_found_there";
    let Some(bench) = bench(TEST) else {
        return;
    };
    // It is process 1 there, and its /tmp is its own.
    let script = "mount -t tmpfs none /tmp && exec \"$0\" map 1 60";
    let copy = format!("/var/tmp/quipu-jit-{}", std::process::id());
    fs::copy(bench.path("jit"), &copy).expect("copied");
    let contained = [
        "unshare",
        "-m",
        "-p",
        "--fork",
        "--kill-child",
        "sh",
        "-c",
        script,
        &copy,
    ];
    let table = while_it_runs(TEST, &bench, &contained);
    fs::remove_file(&copy).expect("removed");
    if let Some(table) = table {
        assert!(table.contains("made in generation 0"), "{table}");
    }
}

#[test]
fn what_a_compiler_lists_in_a_container_is_kept_when_that_has_ended() {
    const TEST: &str = "what_a_compiler_lists_in_a_container_is_kept_when_that_has_ended";
    let Some(bench) = bench(TEST) else {
        return;
    };
    // Its processes have other numbers there, and what it has in /tmp is gone with it.
    for (kind, generations) in [("map", 3), ("dump", 1)] {
        let script =
            "mount -t tmpfs none /tmp && cp ./jit /tmp/jit && cd /tmp && exec ./jit $0 $1 0.5";
        let number = generations.to_string();
        let contained = [
            "unshare", "-m", "-p", "--fork", "sh", "-c", script, kind, &number,
        ];
        let output = recorded(&bench, &contained);
        if !output.status.success() {
            return skip(TEST, stderr(&output));
        }
        assert_generations(&bench, generations);
    }
}

#[test]
fn the_map_of_another_user_is_kept_when_the_process_has_ended() {
    const TEST: &str = "the_map_of_another_user_is_kept_when_the_process_has_ended";
    let Some(bench) = bench(TEST) else {
        return;
    };
    fs::set_permissions(bench.directory.path(), fs::Permissions::from_mode(0o777))
        .expect("its own");
    let user = [
        "setpriv",
        "--reuid",
        "65534",
        "--clear-groups",
        "./jit",
        "map",
        "2",
        "0.4",
    ];
    let output = recorded(&bench, &user);
    if !output.status.success() {
        return skip(TEST, stderr(&output));
    }
    assert_generations(&bench, 2);
}
