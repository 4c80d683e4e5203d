//! Reports on machines that are described here: their `/proc` and `/sys`, or the facts themselves.

use std::fs;
use std::path::Path;

use quipu_shell::terminal::Layout;

use super::facts::{
    Abilities, BackendFacts, ConsideredFacts, CpuFacts, DeviceFacts, Facts, MachineFacts,
    SelectionFacts,
};
use super::linux::{self, Tried};
use super::linux_facts::{CounterFacts, CounterTestFacts};
use super::refusal::Refusal;
use super::report::text;

/// A user, as the kernel and the session describe them.
struct User {
    paranoid: &'static str,
    status: &'static str,
    tried: Tried,
}

const ORDINARY: User = User {
    paranoid: "2\n",
    status: "Uid:\t1000\t1000\t1000\t1000\nCapEff:\t0000000000000000\nSeccomp:\t2\n",
    tried: Tried {
        user_mode: true,
        kernel_mode: false,
        whole_cpus: false,
        cycles: false,
    },
};

const ROOT: User = User {
    paranoid: "-1\n",
    status: "Uid:\t0\t0\t0\t0\nCapEff:\t000001ffffffffff\nSeccomp:\t0\n",
    tried: Tried {
        user_mode: true,
        kernel_mode: true,
        whole_cpus: true,
        cycles: true,
    },
};

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Returns the facts of a virtual machine with these PMUs, without its backends.
fn linux_machine(machine: &str, user: &User) -> Facts {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    let devices = root.join("sys/bus/event_source");
    fs::create_dir_all(&devices).unwrap();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../backend-linux/tests/fixtures");
    std::os::unix::fs::symlink(fixtures.join(machine), devices.join("devices")).unwrap();
    write(root, "sys/devices/system/cpu/online", "0\n");
    let topology = "sys/devices/system/cpu/cpu0/topology";
    write(root, &format!("{topology}/core_id"), "0\n");
    write(root, &format!("{topology}/physical_package_id"), "0\n");
    write(root, "proc/sys/kernel/osrelease", "6.12.9-amd64\n");
    write(root, "proc/sys/kernel/perf_event_paranoid", user.paranoid);
    write(
        root,
        "proc/cpuinfo",
        "model name\t: Some CPU\nflags\t\t: fpu hypervisor\n",
    );
    write(root, "proc/self/status", user.status);
    write(root, "proc/self/uid_map", "0 0 4294967295\n");
    write(
        root,
        "proc/self/limits",
        "Max open files  1024  524288  files\nMax locked memory  8388608  8388608  bytes\n",
    );
    let test = |pmu: &str, state: &str| CounterTestFacts {
        pmu: Some(pmu.to_owned()),
        ..CounterTestFacts::untested(state)
    };
    let dead = "6 counters, 5 of them count: a hypervisor holds the others";
    let tests = match machine {
        "hybrid" => vec![
            test("cpu_core", "8 counters, all of them count"),
            test("cpu_atom", dead),
        ],
        _ => vec![test("cpu", dead)],
    };
    let counters = CounterFacts {
        tests,
        ..CounterFacts::default()
    };
    linux::add(facts("linux"), root, counters, &user.tried)
}

/// Returns the facts of a machine with a system, of which nothing but the backends is known.
fn facts(system: &'static str) -> Facts {
    Facts {
        quipu: "0",
        machine: MachineFacts {
            system,
            counters_by_cpuid: Some("AMD PerfMonV2, 6 core counters of 48 bits".into()),
            ..MachineFacts::default()
        },
        linux: None,
        device: None,
        selection: selection(),
        backends: vec![
            BackendFacts {
                name: "linux",
                usable: true,
                abilities: Some(Abilities {
                    events: vec!["software events", "tracepoints"],
                    no_events: vec!["hardware events"],
                    targets: vec!["this thread", "a process"],
                    features: vec!["inherit", "enable on exec"],
                    simultaneity: "atomic",
                    slots: Some(6),
                    counting_slots: Some(5),
                }),
                refusal: None,
            },
            BackendFacts {
                name: "pctr",
                usable: false,
                abilities: None,
                refusal: Some(Refusal {
                    reason: "cannot open /dev/pctr: only OpenBSD has it".to_owned(),
                    hint: Some("use another backend".to_owned()),
                }),
            },
        ],
    }
}

fn selection() -> SelectionFacts {
    let words = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect();
    let cpu = |id: &str, rule: Option<&str>, prefers: &[&str]| CpuFacts {
        id: id.to_owned(),
        name: "Some CPU".to_owned(),
        recognised_by: rule.map(str::to_owned),
        prefers: words(prefers),
    };
    SelectionFacts {
        cpus: vec![
            cpu("intel-x", Some("GenuineIntel family 6"), &["linux", "msr"]),
            cpu("intel-y", None, &[]),
        ],
        refusal: None,
        considered: vec![ConsideredFacts {
            backend: "linux".into(),
            chosen: true,
            reasons: words(&["first choice of intel-x", "available here"]),
        }],
    }
}

#[test]
fn an_ordinary_user_of_a_hybrid_machine() {
    let facts = linux_machine("hybrid", &ORDINARY);
    insta::assert_snapshot!(text(&facts, Layout::PLAIN));
}

#[test]
fn root_on_a_machine_of_many_pmus() {
    let facts = linux_machine("intel", &ROOT);
    insta::assert_snapshot!(text(&facts, Layout::PLAIN));
}

#[test]
fn one_json_object() {
    let facts = linux_machine("amd", &ORDINARY);
    insta::assert_snapshot!(serde_json::to_string_pretty(&facts).unwrap());
}

#[test]
fn a_bsd_whose_counters_are_closed_to_the_user() {
    let machine = MachineFacts {
        system: "openbsd",
        kernel: Some("7.6".to_owned()),
        cpu: Some("Some CPU".to_owned()),
        cpus_online: Some(2),
        user_id: Some(1000),
        ..MachineFacts::default()
    };
    let device = DeviceFacts {
        path: "/dev/pctr".to_owned(),
        backend: "pctr",
        exists: true,
        readable: false,
        writable: false,
    };
    let bsd = Facts {
        machine,
        device: Some(device),
        ..facts("openbsd")
    };
    insta::assert_snapshot!(text(&bsd, Layout::PLAIN));
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let layout = Layout {
        width: Some(64),
        ..Layout::PLAIN
    };
    let report = |machine| text(&linux_machine(machine, &ORDINARY), layout);
    for machine in ["amd", "intel", "arm", "power"] {
        for line in report(machine).lines() {
            assert!(line.chars().count() <= 64, "{line}");
        }
    }
    let power = report("power");
    assert!(
        power.contains("hv_24x7    11       6       2  0, whole CPUs only\n"),
        "{power}"
    );
    assert!(power.contains("None of them belongs to the CPU cores"));
    assert!(power.contains("The host can provide a virtual PMU"));
}
