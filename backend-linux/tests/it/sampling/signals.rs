//! Signals: sent when a ring becomes readable, and when a counter has run out.

use quipu_hal::{Software, Target};
use quipu_linux::sampling::{Rate, SamplerSpec, Wakeup};

use super::{open, samples};
use crate::machine::{FreshPages, user};

/// `POLL_IN` and `POLL_HUP` (`include/uapi/asm-generic/siginfo.h`).
const POLL_IN: i32 = 1;
const POLL_HUP: i32 = 6;

/// The codes of the signals that are pending for this thread, taken one by one.
fn pending(set: &libc::sigset_t) -> Vec<i32> {
    let mut codes = Vec::new();
    let no_time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    loop {
        // SAFETY: an all-zero siginfo_t is one; the kernel fills it through the pointer, which is to
        // a live local.
        let (signal, info) = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            let signal = libc::sigtimedwait(set, &raw mut info, &raw const no_time);
            (signal, info)
        };
        if signal < 0 {
            return codes;
        }
        codes.push(info.si_code);
    }
}

#[test]
fn each_wakeup_is_a_signal_and_the_last_one_says_so() {
    let name = "each_wakeup_is_a_signal_and_the_last_one_says_so";
    let signal = libc::SIGRTMIN() + 3;
    // SAFETY: an all-zero sigset_t is made an empty one; the calls write only to it and to the
    // signal mask of this thread.
    let set = unsafe {
        let mut set: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        libc::sigaddset(&raw mut set, signal);
        libc::pthread_sigmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut());
        set
    };
    let mut spec = SamplerSpec::new([(user(Software::PageFaults), Rate::Period(1))]);
    spec.wakeup = Wakeup::Samples(1);
    spec.attributes.disabled = true;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    // SAFETY: the call takes nothing and touches no memory of ours.
    let tid = unsafe { libc::gettid() };
    let counter = sampler.counters()[0].clone();
    counter.signal_thread(tid, signal).expect("signals");
    counter.refresh(4).expect("refresh");
    FreshPages::map(10).touch();
    assert_eq!(pending(&set), [POLL_IN, POLL_IN, POLL_IN, POLL_HUP]);
    counter.stop_signals().expect("no signals");
    counter.refresh(4).expect("refresh");
    FreshPages::map(10).touch();
    assert_eq!(pending(&set), []);
    assert_eq!(samples(&mut sampler, |_| ()).len(), 8);
    counter
        .signal_thread(tid, 1000)
        .expect_err("no such signal");
}
