//! The records beside samples: a known child, a known number of context switches.

use std::time::Duration;

use quipu_hal::{Attributes, Software, Target};
use quipu_linux::sampling::record::{FileIdentity, SwitchDirection};
use quipu_linux::sampling::{
    ExtraRecords, Rate, Record, SampleType, Sampler, SamplerFlags, SamplerSpec, ThreadId,
};

use super::breakpoints::executions_of;
use super::shell::HeldShell;
use super::{calls, open};
use crate::machine::{self, user};

/// A sampler that only writes these records.
fn only(records: ExtraRecords) -> SamplerSpec {
    let mut spec = SamplerSpec::new([(user(Software::Dummy), Rate::Never)]);
    spec.extra_records = records;
    spec.sample_type = SampleType::TID | SampleType::TIME | SampleType::CPU;
    spec
}

/// Returns what happened to a command, in short, sorted by time over all rings.
fn story(sampler: &mut Sampler) -> Vec<(u64, ThreadId, String)> {
    let layout = *sampler.layout();
    let mut story = Vec::new();
    for ring in sampler.rings_mut() {
        let cpu = ring.part().cpu;
        for record in &mut ring.records() {
            let record = record.expect("a record");
            let id = record.sample_id(&layout).expect("a trailer");
            assert_eq!(id.cpu, cpu);
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let (thread, what) = match record.decode(&layout).expect("of the layout") {
                Record::Comm(comm) => {
                    assert!(comm.is_exec, "{comm:?}");
                    (comm.thread, format!("named {}", text(comm.name)))
                }
                Record::Mapping(mapping) => {
                    assert!(mapping.len > 0 && !mapping.is_data);
                    let executable = libc::PROT_EXEC as u32;
                    assert_eq!(mapping.protection.map(|p| p & executable), Some(executable));
                    let path = text(mapping.path);
                    if let (true, Some(FileIdentity::Inode { inode, .. })) =
                        (path.starts_with('/'), mapping.file)
                    {
                        use std::os::unix::fs::MetadataExt;
                        let file = std::fs::metadata(&path).expect("it was mapped");
                        assert_eq!(file.ino(), inode, "{path}");
                    }
                    (mapping.thread, format!("mapped {path}"))
                }
                Record::Fork(task) => {
                    assert_eq!(id.thread, Some(task.parent));
                    (task.thread, "forked".to_owned())
                }
                Record::Exit(task) => {
                    assert_eq!(id.thread, Some(task.thread));
                    (task.thread, "ended".to_owned())
                }
                other => panic!("{other:?}"),
            };
            story.push((id.time.expect("asked for"), thread, what));
        }
    }
    story.sort_by_key(|(time, ..)| *time);
    story
}

#[test]
fn the_life_of_a_command_comes_in_order() {
    let name = "the_life_of_a_command_comes_in_order";
    let shell = HeldShell::new("(exit 3); exit 4");
    let pid = shell.pid();
    let mut spec = only(ExtraRecords::NAMES | ExtraRecords::MAPPINGS | ExtraRecords::TASKS);
    spec.attributes = Attributes::default()
        .with_inherit(true)
        .with_enable_on_exec(true)
        .with_disabled(true);
    let Some(mut sampler) = open(name, &spec, &Target::Thread(pid)) else {
        return;
    };
    assert_eq!(shell.run().code(), Some(4));
    let story = story(&mut sampler);
    let shell = ThreadId { pid, tid: pid };
    let own: Vec<_> = story
        .iter()
        .filter(|(_, thread, _)| *thread == shell)
        .collect();
    assert_eq!(own[0].2, "named sh", "{story:?}");
    let binary = std::fs::canonicalize("/bin/sh").expect("a shell");
    assert_eq!(
        own[1].2,
        format!("mapped {}", binary.display()),
        "{story:?}"
    );
    assert_eq!(own[own.len() - 1].2, "ended", "{story:?}");
    assert!(
        own.iter().any(|(.., what)| what == "mapped [vdso]"),
        "{story:?}"
    );
    let others: Vec<_> = story
        .iter()
        .filter(|(_, thread, _)| *thread != shell)
        .collect();
    let lives: Vec<_> = others.iter().map(|(.., what)| what.as_str()).collect();
    assert_eq!(lives, ["forked", "ended"], "{story:?}");
    assert!(own[1].0 < others[0].0 && others[1].0 < own[own.len() - 1].0);
}

/// Counts how often this thread has left the CPU of its own accord (getrusage(2), `ru_nvcsw`).
fn voluntary_switches() -> u64 {
    // SAFETY: an all-zero rusage is one; the kernel fills it through the pointer to a live local.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &raw mut usage);
        usage
    };
    usage.ru_nvcsw as u64
}

