//! Sampling through the facade.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use quipu::{ErrorKind, SampleRate, Sampler, Target, Woken};

/// A sampler of this thread's page faults, each with its address; `None` where that is not permitted.
fn page_faults(test: &str) -> Option<Sampler> {
    let mut builder = Sampler::builder();
    builder.events("page-faults:u").expect("an event");
    builder.rate(SampleRate::Period(1)).addresses(true);
    match builder.call_chains(true).open() {
        Ok(sampler) => Some(sampler),
        Err(why) => {
            let _ = writeln!(std::io::stderr(), "SKIP {test}: {why:#}");
            None
        }
    }
}

#[test]
fn every_page_that_is_touched_is_sampled_once_with_its_address() {
    const PAGES: u64 = 200;
    const PAGE: u64 = 64 << 10; // The largest that a Linux machine has.
    let Some(mut sampler) = page_faults("every_page_that_is_touched_is_sampled_once") else {
        return;
    };
    // Fresh zeros from the kernel, of which the allocator has touched the first page at most.
    let mut memory = vec![0u8; (PAGES * PAGE) as usize];
    let start = memory.as_ptr() as u64;
    let first = start.next_multiple_of(PAGE) + PAGE;
    let touched: BTreeSet<u64> = (0..PAGES - 3).map(|i| first + i * PAGE).collect();
    sampler.enable().expect("it is open");
    for address in &touched {
        std::hint::black_box(&mut memory)[(address - start) as usize] = 1;
    }
    sampler.disable().expect("it is open");

    let own = i32::try_from(std::process::id()).expect("a pid");
    let (mut seen, mut callers) = (Vec::new(), 0);
    let mut last = 0;
    sampler
        .drain(|sample| {
            let address = sample.address.expect("it was asked for");
            if (first..first + (PAGES - 3) * PAGE).contains(&address) {
                seen.push(address);
            }
            assert_eq!((sample.event, sample.pid, sample.period), (0, own, 1));
            assert!(!sample.in_kernel && sample.ip != 0 && sample.tid > 0);
            assert!(sample.callers.iter().all(|caller| !caller.in_kernel));
            callers += sample.callers.len();
            assert!(sample.time >= last, "in the order of their times");
            last = sample.time;
        })
        .expect("records");
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if huge.is_ok_and(|text| text.contains("[always]")) {
        // One fault brings many pages; each is sampled at most once all the same.
        let once: BTreeSet<u64> = seen.iter().copied().collect();
        assert!(once.len() == seen.len() && !seen.is_empty());
    } else {
        // A page may be taken away and come back; none is missed.
        assert_eq!(seen.iter().copied().collect::<BTreeSet<_>>(), touched);
    }
    assert!(callers > 0, "call chains were asked for");
    assert_eq!((sampler.lost(), sampler.jumped()), (0, 0));
    std::hint::black_box(vec![1u8; 64 << 20]);
    let mut again = 0;
    sampler.drain(|_| again += 1).expect("records");
    assert_eq!(
        again, 0,
        "samples are handed out once, and none is taken of a sampler that is stopped"
    );
}

/// Each has samples of its own, and the sampler a descriptor to wait on.
#[test]
fn samples_are_told_apart_by_their_events() {
    let mut builder = Sampler::builder();
    builder.events("dummy:u,page-faults:u").expect("events");
    let opened = builder.rate(SampleRate::Period(1)).wake_after(1).open();
    let Ok(mut sampler) = opened else {
        return;
    };
    assert_eq!(sampler.descriptors().count(), 1, "one thread is one part");
    sampler.enable().expect("it is open");
    std::hint::black_box(vec![1u8; 64 << 20]);
    sampler.disable().expect("it is open");
    let woken = sampler.wait(Some(Duration::ZERO)).expect("it is open");
    assert_eq!(woken, Woken::Data);
    let mut events = BTreeSet::new();
    sampler
        .drain(|sample| {
            events.insert(sample.event);
        })
        .expect("records");
    assert_eq!(events, BTreeSet::from([1]), "the dummy never occurs");
}

