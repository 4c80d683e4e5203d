//! Probes, conditions and BPF programs, counted exactly.

use std::hint::black_box;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

use crate::machine::{backend, open, read, skip, user};
use quipu_hal::{Count, ErrorKind, Event, EventSpec, Group, GroupSpec, Probe, Target};
use quipu_linux::LinuxGroup;

/// The function that the probes are put on. Big enough to have an instruction behind the first.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn quipu_linux_probed(n: u64) -> u64 {
    if n == u64::MAX {
        return black_box(n);
    }
    black_box(n).wrapping_mul(3)
}

fn own_probe() -> Probe {
    let own = std::env::current_exe().expect("Linux tells");
    Probe::user(own, "quipu_linux_probed")
}

fn total(group: &mut LinuxGroup) -> Count {
    read(group).total(0)
}

/// Counts what `work` causes, where the machine has the event.
fn counted(test: &str, event: impl Into<EventSpec>, work: impl FnOnce()) -> Option<Count> {
    let mut group = open(test, &GroupSpec::single(event), &Target::CurrentThread)?;
    work();
    Some(total(&mut group))
}

#[test]
fn a_probe_counts_every_call() {
    let test = "a_probe_counts_every_call";
    for probe in [own_probe(), own_probe().returning()] {
        let calls = || crate::machine::call(quipu_linux_probed, 1000);
        if let Some(total) = counted(test, probe.clone(), calls) {
            assert_eq!(total, Count::Exact(1000), "{probe}");
        }
    }
}

#[test]
fn a_probe_is_read_from_its_text() {
    let test = "a_probe_is_read_from_its_text";
    let text = own_probe().to_string();
    let spec = quipu_text::parse_spec(&text, &quipu_text::NoNames).expect("as it was written");
    assert_eq!(spec.event, own_probe().into());
    if let Some(total) = counted(test, spec, || crate::machine::call(quipu_linux_probed, 7)) {
        assert_eq!(total, Count::Exact(7));
    }
}

/// Members of one group, and another thread's calls, which are not counted.
#[test]
fn probes_stand_in_groups_and_on_their_target() {
    let test = "probes_stand_in_groups_and_on_their_target";
    let spec = GroupSpec::new([own_probe(), own_probe().returning()]);
    let Some(mut group) = open(test, &spec, &Target::CurrentThread) else {
        return;
    };
    crate::machine::call(quipu_linux_probed, 5);
    let other = std::thread::spawn(|| crate::machine::call(quipu_linux_probed, 100));
    other.join().expect("no panic");
    group.disable().expect("a running group");
    crate::machine::call(quipu_linux_probed, 50);
    let buf = read(&mut group);
    assert_eq!([buf.total(0), buf.total(1)], [Count::Exact(5); 2]);
}

#[test]
fn a_probe_that_cannot_be_is_explained() {
    let test = "a_probe_that_cannot_be_is_explained";
    let Some(backend) = backend(test) else { return };
    let refusal = |probe: Probe| {
        backend
            .open_group(&GroupSpec::single(probe), &Target::CurrentThread)
            .expect_err("there is no such place")
    };
    let missing = refusal(Probe::user("/no/such/program", "main"));
    if missing
        .reason()
        .is_some_and(|r| r.contains("no uprobe PMU"))
    {
        skip(test, missing);
        return;
    }
    assert_eq!(missing.kind(), ErrorKind::UnsupportedEvent);
    let own = std::env::current_exe().expect("Linux tells");
    let misspelt = refusal(Probe::user(&own, "quipu_linux_porbed"));
    assert_eq!(misspelt.kind(), ErrorKind::UnsupportedEvent);
    let hint = misspelt.hint().unwrap_or_default();
    assert!(hint.contains("quipu_linux_probed"), "{hint}");
    let text = refusal(Probe::user("/proc/self/status", "main"));
    assert_eq!(text.kind(), ErrorKind::InvalidConfiguration);
    let zero = refusal(Probe::user_offset("a\0b", 1));
    assert_eq!(zero.kind(), ErrorKind::InvalidConfiguration);
    let beyond = refusal(Probe::user_offset(&own, 1 << 60));
    let kinds = [ErrorKind::UnsupportedEvent, ErrorKind::NoPermission];
    assert!(kinds.contains(&beyond.kind()), "{beyond:#}");
    let nowhere = refusal(Probe::kernel("quipu_is_no_function_of_the_kernel"));
    let reason = nowhere.reason().unwrap_or_default();
    assert!(
        kinds.contains(&nowhere.kind())
            || nowhere.kind() == ErrorKind::UnsupportedFeature && reason.contains("no kprobe PMU"),
        "{nowhere:#}"
    );
}

