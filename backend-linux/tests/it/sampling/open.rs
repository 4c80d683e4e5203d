//! Refusals, and their reasons.

use quipu_hal::{Attributes, ErrorKind, GroupSpec, Software, Target};
use quipu_linux::sampling::{
    AuxAction, BranchSampleType, Rate, SampleType, SamplerFlags, SamplerSpec, WhenFull,
};

use crate::machine::{backend, skip, user};

fn faults(rate: Rate) -> SamplerSpec {
    SamplerSpec::new([(user(Software::PageFaults), rate)])
}

/// The kind and text of a refusal.
fn refusal(test: &str, spec: &SamplerSpec) -> Option<(ErrorKind, String)> {
    let refused = backend(test)?.open_sampler(spec, &Target::CurrentThread);
    let e = refused.expect_err("refused");
    Some((e.kind(), format!("{e:#}")))
}

#[test]
fn nothing_and_never_are_refused() {
    let name = "nothing_and_never_are_refused";
    let nothing = SamplerSpec::new([(Software::PageFaults, Rate::Never); 0]);
    for spec in [nothing, faults(Rate::Period(0)), faults(Rate::Frequency(0))] {
        let Some((kind, text)) = refusal(name, &spec) else {
            return;
        };
        assert_eq!(kind, ErrorKind::InvalidConfiguration, "{text}");
    }
}

#[test]
fn a_frequency_beyond_the_kernels_is_named() {
    let name = "a_frequency_beyond_the_kernels_is_named";
    let Some((kind, text)) = refusal(name, &faults(Rate::Frequency(1 << 40))) else {
        return;
    };
    assert_eq!(kind, ErrorKind::InvalidConfiguration, "{text}");
    assert!(text.contains("kernel.perf_event_max_sample_rate"), "{text}");
    let Some((kind, text)) = refusal(name, &faults(Rate::Period(1 << 63))) else {
        return;
    };
    assert_eq!(kind, ErrorKind::InvalidConfiguration, "{text}");
    assert!(text.contains("2^63"), "{text}");
}

#[test]
fn a_field_that_the_event_cannot_have_is_named() {
    let name = "a_field_that_the_event_cannot_have_is_named";
    let mut spec = faults(Rate::Period(1));
    spec.sample_type |= SampleType::BRANCH_STACK;
    spec.branches = BranchSampleType::ANY | BranchSampleType::USER;
    let Some((kind, text)) = refusal(name, &spec) else {
        return;
    };
    assert_eq!(kind, ErrorKind::UnsupportedFeature, "{text}");
    assert!(text.contains("BRANCH_STACK"), "{text}");
}

#[test]
fn a_flag_that_the_kernel_does_not_know_is_named() {
    let name = "a_flag_that_the_kernel_does_not_know_is_named";
    let mut spec = faults(Rate::Period(1));
    spec.flags = SamplerFlags::DEFER_USER_FRAMES;
    let Some(backend) = backend(name) else { return };
    match backend.open_sampler(&spec, &Target::CurrentThread) {
        Ok(_) => skip(name, "this kernel knows it"),
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::UnsupportedFeature, "{e:#}");
            assert!(e.to_string().contains("defer_callchain"), "{e:#}");
        }
    }
}

#[test]
fn a_ring_that_is_too_large_is_refused() {
    let name = "a_ring_that_is_too_large_is_refused";
    let mut spec = faults(Rate::Period(1));
    for bytes in [1 << 50, usize::MAX] {
        spec.ring_bytes = bytes;
        let Some((kind, text)) = refusal(name, &spec) else {
            return;
        };
        let expected = [
            ErrorKind::InvalidConfiguration,
            ErrorKind::NoPermission,
            ErrorKind::Os,
        ];
        assert!(expected.contains(&kind), "{text}");
        assert!(text.contains("ring"), "{text}");
    }
}

/// Software events have no AUX area, and a ring that overwrites goes with none.
#[test]
fn an_aux_area_that_the_event_does_not_have_is_refused() {
    let name = "an_aux_area_that_the_event_does_not_have_is_refused";
    for (when_full, kind) in [
        (WhenFull::Lose, ErrorKind::UnsupportedFeature),
        (WhenFull::Overwrite, ErrorKind::InvalidConfiguration),
    ] {
        let mut spec = faults(Rate::Period(1));
        spec.when_full = when_full;
        let Some(mut sampler) = super::open(name, &spec, &Target::CurrentThread) else {
            return;
        };
        let ring = &mut sampler.rings_mut()[0];
        let e = ring.map_aux(1 << 16, WhenFull::Lose).expect_err("refused");
        assert_eq!(e.kind(), kind, "{e:#}");
        assert_eq!(ring.aux_capacity(), 0);
        let mut copy = Vec::new();
        ring.copy_aux(&mut copy);
        ring.read_aux(|first, second| first.len() + second.len());
        assert_eq!(copy, []);
    }
}

#[test]
fn values_of_inherited_counters_need_the_thread() {
    let name = "values_of_inherited_counters_need_the_thread";
    let mut spec = faults(Rate::Period(1));
    spec.attributes = Attributes::default().with_inherit(true);
    spec.sample_type = SampleType::IP | SampleType::READ;
    let Some((kind, text)) = refusal(name, &spec) else {
        return;
    };
    assert_eq!(kind, ErrorKind::InvalidConfiguration, "{text}");
    assert!(text.contains("need TID too"), "{text}");
}

#[test]
fn pausing_a_trace_takes_one() {
    let name = "pausing_a_trace_takes_one";
    for action in [AuxAction::StartPaused, AuxAction::Pause, AuxAction::Resume] {
        let mut spec = faults(Rate::Period(1));
        spec.events[0].aux_action = Some(action);
        let Some((kind, text)) = refusal(name, &spec) else {
            return;
        };
        assert_eq!(kind, ErrorKind::UnsupportedFeature, "{text}");
        assert!(
            text.contains("trace") || text.contains("aux_action"),
            "{text}"
        );
    }
}

#[test]
fn attributes_that_contradict_each_other_are_refused() {
    let name = "attributes_that_contradict_each_other_are_refused";
    let threads = Attributes::default().with_inherit_thread(true);
    let both = Attributes::default()
        .with_enable_on_exec(true)
        .with_remove_on_exec(true);
    for attributes in [threads, both] {
        let mut spec = faults(Rate::Period(1));
        spec.attributes = attributes;
        let Some((kind, text)) = refusal(name, &spec) else {
            return;
        };
        assert_eq!(kind, ErrorKind::InvalidConfiguration, "{text}");
        let group = GroupSpec::single(user(Software::PageFaults)).with_attributes(attributes);
        let Some(backend) = backend(name) else { return };
        let e = backend.open_group(&group, &Target::CurrentThread);
        let e = e.expect_err("refused");
        assert_eq!(e.kind(), ErrorKind::InvalidConfiguration, "{e:#}");
        assert!(text.contains(e.reason().expect("a reason")), "{text}");
    }
}
