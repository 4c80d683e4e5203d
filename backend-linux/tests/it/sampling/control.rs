//! Changes of an open counter, and the end of waits.

use std::time::{Duration, Instant};

use quipu_hal::{Breakpoint, ErrorKind, Software, Target};
use quipu_linux::sampling::{Rate, Record, SampleType, SamplerSpec, Wakeup, Woken};

use super::breakpoints::executions_of;
use super::calls::{self, call};
use super::{each_record, open, samples};
use crate::machine::{self, FreshPages, skip, user};

/// The longest wait: no test gets here, however loaded the machine.
const LONG: Option<Duration> = Some(Duration::from_secs(60));
const NOW: Option<Duration> = Some(Duration::ZERO);

#[test]
fn whoever_waits_is_woken_at_the_watermark() {
    let name = "whoever_waits_is_woken_at_the_watermark";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    spec.sample_type = SampleType::IP;
    let wakeups = [
        // Samples of 8 bytes and a header.
        (Wakeup::Bytes(160), 10),
        (Wakeup::Samples(10), 9),
        (Wakeup::Samples(1), 0),
    ];
    for (wakeup, silent) in wakeups {
        spec.wakeup = wakeup;
        let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
            return;
        };
        call(silent);
        assert_eq!(sampler.wait(NOW).expect("wait"), Woken::TimedOut);
        call(1);
        assert_eq!(sampler.wait(LONG).expect("wait"), Woken::Data, "{wakeup:?}");
        // Once.
        assert_eq!(sampler.wait(NOW).expect("wait"), Woken::TimedOut);
        assert_eq!(samples(&mut sampler, |_| ()).len(), silent + 1);
    }
}

#[test]
fn the_end_of_a_thread_wakes_whoever_waits() {
    let name = "the_end_of_a_thread_wakes_whoever_waits";
    let _alone = machine::debug_registers();
    let (tid_is, its_tid) = std::sync::mpsc::channel();
    let (go, may_go) = std::sync::mpsc::channel::<()>();
    let thread = std::thread::spawn(move || {
        // SAFETY: the call takes nothing and touches no memory of ours.
        tid_is.send(unsafe { libc::gettid() }).expect("received");
        may_go.recv().expect("sent");
        call(3);
    });
    let tid = its_tid.recv().expect("sent");
    let sampler = open(name, &executions_of(calls::leaf()), &Target::Thread(tid));
    go.send(()).expect("received");
    thread.join().expect("no panic");
    let Some(mut sampler) = sampler else { return };
    // It hangs up a little after the thread could be joined.
    while sampler.wait(LONG).expect("wait") != Woken::Ended {}
    assert_eq!(sampler.wait(LONG).expect("wait"), Woken::Ended);
    assert_eq!(samples(&mut sampler, |_| ()).len(), 3);
}

/// Page faults: on Linux 6.18 a breakpoint that has run out does not start again.
#[test]
fn refresh_lets_so_many_samples_more() {
    let name = "refresh_lets_so_many_samples_more";
    let mut spec = SamplerSpec::new([(user(Software::PageFaults), Rate::Period(1))]);
    spec.attributes.disabled = true;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let touch = || FreshPages::map(10).touch();
    for more in [5, 2] {
        touch();
        assert_eq!(samples(&mut sampler, |_| ()).len(), 0);
        sampler.counters()[0].refresh(more).expect("refresh");
        touch();
        assert_eq!(samples(&mut sampler, |_| ()).len(), usize::from(more));
    }
    let endless = sampler.counters()[0].refresh(0).expect_err("undefined");
    assert_eq!(endless.kind(), ErrorKind::InvalidConfiguration);
    touch();
    assert_eq!(samples(&mut sampler, |_| ()).len(), 0);
    sampler.enable().expect("enable");
    touch();
    sampler.disable().expect("disable");
    assert!(samples(&mut sampler, |_| ()).len() >= 10);
    touch();
    assert_eq!(samples(&mut sampler, |_| ()).len(), 0);
}

#[test]
fn a_new_period_takes_effect() {
    let name = "a_new_period_takes_effect";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    spec.sample_type = SampleType::READ;
    spec.events[0].rate = Rate::Period(5);
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let counts = |sampler: &mut _| {
        samples(sampler, |sample| {
            let values = sample.values().expect("asked for");
            values.get(0).expect("one counter").value
        })
    };
    call(20);
    assert_eq!(counts(&mut sampler), [5, 10, 15, 20]);
    let counter = sampler.counters()[0].clone();
    counter.set_rate(Rate::Period(10)).expect("a new period");
    call(30);
    // The kernel samples the next event, and lets the old period end once more
    // (`__perf_event_period`, `perf_swevent_set_period`): 21, 25, 35, 45.
    let counts = counts(&mut sampler);
    let [.., before, last, end] = counts[..] else {
        panic!("{counts:?}");
    };
    assert_eq!((last - before, end - last), (10, 10), "{counts:?}");
    for wrong in [Rate::Period(0), Rate::Frequency(10), Rate::Never] {
        let refused = counter.set_rate(wrong).expect_err("refused");
        assert_eq!(refused.kind(), ErrorKind::InvalidConfiguration, "{wrong:?}");
    }
}

#[test]
fn a_breakpoint_moves() {
    let name = "a_breakpoint_moves";
    if calls::leaf() == calls::leaf_body() {
        return skip(name, "the frames are not known on this architecture");
    }
    let _alone = machine::debug_registers();
    let spec = executions_of(calls::leaf());
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(2);
    let to = Breakpoint::execute(calls::leaf_body());
    let moved = sampler.counters()[0].move_breakpoint(to);
    moved.expect("moved");
    call(2);
    let ips = samples(&mut sampler, |sample| sample.ip().expect("asked for"));
    let (leaf, body) = (calls::leaf(), calls::leaf_body());
    assert_eq!(ips, [leaf, leaf, body, body]);
}

#[test]
fn only_breakpoints_move() {
    let name = "only_breakpoints_move";
    let spec = SamplerSpec::new([(user(Software::PageFaults), Rate::Period(1))]);
    let Some(sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let to = Breakpoint::execute(calls::leaf());
    let refused = sampler.counters()[0].move_breakpoint(to);
    assert_eq!(
        refused.expect_err("no breakpoint").kind(),
        ErrorKind::InvalidConfiguration
    );
}

/// The kernel stops a clock that interrupts more often than it allows, until its next tick; it may allow more
/// than this one asks for.
#[test]
fn throttling_is_told_as_the_records_say() {
    let test = "throttling_is_told_as_the_records_say";
    let spec = SamplerSpec::new([(user(Software::CpuClock), Rate::Period(10_000))]);
    let Some(mut sampler) = open(test, &spec, &Target::CurrentThread) else {
        return;
    };
    let start = Instant::now();
    while start.elapsed() < Duration::from_millis(100) {
        std::hint::spin_loop();
    }
    sampler.disable().expect("stops");
    let (mut times, mut nanoseconds, mut since) = (0, 0, None);
    each_record(&mut sampler, |record, _| match record {
        Record::Throttle(throttle) => {
            times += 1;
            since = Some(throttle.time);
        }
        Record::Unthrottle(throttle) => {
            nanoseconds += since.take().map_or(0, |since| throttle.time - since);
        }
        _ => {}
    });
    let throttled = sampler.throttled(0);
    assert_eq!(
        (throttled.times, throttled.nanoseconds),
        (times, nanoseconds)
    );
    if times == 0 {
        skip(test, "the kernel allows such a rate");
    }
}
