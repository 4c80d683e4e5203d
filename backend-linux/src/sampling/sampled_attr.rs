//! The `perf_event_attr` of a sampled event.

use quipu_perf_data::{RecordLayout, SampleType};

use super::spec::{AuxAction, ExtraRecords, Rate, SamplerFlags, SamplerSpec, Wakeup, WhenFull};
use crate::events::{EventBits, exclusions};
use crate::group::open_part::following;
use crate::sys::{AttrFlags, PerfEventAttr, ReadFormat};

/// Returns the layout of the records that a spec asks for.
pub(super) fn layout(spec: &SamplerSpec, read_format: ReadFormat) -> RecordLayout {
    let mut sample_type = spec.sample_type;
    if spec.events.len() > 1 {
        sample_type |= SampleType::IDENTIFIER;
    }
    RecordLayout::new(sample_type)
        .with_read_format(read_format)
        .with_branches(spec.branches)
        .with_registers(spec.user_registers, spec.interrupt_registers)
        .with_sample_id_all(spec.sample_id_all)
}

/// The attr of the event at position `index`, which does not count yet.
///
/// Returns the attr of one event. The attributes of a whole group are its leader's, and only the first
/// event writes the records beside samples.
pub(super) fn attr(
    spec: &SamplerSpec,
    index: usize,
    bits: EventBits,
    precise_ip: u8,
    layout: &RecordLayout,
) -> PerfEventAttr {
    let event = &spec.events[index];
    let attributes = spec.attributes;
    let mut flags = exclusions(event.event.filter)
        | AttrFlags::precise_ip(precise_ip)
        | differences(spec.flags);
    if index == 0 {
        flags |= extra_records(spec.extra_records);
    }
    if !event.is_member {
        flags |= AttrFlags::DISABLED;
        flags.set(AttrFlags::PINNED, attributes.pinned);
        flags.set(AttrFlags::EXCLUSIVE, attributes.exclusive);
        flags.set(AttrFlags::ENABLE_ON_EXEC, attributes.enable_on_exec);
    }
    if spec.flags.contains(SamplerFlags::AUX_OUTPUT) && index > 0 {
        flags |= AttrFlags::AUX_OUTPUT;
    }
    flags |= following(attributes);
    flags.set(AttrFlags::SAMPLE_ID_ALL, spec.sample_id_all);
    flags.set(AttrFlags::USE_CLOCKID, spec.clock.is_some());
    flags.set(
        AttrFlags::WRITE_BACKWARD,
        spec.when_full == WhenFull::Overwrite,
    );
    let sample_period = match event.rate {
        Rate::Period(period) => period,
        Rate::Frequency(frequency) => {
            flags |= AttrFlags::FREQ;
            frequency
        }
        Rate::Never => 0,
    };
    let wakeup_events = match spec.wakeup {
        Wakeup::HalfFull => 0,
        Wakeup::Samples(samples) => samples,
        Wakeup::Bytes(bytes) => {
            flags |= AttrFlags::WATERMARK;
            bytes
        }
    };
    if spec.trap.is_some() {
        flags |= AttrFlags::SIGTRAP | AttrFlags::REMOVE_ON_EXEC;
    }
    PerfEventAttr {
        sample_period,
        sample_type: layout.sample_type().bits(),
        read_format: layout.read_format(),
        flags,
        wakeup_events,
        branch_sample_type: spec.branches.bits(),
        sample_regs_user: spec.user_registers,
        sample_stack_user: spec.user_stack,
        clockid: spec.clock.unwrap_or(0),
        sample_regs_intr: spec.interrupt_registers,
        aux_watermark: spec.aux_wakeup,
        sample_max_stack: spec.max_frames,
        aux_sample_size: spec.aux_bytes,
        aux_action: event.aux_action.map_or(0, aux_action),
        sig_data: spec.trap.unwrap_or(0),
        ..bits.attr()
    }
}

fn differences(asked: SamplerFlags) -> AttrFlags {
    use SamplerFlags as S;
    translate(
        asked,
        &[
            (S::NO_KERNEL_FRAMES, AttrFlags::EXCLUDE_CALLCHAIN_KERNEL),
            (S::NO_USER_FRAMES, AttrFlags::EXCLUDE_CALLCHAIN_USER),
            (S::DEFER_USER_FRAMES, AttrFlags::DEFER_CALLCHAIN),
            (S::THREAD_COUNTS, AttrFlags::INHERIT_STAT),
        ],
    )
}

