//! `quipu export` as a process: what it answers, writes and sends, and how it ends.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use crate::skip;

/// The longest that is waited for anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// A process that exports, and what it says.
struct Export {
    child: Child,
    said: mpsc::Receiver<String>,
}

impl Export {
    fn start(arguments: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_quipu"))
            .arg("export")
            .args(arguments)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .expect("it starts");
        let stderr = child.stderr.take().expect("a pipe");
        Self {
            said: lines(stderr),
            child,
        }
    }

    /// Waits for a line with these words.
    fn line(&self, words: &str) -> String {
        let mut others = Vec::new();
        let until = Instant::now() + PATIENCE;
        while let Ok(line) = self.said.recv_timeout(until - Instant::now()) {
            if line.contains(words) {
                return line;
            }
            others.push(line);
        }
        panic!("it does not say {words}: {others:#?}");
    }

    /// The address that it listens on.
    fn address(&self) -> String {
        let line = self.line("metrics are at http://");
        let address = line.split("http://").nth(1).expect("an address");
        address.trim_end_matches("/metrics").to_owned()
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.child.id()).expect("a pid");
        kill(Pid::from_raw(id), signal).expect("it runs");
    }

    /// Asks it to end, and returns what it said since, and its exit status.
    fn end(mut self) -> (Vec<String>, Option<i32>) {
        self.signal(Signal::SIGTERM);
        let status = self.child.wait().expect("it ends");
        (self.said.iter().collect(), status.code())
    }
}

impl Drop for Export {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines(stderr: ChildStderr) -> mpsc::Receiver<String> {
    let (line, said) = mpsc::channel();
    thread::spawn(move || {
        let read = BufReader::new(stderr).lines().map_while(Result::ok);
        read.for_each(|text| drop(line.send(text)));
    });
    said
}

/// Sends a request with these headers, and returns the answer's head and body.
fn get(address: &str, headers: &str) -> (String, Vec<u8>) {
    let mut stream = TcpStream::connect(address).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n");
    stream.write_all(request.as_bytes()).expect("it is taken");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n");
    let body = answer.split_off(end.expect("a head") + 4);
    (String::from_utf8(answer).expect("text"), body)
}

fn text(address: &str) -> String {
    String::from_utf8(get(address, "").1).expect("text")
}

/// The value of the first series that begins so.
fn value(text: &str, series: &str) -> Option<f64> {
    let mut lines = text.lines();
    let line = lines.find(|line| line.starts_with(series))?;
    line.rsplit(' ').next()?.parse().ok()
}

/// Asks until there is an answer that is right.
fn until<T>(mut what: impl FnMut() -> Option<T>) -> T {
    let end = Instant::now() + PATIENCE;
    loop {
        if let Some(found) = what() {
            return found;
        }
        assert!(Instant::now() < end, "it does not come");
        thread::sleep(Duration::from_millis(20));
    }
}

fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_quipu"));
    command
        .arg("export")
        .args(arguments)
        .output()
        .expect("it starts")
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file that only processes of this name can be the subject of, which every user may count who may count his own.
fn file_of_processes(folder: &Path, name: &str, more: &str) -> String {
    let path = folder.join("export.toml");
    let text = format!("interval = 1\n{more}\n[[target]]\nprocesses = \"{name}\"\n");
    fs::write(&path, text).expect("ours");
    path.to_str().expect("text").to_owned()
}

/// A process under a name of its own that touches pages until its input ends, and says how many pages it has.
fn toucher(folder: &Path, name: &str) -> Child {
    let program = folder.join(name);
    fs::copy("/bin/sh", &program).expect("there is a shell");
    Command::new(program)
        .arg("-c")
        .arg("while read -r line; do :; done")
        .stdin(Stdio::piped())
        .spawn()
        .expect("it starts")
}

#[test]
fn both_forms_of_text_have_what_a_process_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut process = toucher(folder.path(), "quipu-touch");
    let events = "events = [\"page-faults:u\", \"task-clock:u\"]";
    let file = file_of_processes(folder.path(), "quipu-touch", events);
    let export = Export::start(&["--config", &file, "--listen", "0"]);
    let address = export.address();
    let (head, body) = get(
        &address,
        "Accept: application/openmetrics-text; version=1.0.0\r\n",
    );
    let open = String::from_utf8(body).expect("text");
    assert!(
        head.contains("application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{head}"
    );
    assert!(open.ends_with("# EOF\n"), "{open}");
    if value(&open, "quipu_up ") == Some(0.0) {
        drop(process.stdin.take());
        process.wait().expect("it ends");
        return skip("quipu export", "processes cannot be counted here");
    }
    assert!(
        open.contains("# TYPE quipu_page_faults counter\n"),
        "{open}"
    );
    let labels = "{target=\"process\",process=\"quipu-touch\",modifiers=\"u\",kind=\"exact\"}";
    let series = format!("quipu_page_faults_total{labels}");
    assert!(value(&open, &series).is_some(), "{open}");
    let (head, _) = get(&address, "");
    assert!(head.contains("text/plain; version=0.0.4"), "{head}");
    let plain = text(&address);
    assert!(
        plain.contains("# HELP quipu_page_faults_total Page faults, minor and major\n"),
        "{plain}"
    );
    assert!(
        plain.contains("# TYPE quipu_task_clock_seconds_total counter\n"),
        "{plain}"
    );
    let (head, zipped) = get(&address, "Accept-Encoding: gzip\r\n");
    assert!(head.contains("content-encoding: gzip"), "{head}");
    assert_eq!(zipped[..2], [0x1f, 0x8b]);
    // When it has ended, its series end too.
    drop(process.stdin.take());
    process.wait().expect("it ends");
    until(|| value(&text(&address), &series).is_none().then_some(()));
    assert_eq!(export.end().1, Some(0));
}

#[test]
fn events_that_do_not_exist_are_told_and_the_others_go_on() {
    let export = Export::start(&["-e", "page-faults,NO_SUCH_EVENT", "--listen", "0"]);
    export.line("NO_SUCH_EVENT is not counted");
    let address = export.address();
    let text = text(&address);
    let told = text
        .lines()
        .find(|line| line.contains("event=\"NO_SUCH_EVENT\""));
    assert!(
        told.is_some_and(|line| line.starts_with("quipu_event_errors_total")),
        "{text}"
    );
    assert!(!text.contains("no_such_event"), "{text}");
    if value(&text, "quipu_up ") == Some(1.0) {
        assert!(
            value(&text, "quipu_page_faults_total{target=\"cpus\"").is_some(),
            "{text}"
        );
    }
}

#[test]
fn what_cannot_be_meant_is_refused_before_anything_is_counted() {
    let holder = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = holder.local_addr().expect("an address").to_string();
    let output = run(&["--listen", &taken]);
    assert_eq!(output.status.code(), Some(125));
    assert!(
        said(&output).contains("another program listens there"),
        "{}",
        said(&output)
    );
    for (arguments, words) in [
        (["--otlp", "https://example.org"], "speaks no TLS"),
        (["--listen", "nowhere"], "write a port"),
        (["--textfile", "/nonexistent"], "this is no folder"),
        (["--config", "/nonexistent"], "cannot read /nonexistent"),
        (["-e", "page-faults:"], "expected"),
        (
            ["--interval", "0"],
            "expected a whole number of seconds from 1 to 3600",
        ),
    ] {
        let output = run(&arguments);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{arguments:?}: {}",
            said(&output)
        );
        assert!(
            said(&output).contains(words),
            "{arguments:?}: {}",
            said(&output)
        );
    }
}