#[test]
fn what_found_no_room_is_counted() {
    if page_faults("what_found_no_room_is_counted").is_none() {
        return;
    }
    let mut sampler = Sampler::builder()
        .events("page-faults:u")
        .expect("an event")
        .rate(SampleRate::Period(1))
        .room(1)
        .open()
        .expect("it opened before");
    sampler.enable().expect("it is open");
    let mut memory = vec![0u8; 64 << 20];
    for at in (0..memory.len()).step_by(4096) {
        std::hint::black_box(&mut memory)[at] = 1;
    }
    sampler.disable().expect("it is open");
    let mut taken = 0;
    sampler.drain(|_| taken += 1).expect("records");
    let huge = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
    if !huge.is_ok_and(|text| text.contains("[always]")) {
        assert!(
            taken > 0 && sampler.lost() > 0,
            "{taken}, {}",
            sampler.lost()
        );
    }
}

#[test]
fn what_cannot_be_sampled_is_refused() {
    let kind = |builder: &quipu::SamplerBuilder| builder.open().expect_err("refused").kind();
    assert_eq!(kind(&Sampler::builder()), ErrorKind::InvalidConfiguration);
    let mut builder = Sampler::builder();
    let group = builder.events("{cs,faults}").expect_err("a group");
    assert_eq!(group.kind(), ErrorKind::InvalidConfiguration);
    builder.events("cpu-clock:u").expect("an event");
    assert_eq!(
        kind(builder.backend("posix")),
        ErrorKind::UnsupportedFeature
    );
    assert_eq!(
        kind(builder.backend("nobody")),
        ErrorKind::InvalidConfiguration
    );
}

#[test]
fn a_process_that_is_attached_is_sampled_too() {
    // Made before the sampler, which would inherit it.
    let mut child = Command::new("sh")
        .args(["-c", "read line; exec true"])
        .stdin(Stdio::piped())
        .spawn()
        .expect("a shell");
    let mut builder = Sampler::builder();
    builder.events("page-faults:u").expect("an event");
    let opened = builder.rate(SampleRate::Period(1)).inherit(true).open();
    let Ok(mut sampler) = opened else {
        drop(child.stdin.take());
        child.wait().expect("it is ours");
        return;
    };
    let pid = i32::try_from(child.id()).expect("a pid");
    sampler
        .attach(&Target::Process(pid))
        .expect("it is our own");
    sampler.enable().expect("it is open");
    drop(child.stdin.take());
    assert!(child.wait().expect("it ends").success());
    let mut faults = 0;
    let count = |sample: &quipu::Sample<'_>| faults += u32::from(sample.pid == pid);
    sampler.drain(count).expect("records");
    assert!(faults > 0);
}

#[test]
fn samplers_are_waited_for_until_all_that_they_sample_has_ended() {
    // Each ends when its input does.
    let mut children = [(); 2].map(|()| {
        let mut cat = Command::new("cat");
        cat.stdin(Stdio::piped()).spawn().expect("a process")
    });
    let opened = children.each_ref().map(|child| {
        let mut builder = Sampler::builder();
        builder.events("page-faults:u").expect("an event");
        builder.rate(SampleRate::Period(1)).wake_after(1);
        builder.target(Target::Process(child.id().cast_signed()));
        builder.open()
    });
    let [Ok(mut first), Ok(mut second)] = opened else {
        for mut child in children {
            drop(child.stdin.take());
            child.wait().expect("it is ours");
        }
        return;
    };
    let mut wait = |millis| {
        let timeout = Some(Duration::from_millis(millis));
        let woken = Sampler::wait_any(&mut [&mut first, &mut second], timeout);
        woken.expect("they are open")
    };
    let [one, two] = &mut children;
    let end = |child: &mut Child| {
        drop(child.stdin.take());
        assert!(child.wait().expect("it is ours").success());
    };
    end(one);
    // One has ended, and the other has not: it may have samples of its start.
    for _ in 0..10 {
        assert_ne!(wait(1), Woken::Ended);
    }
    end(two);
    while wait(60_000) != Woken::Ended {}
    assert_eq!(first.wait(None).expect("it is open"), Woken::Ended);
}
