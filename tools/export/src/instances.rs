//! Instances of targets: the CPUs, control groups and processes that there are at a moment.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use quipu::{Error, ErrorKind, Result, Target as Place};
use quipu_events_format::pattern::matches;
use quipu_linux::cgroups;
use quipu_linux::topology::Topology;
use quipu_shell::processes::{self, Process};

use crate::config::{By, Target, What};
use crate::series::Label;

/// A place to attach counters to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Instance {
    /// Text that another instance at the same place does not have: an inode, the time a process began.
    pub(crate) identity: String,
    pub(crate) place: Place,
}

/// Instances by the labels of their series.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) subjects: BTreeMap<Vec<Label>, Vec<Instance>>,
    /// The number of instances beyond the most that a target may have.
    pub(crate) left_out: usize,
    count: usize,
    most: usize,
}

impl Found {
    fn add(&mut self, labels: Vec<Label>, instance: Instance) {
        if self.count >= self.most {
            self.left_out += 1;
            return;
        }
        self.count += 1;
        self.subjects.entry(labels).or_default().push(instance);
    }
}

/// The most control groups that are looked at, and how deep.
const MOST_CGROUPS: usize = 100_000;
const DEEPEST: usize = 32;

/// Finds the instances of a target.
pub(crate) fn find(target: &Target) -> Result<Found> {
    let mut found = Found {
        most: target.most,
        ..Found::default()
    };
    let kind = || Label::new("target", target.what.kind());
    match &target.what {
        What::Cpus(list, by) => cpus(list, *by, &kind(), &mut found)?,
        What::Cgroups(pattern) => {
            let pattern: Vec<&str> = pattern.split('/').filter(|p| !p.is_empty()).collect();
            let mut walk = Walk::new()?;
            walk.by_path(Path::new(""), &pattern, &mut |path, identity| {
                let mut labels = vec![kind(), cgroup_label(path)];
                labels.extend(container(path).map(|id| Label::new("container_id", id)));
                found.add(labels, walk_instance(path, identity));
            });
        }
        What::Units(pattern) => {
            let mut walk = Walk::new()?;
            walk.all(Path::new(""), &mut |path, identity| {
                let name = path.file_name().unwrap_or_default().to_string_lossy();
                let is_unit = [".service", ".scope", ".slice", ".socket", ".mount", ".swap"]
                    .iter()
                    .any(|suffix| name.ends_with(suffix));
                if is_unit && matches(pattern, &name) {
                    let unit = Label::new("unit", &*unescaped(&name));
                    let labels = vec![kind(), cgroup_label(path), unit];
                    found.add(labels, walk_instance(path, identity));
                }
            });
        }
        What::Processes(pattern) => {
            let wanted = pattern.get(..COMM).unwrap_or(pattern);
            all_processes(&mut |id| {
                let Some(process) = Process::read(id) else {
                    return;
                };
                let name = &*process.name;
                if matches(wanted, name) || matches(pattern, name) {
                    let labels = vec![kind(), Label::new("process", name)];
                    found.add(labels, process_instance(&process));
                }
            })?;
        }
        What::User(name, id) => {
            let labels = vec![kind(), Label::new("user", name.as_str())];
            found.subjects.insert(labels.clone(), Vec::new());
            all_processes(&mut |process| {
                if processes::user_of(process) == Some(*id)
                    && let Some(process) = Process::read(process)
                {
                    found.add(labels.clone(), process_instance(&process));
                }
            })?;
        }
    }
    Ok(found)
}

/// The most bytes of a process's name (proc_pid_comm(5)).
const COMM: usize = 15;

fn cpus(list: &[u32], by: By, kind: &Label, found: &mut Found) -> Result<()> {
    let topology = Topology::new();
    let mut online = topology.online()?;
    online.retain(|cpu| list.is_empty() || list.contains(cpu));
    let mut places: BTreeMap<Vec<Label>, Vec<u32>> = BTreeMap::new();
    for cpu in online {
        let mut labels = vec![kind.clone()];
        let number = |name, number: i64| Label::new(name, number.to_string());
        match by {
            By::Machine => {}
            By::Cpu => labels.push(number("cpu", cpu.into())),
            By::Socket | By::Core => {
                let place = topology.place(cpu)?;
                labels.push(number("socket", place.socket.into()));
                if by == By::Core {
                    labels.push(number("core", place.core.into()));
                }
            }
        }
        places.entry(labels).or_default().push(cpu);
    }
    for (labels, cpus) in places {
        let identity = format!("{cpus:?}");
        let place = Place::Cpus(cpus);
        found.add(labels, Instance { identity, place });
    }
    Ok(())
}

/// A walk through the hierarchy of control groups.
struct Walk {
    mount: PathBuf,
    online: String,
    looked_at: usize,
}

impl Walk {
    fn new() -> Result<Self> {
        Ok(Self {
            mount: cgroups::mount_point()?,
            // Counters on a CPU that was not online then are opened when it is.
            online: format!("{:?}", Topology::new().online()?),
            looked_at: 0,
        })
    }