/// Returns the bit-field of an action, which C numbers from the other end on big-endian machines.
fn aux_action(action: AuxAction) -> u32 {
    let bit = match action {
        AuxAction::StartPaused => 0,
        AuxAction::Pause => 1,
        AuxAction::Resume => 2,
    };
    match cfg!(target_endian = "big") {
        true => 1 << (31 - bit),
        false => 1 << bit,
    }
}

fn extra_records(asked: ExtraRecords) -> AttrFlags {
    // `mmap2` changes the records that `mmap` asks for.
    let mappings = AttrFlags::MMAP | AttrFlags::MMAP2;
    // An event of a CPU gets records of what threads do only if it asks for one of the kinds that `is_sb_event` lists
    // (`kernel/events/core.c`); namespaces and cgroups are not in that list. `comm_exec` is, and by itself brings no records.
    let of_cpus = AttrFlags::COMM_EXEC;
    translate(
        asked,
        &[
            (ExtraRecords::MAPPINGS, mappings),
            (ExtraRecords::DATA_MAPPINGS, mappings | AttrFlags::MMAP_DATA),
            (ExtraRecords::BUILD_IDS, mappings | AttrFlags::BUILD_ID),
            (ExtraRecords::NAMES, AttrFlags::COMM | AttrFlags::COMM_EXEC),
            (ExtraRecords::TASKS, AttrFlags::TASK),
            (ExtraRecords::SWITCHES, AttrFlags::CONTEXT_SWITCH),
            (ExtraRecords::NAMESPACES, AttrFlags::NAMESPACES | of_cpus),
            (ExtraRecords::KSYMBOLS, AttrFlags::KSYMBOL),
            (ExtraRecords::BPF_PROGRAMS, AttrFlags::BPF_EVENT),
            (ExtraRecords::CGROUPS, AttrFlags::CGROUP | of_cpus),
            (ExtraRecords::TEXT_POKES, AttrFlags::TEXT_POKE),
            (ExtraRecords::DEFERRED_CALLCHAINS, AttrFlags::DEFER_OUTPUT),
        ],
    )
}

/// The kernel's flags for ours.
fn translate<F: bitflags::Flags + Copy>(asked: F, table: &[(F, AttrFlags)]) -> AttrFlags {
    let set = table.iter().filter(|(flag, _)| asked.contains(*flag));
    set.fold(AttrFlags::empty(), |all, (_, flags)| all | *flags)
}

#[cfg(test)]
mod tests {
    use super::*;
    use quipu_hal::{Attributes, Software};

    fn spec() -> SamplerSpec {
        let rates = [Rate::Frequency(99), Rate::Period(7), Rate::Never];
        SamplerSpec::new(rates.map(|rate| (Software::PageFaults, rate)))
    }

    fn attr_of(spec: &SamplerSpec, index: usize) -> PerfEventAttr {
        let bits = EventBits::software(Software::PageFaults);
        let layout = layout(spec, spec.read_format);
        attr(spec, index, bits, 0, &layout)
    }

    #[test]
    fn a_rate_is_a_period_or_a_frequency() {
        let spec = spec();
        let rate = |i| {
            let attr = attr_of(&spec, i);
            (attr.sample_period, attr.flags.contains(AttrFlags::FREQ))
        };
        assert_eq!(
            [rate(0), rate(1), rate(2)],
            [(99, true), (7, false), (0, false)]
        );
    }

    #[test]
    fn the_first_event_writes_the_other_records() {
        let mut spec = spec();
        spec.extra_records = ExtraRecords::all();
        let all = AttrFlags::MMAP
            | AttrFlags::MMAP2
            | AttrFlags::MMAP_DATA
            | AttrFlags::BUILD_ID
            | AttrFlags::COMM
            | AttrFlags::COMM_EXEC
            | AttrFlags::TASK
            | AttrFlags::CONTEXT_SWITCH
            | AttrFlags::NAMESPACES
            | AttrFlags::KSYMBOL
            | AttrFlags::BPF_EVENT
            | AttrFlags::CGROUP
            | AttrFlags::TEXT_POKE
            | AttrFlags::DEFER_OUTPUT;
        assert!(attr_of(&spec, 0).flags.contains(all));
        assert!(!attr_of(&spec, 1).flags.intersects(all));
    }

