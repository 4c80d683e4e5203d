//! Samples that are being taken, as records of a `perf.data` file.

use quipu::Filter;
use quipu_hwpmc::{Hwpmc, HwpmcBackend, HwpmcSampler};
use quipu_perf_data::{EventAttr, RecordLayout, RecordedEvent, SampleType};

use quipu_shell::Failure;
use quipu_shell::target::Scope;

use super::plan::Plan;
use super::records::{Records, counter_id};

/// A sampler, and the records that are made of its log.
pub(super) struct Samples {
    pub(super) events: Vec<RecordedEvent>,
    pub(super) sampler: HwpmcSampler<Hwpmc>,
    pub(super) records: Records,
}

impl Samples {
    /// Opens the sampler of a plan; `command` is the process of the command.
    pub(super) fn open(
        plan: &Plan,
        backend: &HwpmcBackend<Hwpmc>,
        command: Option<i32>,
    ) -> Result<Self, Failure> {
        let sampler = plan.open(backend, command)?;
        let events = recorded_events(plan, &sampler)?;
        let layout = events.first().map(|event| event.attr().layout());
        let layout = layout.unwrap_or(RecordLayout::new(SAMPLE_TYPE));
        let awaited = command.filter(|_| plan.scope == Scope::Command);
        Ok(Self {
            records: Records::new(layout, events.len(), awaited),
            events,
            sampler,
        })
    }

    /// Takes what was logged since the last time. Returns the records that were not taken out yet.
    pub(super) fn drain(&mut self) -> Result<&mut Vec<u8>, Failure> {
        let records = &mut self.records;
        self.sampler
            .drain_log(|time, record| records.take(time, record))?;
        Ok(&mut self.records.out)
    }
}

/// The fields of every sample; with call chains these too.
const SAMPLE_TYPE: SampleType = SampleType::IDENTIFIER
    .union(SampleType::IP)
    .union(SampleType::TID)
    .union(SampleType::TIME)
    .union(SampleType::CPU)
    .union(SampleType::PERIOD);

/// Returns the events as perf_event_open(2) would be asked for them: by their words in a select register. The kernel's own
/// have no number there, and are known by their names.
fn recorded_events(
    plan: &Plan,
    sampler: &HwpmcSampler<Hwpmc>,
) -> Result<Vec<RecordedEvent>, Failure> {
    /// `PERF_ATTR_SIZE_VER0`, `PERF_TYPE_RAW`, and `PERF_TYPE_SOFTWARE` with `PERF_COUNT_SW_DUMMY`.
    const SIZE: u32 = 64;
    const RAW: u32 = 4;
    const SOFTWARE: u32 = 1;
    const DUMMY: u32 = 9;
    let mut sample_type = SAMPLE_TYPE;
    sample_type.set(SampleType::CALLCHAIN, plan.spec.call_chains);
    let events = plan.spec.events.iter().zip(sampler.selects());
    events
        .zip(&plan.names)
        .enumerate()
        .map(|(index, (((event, period), select), name))| {
            let levels = event.filter;
            // Bits of `struct perf_event_attr`: inherit, exclude_user, exclude_kernel, mmap, comm, enable_on_exec, task,
            // sample_id_all, mmap2, comm_exec.
            let flags = [
                (1, plan.spec.attributes.inherit),
                (4, !levels.contains(Filter::USER)),
                (5, !levels.contains(Filter::KERNEL)),
                (8, true),
                (9, true),
                (12, plan.scope == Scope::Command),
                (13, true),
                (18, true),
                (23, true),
                (24, true),
            ];
            let flags = flags.iter().filter(|(_, is_set)| *is_set);
            let flags = flags.fold(0u64, |all, (bit, _)| all | 1 << bit);
            let (kind, config) = select.map_or((SOFTWARE, DUMMY), |word| (RAW, word));
            let mut attr = [kind.to_ne_bytes(), SIZE.to_ne_bytes()].concat();
            let read_format = 0;
            let words = [
                u64::from(config),
                *period,
                sample_type.bits(),
                read_format,
                flags,
            ];
            attr.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
            attr.resize(SIZE as usize, 0);
            let attr = EventAttr::from_bytes(&attr)
                .map_err(|e| Failure::new(format_args!("cannot describe {name} in a file: {e}")))?;
            Ok(RecordedEvent::new(
                attr,
                vec![counter_id(index)],
                name.as_str(),
            ))
        })
        .collect()
}