/// The function that a system call of this thread enters by.
#[test]
fn a_probe_of_the_kernel_counts() {
    let test = "a_probe_of_the_kernel_counts";
    // `SYSCALL_DEFINE` of the kernel gives it the architecture's prefix.
    let prefix = match std::env::consts::ARCH {
        "x86_64" => "__x64_",
        "aarch64" => "__arm64_",
        "riscv64" => "__riscv_",
        "s390x" => "__s390x_",
        _ => "",
    };
    let entry = Probe::kernel(format!("{prefix}sys_getsid"));
    for probe in [entry.clone(), entry.returning()] {
        if let Some(total) = counted(test, probe.clone(), || getsid(0, 40)) {
            assert_eq!(total, Count::Exact(40), "{probe}");
        }
    }
}

/// A system call that programs hardly ever make.
fn getsid(pid: i32, times: usize) {
    for _ in 0..times {
        // SAFETY: the call takes a number and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_getsid, pid) };
    }
}

fn entering_getsid() -> Event {
    Event::tracepoint("syscalls", "sys_enter_getsid")
}

#[test]
fn a_condition_counts_what_meets_it() {
    let test = "a_condition_counts_what_meets_it";
    let calls = || {
        getsid(1_000_001, 11);
        getsid(1_000_002, 5);
        getsid(1_000_003, 2);
    };
    for (condition, expected) in [
        ("pid == 1000001", 11),
        ("pid != 1000001 && pid >= 1000003", 2),
        ("pid == 1000002 || pid == 1000003", 7),
        ("pid == 4", 0),
    ] {
        let spec = EventSpec::new(entering_getsid()).with_condition(condition);
        let Some(total) = counted(test, spec, calls) else {
            return;
        };
        assert_eq!(total, Count::Exact(expected), "{condition}");
    }
    let text = "syscalls:sys_enter_getsid/filter='pid == 1000002'/";
    let spec = quipu_text::parse_spec(text, &quipu_text::NoNames).expect("the text form");
    assert_eq!(counted(test, spec, calls), Some(Count::Exact(5)));
}

#[test]
fn a_condition_that_means_nothing_is_explained() {
    let test = "a_condition_that_means_nothing_is_explained";
    let Some(backend) = backend(test) else { return };
    let refusal = |event: EventSpec, condition: &str| {
        let spec = GroupSpec::single(event.with_condition(condition));
        backend
            .open_group(&spec, &Target::CurrentThread)
            .expect_err("it means nothing")
    };
    let elsewhere = refusal(user(quipu_hal::Software::PageFaults), "pid == 1");
    assert_eq!(elsewhere.kind(), ErrorKind::UnsupportedFeature);
    let unknown = refusal(entering_getsid().into(), "pdi == 1");
    if unknown.kind() != ErrorKind::InvalidConfiguration {
        skip(test, unknown);
        return;
    }
    assert_eq!(unknown.member(), Some(0));
    assert!(
        unknown
            .reason()
            .unwrap_or_default()
            .contains("no field pdi")
    );
    assert!(
        unknown.hint().unwrap_or_default().contains("pid"),
        "{unknown:#}"
    );
    let unfinished = refusal(entering_getsid().into(), "pid ==");
    assert_eq!(unfinished.kind(), ErrorKind::InvalidConfiguration);
    let zero = refusal(entering_getsid().into(), "pid == \0");
    assert_eq!(zero.kind(), ErrorKind::InvalidConfiguration);
}

