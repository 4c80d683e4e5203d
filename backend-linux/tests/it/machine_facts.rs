//! Topology, privileges and tracepoints, from directories as kernels show them and from this machine.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use quipu_hal::ErrorKind;
use quipu_linux::privileges::{Capability, Limit, Privileges, Seccomp};
use quipu_linux::topology::{CpuPlace, Topology};
use quipu_linux::tracefs::Tracefs;

fn write(root: &Path, file: &str, text: &str) {
    let path = root.join(file);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// Two sockets of two cores with two threads each; CPU 7 is offline.
fn two_sockets(root: &Path) {
    write(root, "online", "0-6\n");
    for cpu in 0..7u32 {
        let topology = format!("cpu{cpu}/topology");
        write(
            root,
            &format!("{topology}/physical_package_id"),
            &format!("{}\n", cpu % 2),
        );
        write(
            root,
            &format!("{topology}/core_id"),
            &format!("{}\n", cpu / 2 % 2 * 4),
        );
        write(root, &format!("{topology}/die_id"), "0\n");
    }
}

#[test]
fn places_of_cpus_on_two_sockets() {
    let dir = tempfile::tempdir().unwrap();
    two_sockets(dir.path());
    let topology = Topology::at(dir.path());
    assert_eq!(topology.online().unwrap(), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(topology.sockets().unwrap(), 2);
    let place = |socket, core, cpu| CpuPlace {
        socket,
        die: 0,
        core,
        cpu,
    };
    assert_eq!(topology.place(3).unwrap(), place(1, 4, 3));
    assert_eq!(
        topology.places().unwrap(),
        [
            place(0, 0, 0),
            place(0, 0, 4),
            place(0, 4, 2),
            place(0, 4, 6),
            place(1, 0, 1),
            place(1, 0, 5),
            place(1, 4, 3),
        ]
    );
    let e = topology.place(7).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NoSuchTarget);
}

#[test]
fn what_an_old_kernel_or_a_virtual_machine_does_not_know_is_minus_one() {
    let dir = tempfile::tempdir().unwrap();
    write(dir.path(), "online", "0\n");
    write(dir.path(), "cpu0/topology/core_id", "0\n");
    write(dir.path(), "cpu0/topology/physical_package_id", "-1\n");
    let topology = Topology::at(dir.path());
    let place = topology.place(0).unwrap();
    assert_eq!((place.socket, place.die, place.core), (-1, -1, 0));
    write(dir.path(), "cpu0/topology/core_id", "first\n");
    assert_eq!(topology.place(0).unwrap_err().kind(), ErrorKind::Os);
    write(dir.path(), "online", "0-4294967295\n");
    assert_eq!(
        topology.online().unwrap_err().kind(),
        ErrorKind::InvalidConfiguration
    );
    fs::remove_file(dir.path().join("online")).unwrap();
    assert_eq!(topology.online().unwrap_err().errno(), Some(libc::ENOENT));
}

#[test]
fn without_sysfs_the_cpus_are_those_of_proc_stat() {
    let dir = tempfile::tempdir().unwrap();
    let stat = "cpu  1 2 3\ncpu0 1 2 3\ncpu2 1 2 3\ncpu13 1 2 3\nintr 5 4\nprocesses 7\n";
    write(dir.path(), "proc/stat", stat);
    let topology = Topology::under(dir.path());
    assert_eq!(topology.online().unwrap(), [0, 2, 13]);
    // Those of sysfs come first.
    write(dir.path(), "sys/devices/system/cpu/online", "0-1\n");
    assert_eq!(topology.online().unwrap(), [0, 1]);
    // What is no list is an error, and another source does not hide it.
    write(dir.path(), "sys/devices/system/cpu/online", "many\n");
    assert!(topology.online().is_err());
    // The affinity of this process says nothing of another machine.
    fs::remove_dir_all(dir.path().join("sys")).unwrap();
    fs::remove_dir_all(dir.path().join("proc")).unwrap();
    assert_eq!(topology.online().unwrap_err().errno(), Some(libc::ENOENT));
}

#[test]
fn this_machine_has_the_cpu_this_test_runs_on() {
    let topology = Topology::new();
    let places = topology.places().unwrap();
    assert_eq!(places.len(), topology.online().unwrap().len());
    assert!((1..=places.len()).contains(&topology.sockets().unwrap()));
}

#[test]
fn privileges_of_a_process_in_a_container() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    write(root, "proc/sys/kernel/perf_event_paranoid", "4\n");
    write(root, "proc/sys/kernel/osrelease", "6.8.0-45-generic\n");
    write(
        root,
        "proc/self/status",
        "Name:\tquipu\nUid:\t1000\t1001\t1000\t1000\nCapInh:\t0000000000000000\n\
         CapPrm:\t000001ffffffffff\nCapEff:\t0000004000084000\nSeccomp:\t2\nSeccomp_filters:\t1\n",
    );
    write(
        root,
        "proc/self/uid_map",
        "         0     100000      65536\n",
    );
    write(
        root,
        "proc/self/limits",
        "Limit                     Soft Limit           Hard Limit           Units     \n\
         Max open files            1024                 1048576              files     \n\
         Max locked memory         8388608              unlimited            bytes     \n",
    );
    write(
        root,
        "proc/cpuinfo",
        "processor\t: 0\nmodel name\t: Some CPU @ 3.00GHz\nflags\t\t: fpu hypervisor lahf_lm\n",
    );
    write(root, "sys/bus/event_source/devices/cpu/type", "4\n");
    let p = Privileges::read_under(root);
    assert_eq!((p.perf_event_paranoid, p.uid), (Some(4), Some(1001)));
    let has: Vec<bool> = Capability::ALL.iter().map(|c| p.has(*c)).collect();
    assert_eq!(has, [true, true, false, true]);
    assert_eq!(p.initial_user_namespace, Some(false));
    assert!(!p.is_perfmon_capable() && !p.may_count_user());
    assert_eq!(p.seccomp, Some(Seccomp::Filter));
    let limit = |soft, hard| Some(Limit { soft, hard });
    assert_eq!(p.open_files, limit(Some(1024), Some(1_048_576)));
    assert_eq!(p.locked_memory, limit(Some(8_388_608), None));
    assert!(p.has_cpu_pmu);
    assert_eq!(p.kernel.as_deref(), Some("6.8.0-45-generic"));
    assert_eq!(p.cpu.as_deref(), Some("Some CPU @ 3.00GHz"));
    assert_eq!(p.virtual_machine, Some(true));
}

