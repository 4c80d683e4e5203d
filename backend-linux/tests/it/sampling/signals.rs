//! Signals: sent when a ring becomes readable, and when a counter has run out.

use quipu_hal::{Software, Target};
use quipu_linux::sampling::{Rate, SamplerSpec, Wakeup};

use super::{open, samples};
use crate::blocked::Blocked;
use crate::machine::{FreshPages, user};

/// `POLL_IN` and `POLL_HUP` (`include/uapi/asm-generic/siginfo.h`).
const POLL_IN: i32 = 1;
const POLL_HUP: i32 = 6;

#[test]
fn each_wakeup_is_a_signal_and_the_last_one_says_so() {
    let name = "each_wakeup_is_a_signal_and_the_last_one_says_so";
    let blocked = Blocked::new(3);
    let mut spec = SamplerSpec::new([(user(Software::PageFaults), Rate::Period(1))]);
    spec.wakeup = Wakeup::Samples(1);
    spec.attributes.disabled = true;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    // SAFETY: the call takes nothing and touches no memory of ours.
    let tid = unsafe { libc::gettid() };
    let counter = sampler.counters()[0].clone();
    counter.signal_thread(tid, blocked.signal).expect("signals");
    counter.refresh(4).expect("refresh");
    FreshPages::map(10).touch();
    assert_eq!(blocked.take_all(), [POLL_IN, POLL_IN, POLL_IN, POLL_HUP]);
    counter.stop_signals().expect("no signals");
    counter.refresh(4).expect("refresh");
    FreshPages::map(10).touch();
    assert_eq!(blocked.take_all(), []);
    assert_eq!(samples(&mut sampler, |_| ()).len(), 8);
    counter
        .signal_thread(tid, 1000)
        .expect_err("no such signal");
}
