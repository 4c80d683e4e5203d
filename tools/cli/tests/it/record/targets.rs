//! Recording control groups and the processes of a user.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::geteuid;

use super::{Bench, samples_of, skip, stderr};

/// Every page fault in user mode, with small buffers: there is one for each process and CPU.
const FAULTS: [&str; 6] = ["-e", "page-faults:u", "-c", "1", "-m", "16"];

/// A control group, which is removed at the end.
struct Group(PathBuf);

impl Group {
    /// Makes one, if this user may and there is a hierarchy of version 2.
    fn new(name: &str) -> Option<Self> {
        let mounts = fs::read_to_string("/proc/self/mounts").ok()?;
        let mut mounts = mounts.lines().map(|line| line.split(' '));
        let mount = mounts.find_map(|mut words| {
            let (path, kind) = (words.nth(1)?, words.next()?);
            (kind == "cgroup2").then(|| path.to_owned())
        });
        let group = Path::new(&mount?).join(format!("quipu-{name}-{}", std::process::id()));
        fs::create_dir(&group).ok()?;
        Some(Self(group))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}

#[test]
fn the_tasks_of_a_cgroup_are_sampled_and_no_others() {
    const TEST: &str = "the_tasks_of_a_cgroup_are_sampled_and_no_others";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let Some(group) = Group::new("record") else {
        return skip(TEST, "this user may not make a control group of version 2");
    };
    // The program runs twice, the second time as one of the group.
    let directory = group.0.display();
    let program = bench.program();
    let script = format!("{program}\necho $$ > {directory}/cgroup.procs\nexec {program}\n");
    fs::write(bench.path("script"), script).expect("written");
    let command = format!("sh {}", bench.path("script").display());
    let of_group = directory.to_string();
    let recorded = bench.record(&[&FAULTS[..], &["-G", &of_group]].concat(), &command);
    if recorded.status.code() == Some(125) {
        return skip(TEST, stderr(&recorded).trim());
    }
    let rows = bench.rows(&[]);
    let samples = samples_of(&rows, "hot");
    assert!((300..310).contains(&samples), "{samples} {rows:?}");
    let refused = bench.record(&["-G", "no/such/group"], "true");
    let text = stderr(&refused);
    assert_eq!(refused.status.code(), Some(125), "{text}");
    assert!(text.contains("no/such/group"), "{text}");
}

#[test]
fn the_processes_of_a_user_are_sampled_and_those_that_they_start() {
    const TEST: &str = "the_processes_of_a_user_are_sampled_and_those_that_they_start";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    // Of root there are many processes, so it is another user's.
    const OTHER: [&str; 5] = ["--reuid", "65534", "--regid", "65534", "--clear-groups"];
    let everybody = fs::Permissions::from_mode(0o755);
    fs::set_permissions(bench.directory.path(), everybody).expect("its own directory");
    let (user, mut shell) = match geteuid().is_root() {
        true => (OTHER[1].to_owned(), Command::new("setpriv")),
        false => (geteuid().to_string(), Command::new("env")),
    };
    if geteuid().is_root() {
        shell.args(OTHER);
    }
    for pipe in ["go", "done"] {
        crate::make_pipe(&bench.path(pipe));
        fs::set_permissions(bench.path(pipe), fs::Permissions::from_mode(0o666))
            .expect("its own pipe");
    }
    let shell = shell
        .args(["sh", "-c", "read go <go; ./program; echo >done"])
        .current_dir(bench.directory.path())
        .spawn();
    let Ok(mut shell) = shell else {
        return skip(TEST, "no setpriv(1)");
    };
    let options = [&FAULTS[..], &["-u", &user]].concat();
    // The command runs while the user is sampled: it asks the other shell to go, and waits for its end.
    fs::write(bench.path("asks"), "echo >go; read done <done").expect("written");
    let record = bench.record(&options, "sh asks");
    if record.status.code() == Some(125) {
        let _ = shell.kill();
        let _ = shell.wait();
        return skip(TEST, stderr(&record).trim());
    }
    let _ = shell.wait();
    let rows = bench.rows(&["--comms", "program"]);
    assert!(
        samples_of(&rows, "hot") >= 299,
        "{rows:?} {}",
        stderr(&record)
    );
    let refused = bench.record(&["-u", "no such user"], "true");
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}

#[test]
fn frames_that_come_later_are_refused_by_a_kernel_without_them() {
    const TEST: &str = "frames_that_come_later_are_refused_by_a_kernel_without_them";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let options = ["-e", "page-faults:u", "-c", "1", "--call-graph", "fp,defer"];
    let recorded = bench.record(&options, &bench.program());
    match recorded.status.code() {
        // Linux 6.19.
        Some(7) => {
            let rows = bench.rows(&["--children"]);
            assert!(rows.iter().any(|row| row["symbol"] == "work"), "{rows:?}");
        }
        code => {
            let text = stderr(&recorded);
            assert_eq!(code, Some(2), "{text}");
            assert!(text.contains("leave out ,defer"), "{text}");
        }
    }
}