#[test]
fn a_file_is_checked_as_event_files_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("export.toml");
    let name = path.to_str().expect("text");
    fs::write(&path, "intervall = 3\n[[target]]\ncpu = \"all\"\n").expect("ours");
    let output = run(&["--config", name, "--check"]);
    assert_eq!(output.status.code(), Some(1));
    let all = String::from_utf8(output.stdout).expect("text");
    let started = run(&["--config", name]);
    assert_eq!(started.status.code(), Some(125));
    assert!(
        said(&started).contains(":1:1: unknown key"),
        "{}",
        said(&started)
    );
    for finding in [
        ":1:1: unknown key `intervall`; did you mean `interval`?",
        ":3:1: unknown key `cpu`; did you mean `cpus`?",
        ":2:1: a target has one of `cpus`, `cgroups`, `units`, `processes`, `user`",
    ] {
        assert!(all.contains(&format!("{name}{finding}")), "{all}");
    }
    let own = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../packaging/export/export.toml"
    );
    let output = run(&["--config", own, "--check"]);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let text = String::from_utf8(output.stdout).expect("text");
    assert!(
        text.contains("no errors\ntarget cpus: 1 instance"),
        "{text}"
    );
}

#[test]
fn a_file_is_read_again_at_sighup_and_one_that_is_wrong_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("export.toml");
    let write = |text: &str| fs::write(&path, text).expect("ours");
    write("events = [\"page-faults\"]\n[labels]\nrack = \"one\"\n");
    let name = path.to_str().expect("text");
    // As root it becomes another user, who has to be able to read the file.
    let everybody = |mode| fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode));
    everybody(0o755).expect("ours");
    let export = Export::start(&["--config", name, "--listen", "0"]);
    let address = export.address();
    assert!(text(&address).contains("quipu_up{rack=\"one\"}"));
    write("events = [\"page-faults\"]\n[labels]\nrack = \"two\"\n");
    export.signal(Signal::SIGHUP);
    until(|| {
        text(&address)
            .contains("quipu_up{rack=\"two\"}")
            .then_some(())
    });
    write("labels = 5\n");
    export.signal(Signal::SIGHUP);
    export.line("all goes on as before");
    until(|| {
        let text = text(&address);
        let failed = value(&text, "quipu_config_reload_success{rack=\"two\"}");
        (failed == Some(0.0)).then_some(())
    });
    assert_eq!(export.end().1, Some(0));
}