    /// Visits the groups whose path has names that match, one for each part; `**` at the end are all below.
    fn by_path(&mut self, at: &Path, pattern: &[&str], visit: &mut dyn FnMut(&Path, String)) {
        match pattern {
            [] => self.visit(at, visit),
            ["**"] => self.all(at, visit),
            [name, rest @ ..] if !name.contains(['*', '?', '[']) => {
                self.by_path(&at.join(name), rest, visit);
            }
            [pattern, rest @ ..] => {
                for name in self.below(at) {
                    if matches(pattern, &name.to_string_lossy()) {
                        self.by_path(&at.join(name), rest, visit);
                    }
                }
            }
        }
    }

    /// Visits all groups below one.
    fn all(&mut self, at: &Path, visit: &mut dyn FnMut(&Path, String)) {
        if at.components().count() >= DEEPEST {
            return;
        }
        for name in self.below(at) {
            let path = at.join(name);
            self.visit(&path, visit);
            self.all(&path, visit);
        }
    }

    fn visit(&self, path: &Path, visit: &mut dyn FnMut(&Path, String)) {
        // One that has just been removed is none.
        if let Ok(metadata) = fs::metadata(self.mount.join(path).join("cgroup.procs")) {
            visit(path, format!("{} on {}", metadata.ino(), self.online));
        }
    }

    fn below(&mut self, at: &Path) -> Vec<std::ffi::OsString> {
        let entries = fs::read_dir(self.mount.join(at)).into_iter().flatten();
        let directories = entries.filter_map(|entry| {
            let entry = entry.ok()?;
            entry.file_type().ok()?.is_dir().then(|| entry.file_name())
        });
        let left = MOST_CGROUPS.saturating_sub(self.looked_at);
        let mut names: Vec<_> = directories.take(left).collect();
        self.looked_at += names.len();
        names.sort();
        names
    }
}

fn cgroup_label(path: &Path) -> Label {
    Label::new("cgroup", format!("/{}", path.display()))
}

fn walk_instance(path: &Path, identity: String) -> Instance {
    let place = Place::Cgroup {
        path: path.to_owned(),
        cpus: Vec::new(),
    };
    Instance { identity, place }
}

/// Returns the name of a unit whose control group has it with `\x2d` and the like (systemd.unit(5)).
fn unescaped(name: &str) -> String {
    let mut out = String::new();
    let mut rest = name;
    while let Some(at) = rest.find("\\x") {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 4);
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(byte) if byte.is_ascii() => {
                out.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            _ => {
                out.push_str("\\x");
                rest = &rest[at + 2..];
            }
        }
    }
    out + rest
}

/// Returns the id of the container whose control group it is, as Docker, containerd, CRI-O and Podman name them.
fn container(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_str()?;
    let name = name.strip_suffix(".scope").unwrap_or(name);
    let id = name.rsplit(['-', ':']).next()?;
    let is_id = id.len() == 64 && id.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    is_id.then(|| id.to_owned())
}

/// Visits the numbers of all processes; the oldest are first, which are kept where there are too many.
fn all_processes(visit: &mut dyn FnMut(i32)) -> Result<()> {
    let ids = processes::ids()
        .map_err(|e| Error::new(ErrorKind::Os, "find the processes in /proc").with_io_error(&e))?;
    ids.into_iter().for_each(visit);
    Ok(())
}

fn process_instance(process: &Process) -> Instance {
    Instance {
        identity: format!("{} since {}", process.id, process.started),
        place: Place::Process(process.id),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn containers_are_known_by_the_names_of_their_groups() {
        let id = "0123456789abcdef".repeat(4);
        for name in [
            format!("system.slice/docker-{id}.scope"),
            format!("docker/{id}"),
            format!("kubepods.slice/cri-containerd-{id}.scope"),
            format!("machine.slice/libpod-{id}.scope"),
        ] {
            assert_eq!(container(Path::new(&name)), Some(id.clone()), "{name}");
        }
        assert_eq!(container(Path::new("system.slice/cron.service")), None);
        assert_eq!(container(Path::new(&format!("docker/{}", &id[1..]))), None);
    }

    #[test]
    fn units_have_their_own_names() {
        assert_eq!(unescaped("dev-disk\\x2duuid.swap"), "dev-disk-uuid.swap");
        assert_eq!(unescaped("a\\xzz.service"), "a\\xzz.service");
    }

    #[test]
    fn the_most_instances_are_kept_and_the_rest_counted() {
        let mut found = Found {
            most: 2,
            ..Found::default()
        };
        for name in ["a", "b", "c", "d"] {
            let instance = walk_instance(Path::new(name), String::new());
            found.add(vec![cgroup_label(Path::new(name))], instance);
        }
        assert_eq!((found.subjects.len(), found.left_out), (2, 2));
    }
}
