//! Page faults: the addresses that were touched.

use quipu_hal::{Software, Target};
use quipu_linux::sampling::{Rate, SampleType, SamplerSpec};

use super::{open, samples};
use crate::machine::{FreshPages, page_size, user};

#[test]
fn page_faults_give_the_addresses_touched() {
    let name = "page_faults_give_the_addresses_touched";
    let mut spec = SamplerSpec::new([(user(Software::PageFaults), Rate::Period(1))]);
    spec.sample_type = SampleType::ADDR;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    let pages = FreshPages::map(100);
    pages.touch();
    sampler.disable().expect("disable");
    let (start, end) = pages.range();
    // The code that touches them may fault as well, elsewhere.
    let mut touched = samples(&mut sampler, |sample| sample.addr().expect("asked for"));
    touched.retain(|address| (start..end).contains(address));
    let expected: Vec<u64> = (start..end).step_by(page_size()).collect();
    assert_eq!(touched, expected);
}

/// The size of the page and its physical address come with other events than the kernel's own; what
/// is asked for is there, even if it says nothing.
#[test]
fn every_field_that_is_asked_for_is_there() {
    let name = "every_field_that_is_asked_for_is_there";
    let mut spec = SamplerSpec::new([(user(Software::PageFaults), Rate::Period(1))]);
    spec.sample_type =
        SampleType::all() - SampleType::BRANCH_STACK - SampleType::AUX - SampleType::WEIGHT;
    spec.user_registers = 0b11;
    spec.interrupt_registers = 0b101;
    spec.user_stack = 256;
    let Some(mut sampler) = open(name, &spec, &Target::CurrentThread) else {
        return;
    };
    FreshPages::map(10).touch();
    sampler.disable().expect("disable");
    let seen = samples(&mut sampler, |sample| {
        let user = sample.user_registers().expect("a thread of a program");
        assert!(user.get(0).is_some() && user.get(1).is_some() && user.get(2).is_none());
        let interrupt = sample.interrupt_registers().expect("taken in user mode");
        assert_eq!(interrupt.get(0), user.get(0));
        assert_eq!(interrupt.values().len(), 2);
        let stack = sample.user_stack().expect("asked for");
        assert!(!stack.bytes().is_empty() && stack.bytes().len() <= stack.capacity());
        assert!(sample.weight().is_some() && sample.data_source().is_some());
        assert!(sample.transaction().is_some() && sample.physical_address().is_some());
        assert!(sample.data_page_size().is_some() && sample.code_page_size().is_some());
        assert!(sample.cgroup() > Some(0), "every thread is in one");
        assert!(sample.raw().is_some() && sample.callchain().is_some());
        assert!(sample.branches().is_none() && sample.aux().is_none());
        assert!(format!("{sample:?}").contains("physical_address"));
    });
    assert!(seen.len() >= 10, "{}", seen.len());
}
