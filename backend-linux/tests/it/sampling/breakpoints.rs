//! Every call of a function is a sample.

use quipu_hal::{Breakpoint, BreakpointAccess, Target};
use quipu_linux::sampling::{
    Context, CpuMode, Rate, SampleType, SamplerFlags, SamplerSpec, ThreadId,
};

use super::calls::{self, call};
use super::{each_record, open, samples};
use crate::machine::{self, skip, user};

/// A sampler of every execution of the instruction at an address, with call chains of user mode.
pub(crate) fn executions_of(address: u64) -> SamplerSpec {
    let mut spec = SamplerSpec::new([(user(Breakpoint::execute(address)), Rate::Period(1))]);
    spec.sample_type |= SampleType::CALLCHAIN | SampleType::PERIOD;
    spec.flags = SamplerFlags::NO_KERNEL_FRAMES;
    // Nothing is read before all of it is there.
    spec.ring_bytes = 1 << 20;
    spec
}

/// The frames of each sample, outermost three at most.
fn chains(test: &str, address: u64) -> Option<Vec<Vec<u64>>> {
    let _alone = machine::debug_registers();
    let mut sampler = open(test, &executions_of(address), &Target::CurrentThread)?;
    call(1000);
    let chains = samples(&mut sampler, |sample| {
        assert_eq!(sample.ip(), Some(address));
        assert_eq!(sample.period(), Some(1));
        assert_eq!(sample.misc().cpu_mode(), CpuMode::User);
        let frames = sample.callchain().expect("asked for").frames();
        frames
            .map(|frame| {
                assert_eq!(frame.context, Context::User);
                frame.address
            })
            .take(3)
            .collect()
    });
    assert_eq!(sampler.rings()[0].losses().records, 0);
    Some(chains)
}

#[test]
fn a_function_called_1000_times_gives_1000_samples() {
    let name = "a_function_called_1000_times_gives_1000_samples";
    let Some(chains) = chains(name, calls::leaf()) else {
        return;
    };
    assert_eq!(chains.len(), 1000);
    if !calls::FRAMES_ARE_KNOWN {
        return skip(name, "the frames are not known on this architecture");
    }
    // Its frame is not there yet, so the one it was called from is not either.
    for chain in chains {
        assert_eq!(chain[..2], [calls::leaf(), calls::in_outer()]);
    }
}

#[test]
fn after_the_prologue_the_direct_caller_is_in_the_chain() {
    let name = "after_the_prologue_the_direct_caller_is_in_the_chain";
    let Some(chains) = chains(name, calls::leaf_body()) else {
        return;
    };
    assert_eq!(chains.len(), 1000);
    if !calls::FRAMES_ARE_KNOWN {
        return skip(name, "the frames are not known on this architecture");
    }
    for chain in chains {
        let expected = [calls::leaf_body(), calls::in_caller(), calls::in_outer()];
        assert_eq!(chain, expected);
    }
}

#[test]
fn samples_say_when_and_by_whom_in_order() {
    let name = "samples_say_when_and_by_whom_in_order";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    spec.clock = Some(libc::CLOCK_MONOTONIC);
    spec.sample_type |= SampleType::CPU | SampleType::ID | SampleType::STREAM_ID;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let before = now();
    call(10);
    let after = now();
    // SAFETY: the call takes nothing and touches no memory of ours.
    let tid = unsafe { libc::gettid() };
    let own = ThreadId {
        pid: std::process::id().cast_signed(),
        tid,
    };
    let id = sampler.counters()[0].id();
    let online = quipu_linux::topology::Topology::new()
        .online()
        .expect("CPUs");
    let times = samples(&mut sampler, |sample| {
        assert_eq!(sample.thread(), Some(own));
        assert_eq!((sample.id(), sample.stream_id()), (Some(id), Some(id)));
        assert!(online.contains(&sample.cpu().expect("asked for")));
        sample.time().expect("asked for")
    });
    assert_eq!(times.len(), 10);
    assert!(times.is_sorted(), "{times:?}");
    assert!(before <= times[0] && times[9] <= after);
    assert_eq!(sampler.event_of(id), Some(0));
    assert_eq!(sampler.event_of(id ^ 1 << 40), None);
}

/// Nanoseconds of `CLOCK_MONOTONIC`.
fn now() -> u64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes a timespec through the pointer, which is to a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

#[test]
fn a_write_gives_the_address_written_to() {
    let name = "a_write_gives_the_address_written_to";
    let _alone = machine::debug_registers();
    let mut variable = 0u64;
    let address = &raw mut variable;
    let writes = user(Breakpoint {
        address: address as u64,
        len: 8,
        access: BreakpointAccess::Write,
    });
    let mut spec = SamplerSpec::new([(writes, Rate::Period(1))]);
    spec.sample_type = SampleType::ADDR;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    for i in 0..100 {
        // SAFETY: `variable` is alive and nothing else refers to it.
        unsafe { address.write_volatile(i) };
    }
    let addresses = samples(&mut sampler, |sample| sample.addr());
    assert_eq!(addresses, [Some(address as u64); 100]);
}

/// Once in 7 calls, and what is left over is kept.
#[test]
fn a_period_of_seven_samples_every_seventh_call() {
    let name = "a_period_of_seven_samples_every_seventh_call";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    spec.events[0].rate = Rate::Period(7);
    spec.sample_type = SampleType::READ;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(70);
    let values = samples(&mut sampler, |sample| {
        let values = sample.values().expect("asked for");
        assert!(values.time_running() > Some(0));
        values.get(0).expect("one counter").value
    });
    let expected: Vec<u64> = (1..=10).map(|i| 7 * i).collect();
    assert_eq!(values, expected);
    call(6);
    assert_eq!(samples(&mut sampler, |_| ()), []);
    call(1);
    assert_eq!(samples(&mut sampler, |_| ()), [()]);
}

/// The kernel's own rule for events that it counts itself.
#[test]
fn with_the_period_in_it_every_event_is_a_sample() {
    let name = "with_the_period_in_it_every_event_is_a_sample";
    let _alone = machine::debug_registers();
    let mut spec = executions_of(calls::leaf());
    spec.events[0].rate = Rate::Period(7);
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    call(70);
    let periods = samples(&mut sampler, |sample| sample.period());
    assert_eq!(periods, [Some(1); 70]);
}

/// Two breakpoints on one thread share a ring, and their records say which is which.
#[test]
fn two_events_share_a_ring_and_are_told_apart() {
    let name = "two_events_share_a_ring_and_are_told_apart";
    let _alone = machine::debug_registers();
    let at = |address| (user(Breakpoint::execute(address)), Rate::Period(1));
    let spec = SamplerSpec::new([at(calls::leaf()), at(calls::leaf_body())]);
    if calls::leaf() == calls::leaf_body() {
        return skip(name, "the frames are not known on this architecture");
    }
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    assert_eq!(sampler.rings().len(), 1);
    call(50);
    let mut seen = Vec::new();
    each_record(&mut sampler, |record, _| {
        if let quipu_linux::sampling::Record::Sample(sample) = record {
            seen.push((sample.id(), sample.ip()));
        }
    });
    let events: Vec<_> = seen
        .iter()
        .map(|(id, ip)| (sampler.event_of(id.expect("added")), ip.expect("asked for")))
        .collect();
    let each = [(Some(0), calls::leaf()), (Some(1), calls::leaf_body())];
    assert_eq!(events, each.repeat(50));
}
