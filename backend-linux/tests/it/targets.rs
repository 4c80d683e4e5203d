//! Targets that fan out: CPUs, all CPUs, cgroups.

use crate::machine::{FreshPages, backend, move_to_cpu, open, read, skip, user};
use quipu_hal::{
    Attributes, Backend, Features, GroupSpec, Simultaneity, Software, Target, TargetKinds,
};
use quipu_linux::topology::Topology;

#[test]
fn every_cpu_is_a_part_whose_time_goes_on() {
    let name = "every_cpu_is_a_part_whose_time_goes_on";
    let spec = GroupSpec::new([Software::CpuClock, Software::PageFaults]);
    let Some(mut group) = open(name, &spec, &Target::AllCpus) else {
        return;
    };
    let online = Topology::new().online().expect("sysfs");
    let first = read(&mut group);
    let cpus: Vec<_> = first.parts().iter().filter_map(|part| part.cpu).collect();
    assert_eq!(cpus, online);
    FreshPages::map(64).touch();
    let second = read(&mut group);
    for part in 0..cpus.len() {
        // A CPU counts whether anything runs on it or not.
        assert!(second[part][0].time_enabled > first[part][0].time_enabled);
        assert_eq!(second[part][0].time_enabled, second[part][1].time_enabled);
    }
    let faults = |buf: &quipu_hal::ReadBuf| buf.total(1).exact().expect("exact");
    assert!(faults(&second) - faults(&first) >= 64);
}

#[test]
fn chosen_cpus_are_parts_in_the_order_given() {
    let name = "chosen_cpus_are_parts_in_the_order_given";
    let mut cpus = Topology::new().online().expect("sysfs");
    cpus.reverse();
    let spec = GroupSpec::single(Software::CpuClock);
    let twice = [cpus.as_slice(), &cpus[..1]].concat();
    let Some(mut group) = open(name, &spec, &Target::Cpus(twice)) else {
        return;
    };
    let parts: Vec<_> = read(&mut group)
        .parts()
        .iter()
        .filter_map(|p| p.cpu)
        .collect();
    assert_eq!(parts, cpus);
    for target in [Target::Cpu(cpus[0]), Target::CurrentCpu] {
        let mut group = open(name, &spec, &target).expect("one CPU as well as all");
        let cpu = read(&mut group).parts()[0].cpu;
        assert!(cpu.is_some_and(|cpu| cpus.contains(&cpu)));
    }
}

#[test]
fn a_thread_is_counted_on_one_cpu_alone() {
    let name = "a_thread_is_counted_on_one_cpu_alone";
    let [here, there, ..] = Topology::new().online().expect("sysfs")[..] else {
        return skip(name, "there is one CPU only");
    };
    let counted = std::thread::spawn(move || {
        move_to_cpu(here);
        let target = Target::ThreadOnCpu {
            thread: None,
            cpu: there,
        };
        let mut group = open(
            name,
            &GroupSpec::single(user(Software::PageFaults)),
            &target,
        )?;
        FreshPages::map(64).touch();
        let elsewhere = read(&mut group)[0][0].value;
        move_to_cpu(there);
        FreshPages::map(64).touch();
        let readings = read(&mut group);
        assert_eq!(readings.parts()[0].cpu, Some(there));
        Some((elsewhere, readings[0][0].value))
    });
    if let Some((elsewhere, there)) = counted.join().expect("no panic") {
        assert_eq!(elsewhere, 0);
        assert!((64..128).contains(&there), "{there}");
    }
}

#[test]
fn a_cgroup_counts_what_its_tasks_do() {
    let name = "a_cgroup_counts_what_its_tasks_do";
    let Some(backend) = backend(name) else { return };
    if !backend.capabilities().targets.contains(TargetKinds::CGROUP) {
        return skip(name, "this kernel or user has no counters on cgroups");
    }
    // The root of the hierarchy: every task, this one among them.
    let target = Target::Cgroup {
        path: ".".into(),
        cpus: vec![],
    };
    let mut group = match backend.open_group(&GroupSpec::single(Software::PageFaults), &target) {
        Ok(group) => group,
        Err(e) => return skip(name, e),
    };
    // Now and then the kernel says that a CPU's part did not run all the time it was enabled, so
    // these are the values as counted, not as scaled.
    let mut counted = || -> u64 {
        read(&mut group)
            .member(0)
            .expect("a member")
            .map(|(_, r)| r.value)
            .sum()
    };
    let before = counted();
    FreshPages::map(64).touch();
    assert!(counted() >= before + 64);
}

#[test]
fn capabilities_are_what_opens() {
    let name = "capabilities_are_what_opens";
    let Some(backend) = backend(name) else { return };
    assert_eq!(backend.name(), "linux");
    let capabilities = backend.capabilities();
    assert!(
        capabilities
            .features
            .contains(Features::SOFTWARE_EVENTS | Features::INHERIT)
    );
    assert_eq!(capabilities.simultaneity, Simultaneity::Atomic);
    let clock = GroupSpec::single(user(Software::TaskClock));
    let pid = i32::try_from(std::process::id()).expect("a pid");
    for target in [
        Target::CurrentThread,
        Target::Thread(pid),
        Target::Process(pid),
        Target::CurrentCpu,
        Target::Cpu(0),
        Target::AllCpus,
    ] {
        let opens = backend.open_group(&clock, &target).is_ok();
        assert_eq!(
            opens,
            capabilities.targets.contains(target.kind()),
            "{target}"
        );
    }
    let cycles = GroupSpec::single(user(quipu_hal::Hardware::Cycles));
    let opens = backend.open_group(&cycles, &Target::CurrentThread).is_ok();
    assert_eq!(
        opens,
        capabilities.features.contains(Features::HARDWARE_EVENTS)
    );
}

#[test]
fn an_inherited_process_has_a_part_for_each_thread() {
    let name = "an_inherited_process_has_a_part_for_each_thread";
    let pid = i32::try_from(std::process::id()).expect("a pid");
    let spec = GroupSpec::new([user(Software::TaskClock), user(Software::PageFaults)])
        .with_attributes(Attributes::default().with_inherit(true));
    let Some(mut group) = open(name, &spec, &Target::Process(pid)) else {
        return;
    };
    std::thread::spawn(|| FreshPages::map(64).touch())
        .join()
        .expect("no panic");
    let buf = read(&mut group);
    assert!(buf.parts().iter().any(|part| part.thread == Some(pid)));
    assert!(buf.total(1).exact().expect("exact") >= 64);
}