fn may(p: &Privileges) -> [bool; 4] {
    [
        p.may_count_user(),
        p.may_count_kernel(),
        p.may_count_cpus(),
        p.may_count_raw_tracepoints(),
    ]
}

#[test]
fn paranoia_takes_away_what_capabilities_of_the_initial_user_namespace_give_back() {
    let mut p = Privileges::read();
    p.initial_user_namespace = Some(true);
    p.capabilities = Some(1 << Capability::SysPtrace.number());
    for (level, allowed) in [(-1, 4), (0, 3), (1, 2), (2, 1), (3, 0), (4, 0)] {
        p.perf_event_paranoid = Some(level);
        assert_eq!(may(&p), [0, 1, 2, 3].map(|i| i < allowed), "{level}");
    }
    for capability in [Capability::Perfmon, Capability::SysAdmin] {
        p.capabilities = Some(1 << capability.number());
        p.initial_user_namespace = Some(true);
        assert_eq!(may(&p), [true; 4]);
        p.initial_user_namespace = Some(false);
        assert_eq!(may(&p), [false; 4]);
    }
}

#[test]
fn privileges_where_nothing_can_be_read() {
    let dir = tempfile::tempdir().unwrap();
    let p = Privileges::read_under(dir.path());
    assert_eq!(
        (p.perf_event_paranoid, p.uid, p.capabilities),
        (None, None, None)
    );
    assert!(!p.may_count_user() && !p.has_cpu_pmu);
    write(
        dir.path(),
        "proc/self/limits",
        "Max locked memory         lots                 8388608              bytes\n",
    );
    assert_eq!(Privileges::read_under(dir.path()).locked_memory, None);
    write(
        dir.path(),
        "proc/cpuinfo",
        "processor\t: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd0b\n",
    );
    let p = Privileges::read_under(dir.path());
    assert_eq!(p.cpu.as_deref(), Some("ARM implementer 0x41 part 0xd0b"));
    assert_eq!(p.virtual_machine, None);
}