#[test]
fn a_text_file_is_whole_and_the_last_is_written_when_it_ends() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).expect("ours");
    let name = folder.path().to_str().expect("text");
    let export = Export::start(&["--textfile", name, "--interval", "3600"]);
    let file = folder.path().join("quipu.prom");
    let first = until(|| fs::read_to_string(&file).ok());
    let reads = |text: &str| value(text, "quipu_reads_total ").expect("a number of reads");
    let begun = Instant::now();
    // Reads within a tenth of a second are one.
    thread::sleep(Duration::from_millis(200));
    assert_eq!(export.end().1, Some(0));
    assert!(begun.elapsed() < PATIENCE);
    let last = fs::read_to_string(&file).expect("it is there");
    assert!(reads(&last) > reads(&first), "{last}");
    assert!(
        last.contains("quipu_textfile_writes_total{outcome=\"written\"}"),
        "{last}"
    );
    assert_eq!(fs::read_dir(folder.path()).expect("ours").count(), 1);
}

/// Takes one request, and answers with a status; returns the number of bytes of its body.
fn receive(listener: &TcpListener, status: &str) -> usize {
    let (mut stream, _) = listener.accept().expect("a connection");
    stream.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let mut reader = BufReader::new(stream.try_clone().expect("a socket"));
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("a head");
        if let Some(bytes) = line.strip_prefix("content-length: ") {
            length = bytes.trim().parse().expect("a number");
        }
        if line == "\r\n" {
            break;
        }
    }
    reader.read_exact(&mut vec![0; length]).expect("a body");
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).expect("it is taken");
    length
}

#[test]
fn a_message_is_sent_again_where_the_receiver_is_busy_and_lost_where_it_is_refused() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    let url = format!("http://{address}");
    let export = Export::start(&["--otlp", &url, "--listen", "0", "--interval", "3600"]);
    let own = export.address();
    let first = receive(&listener, "503 Service Unavailable");
    export.line("cannot send to");
    assert_eq!(receive(&listener, "200 OK"), first);
    let sent = |outcome: &str| {
        let text = text(&own);
        value(
            &text,
            &format!("quipu_otlp_points_total{{outcome=\"{outcome}\"}}"),
        )
    };
    let points = until(|| sent("sent").filter(|points| *points > 0.0));
    assert_eq!(sent("lost"), Some(0.0));
    // The last of all comes when it ends.
    let ended = thread::spawn(move || export.end());
    receive(&listener, "400 Bad Request");
    let (said, status) = ended.join().expect("it ends");
    assert!(points > 3.0 && status == Some(0));
    assert!(
        said.iter().any(|line| line.contains("refuses points: 400")),
        "{said:?}"
    );
}

#[test]
fn points_that_nobody_takes_are_told_as_lost_and_hold_up_no_end() {
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", closed.local_addr().expect("an address"));
    drop(closed);
    let export = Export::start(&["--otlp", &url]);
    export.line("cannot send to");
    let begun = Instant::now();
    let (said, status) = export.end();
    assert!(status == Some(0) && begun.elapsed() < PATIENCE);
    assert!(
        said.iter().any(|line| line.contains("points are lost")),
        "{said:?}"
    );
}

#[test]
fn a_process_of_root_becomes_another_with_one_capability() {
    if !geteuid().is_root() {
        return skip("the rights of quipu export", "only root has any to give up");
    }
    let export = Export::start(&["-e", "page-faults", "--listen", "0"]);
    let address = export.address();
    let status = fs::read_to_string(format!("/proc/{}/status", export.child.id()));
    let status = status.expect("it runs");
    let field = |name: &str| {
        let mut lines = status.lines();
        let line = lines.find_map(|line| line.strip_prefix(name));
        line.expect("there is one").trim().to_owned()
    };
    assert!(
        !field("Uid:").split_whitespace().any(|id| id == "0"),
        "{status}"
    );
    assert!(
        !field("Gid:").split_whitespace().any(|id| id == "0"),
        "{status}"
    );
    let permitted = u64::from_str_radix(&field("CapPrm:"), 16).expect("bits");
    // CAP_PERFMON, or CAP_SYS_ADMIN before Linux 5.8; none where there was none.
    assert!([0, 1 << 38, 1 << 21].contains(&permitted), "{status}");
    assert_eq!(field("CapEff:"), field("CapPrm:"));
    assert_eq!(field("Groups:"), "");
    assert_eq!(field("NoNewPrivs:"), "1");
    assert!(text(&address).contains("quipu_up 1"));
}