/// Loads a BPF program for tracepoints that returns a number (bpf(2)).
fn program(returned: u32) -> Option<OwnedFd> {
    const PROG_LOAD: libc::c_int = 5;
    const TRACEPOINT: u32 = 5;
    /// The start of `union bpf_attr` for BPF_PROG_LOAD, and room for what follows.
    #[repr(C)]
    struct Load {
        kind: u32,
        instructions: u32,
        code: u64,
        license: u64,
        rest: [u64; 13],
    }
    // mov64 r0, returned; exit
    let code = [u64::from(returned) << 32 | 0xb7, 0x95];
    let license = c"GPL";
    let load = Load {
        kind: TRACEPOINT,
        instructions: 2,
        code: code.as_ptr() as u64,
        license: license.as_ptr() as u64,
        rest: [0; 13],
    };
    // SAFETY: the kernel reads the structure of the size given, and the code and text it points to,
    // all of which are live.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            PROG_LOAD,
            &raw const load,
            size_of_val(&load),
        )
    };
    let fd = RawFd::try_from(usize::try_from(fd).ok()?).ok()?;
    // SAFETY: the call succeeded, so it is a new descriptor that nobody else owns.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the id of a BPF program, as proc(5) lists it.
#[cfg(target_endian = "little")]
fn id_of(program: &OwnedFd) -> u32 {
    let info = format!("/proc/self/fdinfo/{}", program.as_raw_fd());
    let info = std::fs::read_to_string(info).expect("proc is mounted");
    let id = info.lines().find_map(|line| line.strip_prefix("prog_id:"));
    id.expect("of a program").trim().parse().expect("a number")
}

/// A program that returns 0 keeps every occurrence from being counted, one that returns 1 none.
#[test]
#[cfg(target_endian = "little")]
fn a_bpf_program_decides() {
    let test = "a_bpf_program_decides";
    let spec = GroupSpec::single(Event::tracepoint("syscalls", "sys_enter_getpriority"));
    let call = |times| {
        for _ in 0..times {
            // SAFETY: the call takes numbers and touches no memory of ours.
            unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_PROCESS, 0) };
        }
    };
    for (returned, expected) in [(1, 12), (0, 5)] {
        let Some(mut group) = open(test, &spec, &Target::CurrentThread) else {
            return;
        };
        let Some(program) = program(returned) else {
            return skip(test, "no BPF program may be loaded");
        };
        call(5);
        let before = group.bpf_programs(0).expect("a tracepoint");
        group
            .attach_bpf(0, program.as_fd())
            .expect("one for tracepoints");
        let id = id_of(&program);
        drop(program);
        let with_it = group.bpf_programs(0).expect("a tracepoint");
        let programs: Vec<_> = before.into_iter().chain([id]).collect();
        assert_eq!(with_it, programs);
        call(7);
        assert_eq!(
            total(&mut group),
            Count::Exact(expected),
            "it returns {returned}"
        );
    }
    let Some(group) = open(test, &spec, &Target::CurrentThread) else {
        return;
    };
    let no_program = std::fs::File::open("/dev/null").expect("every Linux has it");
    let refused = group
        .attach_bpf(0, no_program.as_fd())
        .expect_err("no program");
    assert_eq!(refused.kind(), ErrorKind::InvalidConfiguration);
    let no_member = group
        .attach_bpf(1, no_program.as_fd())
        .expect_err("one member");
    assert_eq!(no_member.kind(), ErrorKind::InvalidConfiguration);
    let no_member = group.bpf_programs(1).expect_err("one member");
    assert_eq!(no_member.kind(), ErrorKind::InvalidConfiguration);
    let clock = GroupSpec::single(EventSpec::new(quipu_hal::Software::TaskClock));
    let Some(clock) = open(test, &clock, &Target::CurrentThread) else {
        return;
    };
    let no_tracepoint = clock.bpf_programs(0).expect_err("a clock");
    assert_eq!(no_tracepoint.kind(), ErrorKind::InvalidConfiguration);
    assert_eq!(no_tracepoint.member(), Some(0));
}