#[test]
fn context_switches_match_what_the_kernel_counts() {
    let name = "context_switches_match_what_the_kernel_counts";
    let spec = only(ExtraRecords::SWITCHES);
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let before = voluntary_switches();
    for _ in 0..50 {
        std::thread::sleep(Duration::from_micros(1));
    }
    let after = voluntary_switches();
    sampler.disable().expect("disable");
    let mut directions = Vec::new();
    super::each_record(&mut sampler, |record, _| match record {
        Record::Switch(switch) => {
            assert_eq!(switch.other, None);
            directions.push(switch.direction);
        }
        other => panic!("{other:?}"),
    });
    let count = |wanted| directions.iter().filter(|d| **d == wanted).count() as u64;
    // A sleep that is over before the thread has left is no switch.
    assert!(after > before);
    assert_eq!(count(SwitchDirection::Out), after - before);
    // Every time it left it came back.
    let left = count(SwitchDirection::Out) + count(SwitchDirection::OutPreempted);
    assert_eq!(count(SwitchDirection::In), left);
    assert_ne!(directions[0], SwitchDirection::In);
}

/// The kernel leaves both out on a CPU, unless records of another kind are asked for: none of those comes.
#[test]
fn namespaces_alone_come_on_cpus() {
    let name = "namespaces_alone_come_on_cpus";
    let spec = only(ExtraRecords::NAMESPACES);
    let Some(mut sampler) = open(name, &spec, &Target::AllCpus) else {
        return;
    };
    let mut child = std::process::Command::new("true").spawn().expect("a child");
    let pid = child.id().cast_signed();
    assert!(child.wait().expect("it ends").success());
    sampler.disable().expect("disable");
    let mut seen = false;
    super::each_record(&mut sampler, |record, _| match record {
        Record::Namespaces(namespaces) => seen |= namespaces.thread.pid == pid,
        other => panic!("{other:?}"),
    });
    assert!(seen, "the kernel writes one for each new process");
}

/// Three threads that run one after the other, and one more that the kernel may have exchanged the counters with.
#[test]
fn each_thread_that_inherited_a_counter_has_its_count() {
    let name = "each_thread_that_inherited_a_counter_has_its_count";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    spec.attributes = Attributes::default().with_inherit(true);
    spec.flags = SamplerFlags::THREAD_COUNTS;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let work = |times| {
        // SAFETY: the call takes nothing and touches no memory of ours.
        let tid = move || (unsafe { libc::gettid() }, calls::call(times)).0;
        (
            std::thread::spawn(tid).join().expect("no panic"),
            times as u64,
        )
    };
    let expected = [3, 50, 700].map(work);
    let counters = sampler.counters().to_vec();
    let mut counts = std::collections::BTreeMap::new();
    super::each_record(&mut sampler, |record, _| {
        if let Record::Read(thread, values) = record {
            assert_eq!(thread.pid, std::process::id().cast_signed());
            let value = values.get(0).expect("one counter");
            assert!(counters.iter().any(|c| Some(c.id()) == value.id));
            *counts.entry(thread.tid).or_insert(0) += value.value;
        }
    });
    let known = expected
        .iter()
        .filter(|(tid, times)| match counts.get(tid) {
            Some(count) => {
                assert_eq!(count, times, "thread {tid}");
                true
            }
            None => false,
        });
    assert!(known.count() >= 2, "{expected:?}, {counts:?}");
}

/// On a CPU a switch names the other thread.
#[test]
fn on_a_cpu_switches_name_both_threads() {
    let name = "on_a_cpu_switches_name_both_threads";
    let spec = only(ExtraRecords::SWITCHES);
    let Some(mut sampler) = open(name, &spec, &Target::AllCpus) else {
        return;
    };
    for _ in 0..10 {
        std::thread::sleep(Duration::from_micros(1));
    }
    sampler.disable().expect("disable");
    let layout = *sampler.layout();
    // SAFETY: the call takes and changes nothing.
    let me = unsafe { libc::gettid() };
    let mut own_switches = 0;
    for ring in sampler.rings_mut() {
        for record in &mut ring.records() {
            let record = record.expect("a record");
            let own = record.sample_id(&layout).and_then(|id| id.thread);
            let Record::Switch(switch) = record.decode(&layout).expect("of the layout") else {
                continue;
            };
            let other = switch.other.expect("on a CPU");
            let own = own.expect("a thread").tid;
            // Nobody makes way for himself.
            assert!(own != me || other.tid != me, "{switch:?}");
            own_switches += u32::from(own == me);
        }
    }
    assert!(own_switches > 0);
}