#[test]
fn privileges_of_this_process() {
    let p = Privileges::read();
    // SAFETY: geteuid(2) has no preconditions.
    assert_eq!(p.uid, Some(unsafe { libc::geteuid() }));
    assert!(p.kernel.is_some() && p.capabilities.is_some() && p.open_files.is_some());
}

fn tracepoints(root: &Path) {
    write(root, "events/enable", "0\n");
    write(root, "events/sched/enable", "0\n");
    write(root, "events/sched/sched_switch/id", "316\n");
    write(root, "events/sched/sched_wakeup/id", "319\n");
    write(root, "events/syscalls/sys_enter_read/id", "many\n");
}

#[test]
fn tracepoints_by_name() {
    let dir = tempfile::tempdir().unwrap();
    tracepoints(dir.path());
    let tracefs = Tracefs::at(dir.path());
    assert_eq!(tracefs.id("sched", "sched_switch").unwrap(), 316);
    assert_eq!(tracefs.systems().unwrap(), ["sched", "syscalls"]);
    assert_eq!(
        tracefs.events("sched").unwrap(),
        ["sched_switch", "sched_wakeup"]
    );
    let all: Vec<String> = tracefs
        .tracepoints()
        .unwrap()
        .map(|(s, n)| format!("{s}:{n}"))
        .collect();
    assert_eq!(
        all,
        [
            "sched:sched_switch",
            "sched:sched_wakeup",
            "syscalls:sys_enter_read"
        ]
    );
    for (system, name, hint) in [
        ("sched", "sched_swich", "did you mean sched_switch?"),
        ("shced", "sched_switch", "did you mean sched?"),
        ("sched", "../sched/sched_switch", "sched has sched_switch"),
        ("..", "events", "the systems are sched, syscalls"),
    ] {
        let e = tracefs.id(system, name).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::UnsupportedEvent);
        assert!(e.hint().unwrap_or_default().starts_with(hint), "{e:#}");
    }
    assert_eq!(
        tracefs.id("syscalls", "sys_enter_read").unwrap_err().kind(),
        ErrorKind::Os
    );
}

#[test]
fn tracefs_is_found_where_it_is_mounted() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path();
    fs::create_dir_all(root.join("sys/kernel/tracing")).unwrap();
    let e = Tracefs::find_under(root).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::NoSuchDevice);
    assert!(
        e.hint()
            .unwrap()
            .contains("mount -t tracefs nodev /sys/kernel/tracing")
    );

    write(root, "proc/mounts", "nodev /mnt/a\\040b tracefs rw 0 0\n");
    tracepoints(&root.join("mnt/a b"));
    assert_eq!(
        Tracefs::find_under(root).unwrap().root(),
        root.join("mnt/a b")
    );

    tracepoints(&root.join("sys/kernel/debug/tracing"));
    let found = Tracefs::find_under(root).unwrap();
    assert_eq!(found.root(), root.join("sys/kernel/debug/tracing"));

    tracepoints(&root.join("sys/kernel/tracing"));
    assert_eq!(
        Tracefs::find_under(root).unwrap().root(),
        root.join("sys/kernel/tracing")
    );
}

#[test]
fn tracefs_that_may_not_be_read_is_no_permission() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let tracing = dir.path().join("sys/kernel/tracing");
    tracepoints(&tracing);
    fs::set_permissions(&tracing, fs::Permissions::from_mode(0o000)).unwrap();
    let found = Tracefs::find_under(dir.path());
    let readable = tracing.join("events").read_dir().is_ok();
    fs::set_permissions(&tracing, fs::Permissions::from_mode(0o700)).unwrap();
    if readable {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP tracefs_that_may_not_be_read_is_no_permission: this user may read everything"
        );
        return;
    }
    let e = found.unwrap_err();
    assert_eq!(
        (e.kind(), e.errno()),
        (ErrorKind::NoPermission, Some(libc::EACCES))
    );
    assert!(e.hint().is_some());
}