    /// Without `comm_exec` the kernel would send neither to an event of a CPU.
    #[test]
    fn namespaces_and_cgroups_alone_are_asked_for_so_that_they_come() {
        let mut spec = spec();
        for (records, flag) in [
            (ExtraRecords::NAMESPACES, AttrFlags::NAMESPACES),
            (ExtraRecords::CGROUPS, AttrFlags::CGROUP),
        ] {
            spec.extra_records = records;
            let extra = extra_records(records);
            assert_eq!(extra, flag | AttrFlags::COMM_EXEC);
            assert!(attr_of(&spec, 0).flags.contains(extra));
        }
    }

    /// The bits of `include/uapi/linux/perf_event.h` since 6.13.
    #[test]
    #[cfg(target_endian = "little")]
    fn an_action_on_a_trace_is_that_of_its_event_alone() {
        let mut spec = spec();
        spec.events[0].aux_action = Some(AuxAction::StartPaused);
        spec.events[1].aux_action = Some(AuxAction::Resume);
        spec.events[2].aux_action = Some(AuxAction::Pause);
        let bytes = |i| attr_of(&spec, i).bytes()[116..120].to_vec();
        assert_eq!([bytes(0), bytes(1), bytes(2)].map(|b| b[0]), [1, 4, 2]);
        spec.events[1].aux_action = None;
        assert_eq!(attr_of(&spec, 1).aux_action, 0);
    }

    #[test]
    fn members_of_a_group_start_with_their_leader() {
        let mut spec = spec();
        spec.attributes = Attributes::default()
            .with_pinned(true)
            .with_exclusive(true)
            .with_enable_on_exec(true);
        let leaders = AttrFlags::DISABLED
            | AttrFlags::PINNED
            | AttrFlags::EXCLUSIVE
            | AttrFlags::ENABLE_ON_EXEC;
        assert!(attr_of(&spec, 1).flags.contains(leaders));
        spec.events[1].is_member = true;
        assert!(attr_of(&spec, 0).flags.contains(leaders));
        assert!(!attr_of(&spec, 1).flags.intersects(leaders));
    }

    #[test]
    fn every_option_has_its_place() {
        let mut spec = spec();
        spec.sample_type = SampleType::IP;
        spec.branches = quipu_perf_data::BranchSampleType::ANY;
        spec.user_registers = 1;
        spec.interrupt_registers = 2;
        spec.user_stack = 3;
        spec.max_frames = 4;
        spec.aux_bytes = 5;
        spec.aux_wakeup = 6;
        spec.clock = Some(7);
        spec.trap = Some(8);
        spec.wakeup = Wakeup::Bytes(9);
        spec.when_full = WhenFull::Overwrite;
        spec.flags = SamplerFlags::all();
        spec.attributes = Attributes::default().with_inherit_thread(true);
        spec.sample_id_all = false;
        let attr = attr_of(&spec, 1);
        let sample_type = SampleType::IP | SampleType::IDENTIFIER;
        assert_eq!(attr.sample_type, sample_type.bits());
        assert_eq!(attr.branch_sample_type, 8);
        assert_eq!((attr.sample_regs_user, attr.sample_regs_intr), (1, 2));
        assert_eq!((attr.sample_stack_user, attr.sample_max_stack), (3, 4));
        assert_eq!((attr.aux_sample_size, attr.aux_watermark), (5, 6));
        assert_eq!((attr.clockid, attr.sig_data, attr.wakeup_events), (7, 8, 9));
        let flags = AttrFlags::USE_CLOCKID
            | AttrFlags::SIGTRAP
            | AttrFlags::REMOVE_ON_EXEC
            | AttrFlags::WATERMARK
            | AttrFlags::WRITE_BACKWARD
            | AttrFlags::EXCLUDE_CALLCHAIN_KERNEL
            | AttrFlags::EXCLUDE_CALLCHAIN_USER
            | AttrFlags::DEFER_CALLCHAIN
            | AttrFlags::INHERIT_STAT
            | AttrFlags::INHERIT_THREAD
            | AttrFlags::AUX_OUTPUT
            | AttrFlags::DISABLED;
        assert_eq!(attr.flags, flags);
    }
}
