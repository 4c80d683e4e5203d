//! Times off the CPU: samples that the kernel takes where a thread leaves its CPU are kept until the thread is on one again, and
//! then stand for the nanoseconds between. Who may not sample the kernel has the times alone, by the records of switches.

use std::collections::{HashMap, HashSet};

use quipu::{EventSpec, Filter, Software};
use quipu_linux::sampling::record::kind;
use quipu_linux::sampling::{
    BranchSampleType, Rate, RawRecord, Record, RecordLayout, Sample, SampleId, SampleType,
    SampledEvent, Sampler,
};
use quipu_perf_data::record::SwitchDirection;
use quipu_perf_data::{Context, Frame};

/// The name of the event, as perf has it.
pub(super) const NAME: &str = "offcpu-time";

/// Returns the event that has the kernel take a sample of each thread that leaves its CPU, in the scheduler.
pub(super) fn event() -> SampledEvent {
    let event = EventSpec::new(Software::ContextSwitches)
        .with_filter(Filter::USER_ONLY.with_levels(Filter::KERNEL));
    SampledEvent::new(event, Rate::Period(1))
}

/// Returns the event that stands for times without samples of the kernel's: it never happens.
pub(super) fn event_of_times_alone() -> SampledEvent {
    let event = EventSpec::new(Software::Dummy).with_filter(Filter::USER_ONLY);
    SampledEvent::new(event, Rate::Never)
}

/// The threads that are off their CPUs, and what is known of others but not yet in the order of time.
#[derive(Debug, Default)]
pub(super) struct OffCpu {
    /// The ids of the counters of the event.
    ids: HashSet<u64>,
    /// The id of a counter of the event, where the kernel takes no samples of it.
    times_alone: Option<u64>,
    /// True if the records of context switches are wanted too.
    keeps_switches: bool,
    /// Sleeping threads by their ids: the time at which each left its CPU, and the sample of it.
    sleeping: HashMap<u32, (u64, Vec<u8>)>,
    seen: Vec<SeenRecord>,
    /// The newest time of this round. Whatever comes in the next one is newer than that of the round before.
    newest: u64,
    newest_before: u64,
}

/// Change of a thread at a time.
#[derive(Debug)]
struct SeenRecord {
    time: u64,
    thread: u32,
    what: What,
}

#[derive(Debug)]
enum What {
    /// It left its CPU, with this sample.
    Left(Vec<u8>),
    /// It is on a CPU.
    Back,
    /// It did not sleep: it could have gone on, or has begun just now.
    Runnable,
    /// Nothing is known of any thread: records were lost.
    Lost,
}

impl OffCpu {
    /// Begins with the samplers that are open, whose event number `event` it is: with samples, or for times alone.
    pub(super) fn new(
        samplers: &[Sampler],
        (event, rate): (usize, Rate),
        keeps_switches: bool,
    ) -> Self {
        let counters = samplers.iter().flat_map(Sampler::counters);
        let own = counters.filter(|counter| counter.event() == event);
        let ids: HashSet<u64> = own.map(|counter| counter.id()).collect();
        let first = ids.iter().next().copied();
        Self {
            times_alone: first.filter(|_| rate == Rate::Never),
            ids,
            keeps_switches,
            ..Self::default()
        }
    }

    /// Takes note of a record; returns true if it is part of the recording as it is.
    ///
    /// # Errors
    /// When it is none that the kernel can have written.
    pub(super) fn take(
        &mut self,
        record: &RawRecord<'_>,
        layout: &RecordLayout,
    ) -> quipu::Result<bool> {
        let (time, thread, what, is_kept) = match record.kind() {
            kind::SAMPLE => {
                let is_own = record.identifier().is_some_and(|id| self.ids.contains(&id));
                if !is_own {
                    return Ok(true);
                }
                let Record::Sample(sample) = record.decode(layout)? else {
                    return Ok(true);
                };
                if !is_of_user(&sample) {
                    return Ok(false);
                }
                let thread = sample.thread().map(|thread| thread.tid);
                let left = What::Left(user_part(record, &sample, layout.sample_type()));
                (sample.time(), thread, left, false)
            }
            kind::SWITCH | kind::SWITCH_CPU_WIDE | kind::FORK | kind::LOST => {
                let trailer = record.sample_id(layout).unwrap_or_default();
                let of = trailer.thread.map(|thread| thread.tid);
                let (thread, what) = match record.decode(layout)? {
                    Record::Switch(switch) => match switch.direction {
                        SwitchDirection::In => (of, What::Back),
                        SwitchDirection::OutPreempted => (of, What::Runnable),
                        SwitchDirection::Out if self.times_alone.is_some() => {
                            let id = self.times_alone.unwrap_or_default();
                            (of, What::Left(without_callers(&trailer, id, layout)))
                        }
                        _ => return Ok(self.keeps_switches),
                    },
                    Record::Fork(task) => (Some(task.thread.tid), What::Runnable),
                    _ => (of, What::Lost),
                };
                let is_switch = matches!(record.kind(), kind::SWITCH | kind::SWITCH_CPU_WIDE);
                (
                    trailer.time,
                    thread,
                    what,
                    self.keeps_switches || !is_switch,
                )
            }
            _ => return Ok(true),
        };
        if let (Some(time), Some(thread)) = (time, thread) {
            self.newest = self.newest.max(time);
            let thread = thread.cast_unsigned();
            self.seen.push(SeenRecord { time, thread, what });
        }
        Ok(is_kept)
    }

    /// Ends a round, in which every ring was read once; returns the samples of threads that were back before the end of the
    /// round before it. A further round, in which nothing is read, gives the others.
    pub(super) fn finish_round(&mut self, sample_type: SampleType) -> Vec<Vec<u8>> {
        let mut samples = Vec::new();
        self.seen.sort_by_key(|seen| seen.time);
        let known = self
            .seen
            .partition_point(|seen| seen.time <= self.newest_before);
        for SeenRecord { time, thread, what } in self.seen.drain(..known) {
            match what {
                What::Left(sample) => {
                    self.sleeping.insert(thread, (time, sample));
                }
                What::Back => {
                    if let Some((left, mut sample)) = self.sleeping.remove(&thread) {
                        set(&mut sample, sample_type, SampleType::TIME, time);
                        set(&mut sample, sample_type, SampleType::PERIOD, time - left);
                        samples.push(sample);
                    }
                }
                What::Runnable => {
                    self.sleeping.remove(&thread);
                }
                What::Lost => self.sleeping.clear(),
            }
        }
        self.newest_before = self.newest;
        samples
    }
}

/// Returns true for a sample of a thread of a program, false for one of the kernel's own.
fn is_of_user(sample: &Sample<'_>) -> bool {
    let frames = sample
        .callchain()
        .into_iter()
        .flat_map(|chain| chain.frames());
    let has_registers = sample.user_registers().is_some_and(|all| all.mask() != 0);
    has_registers
        || frames
            .into_iter()
            .any(|frame| frame.context == Context::User)
}

/// Returns a sample as one of the program, without the kernel's way into the scheduler, which is the same for all: as perf's
/// samples of this event are.
fn user_part(record: &RawRecord<'_>, sample: &Sample<'_>, sample_type: SampleType) -> Vec<u8> {
    /// With `PERF_CONTEXT_USER_DEFERRED`.
    const USER: [u64; 2] = [Context::USER_MARKER, -640_i64 as u64];
    /// `PERF_RECORD_MISC_CPUMODE_MASK` and `PERF_RECORD_MISC_USER`.
    const MODES: u8 = 7;
    const USER_MODE: u8 = 2;
    let mut bytes = record.bytes().to_vec();
    let mut first = None;
    if let Some(chain) = sample.callchain() {
        let entries = chain.entries();
        let kernel = entries.iter().position(|entry| USER.contains(&entry));
        let kernel = kernel.unwrap_or(entries.len());
        let start = entries.bytes().as_ptr().addr() - record.bytes().as_ptr().addr();
        let count = entries.len() - kernel;
        bytes[start - 8..start].copy_from_slice(&(count as u64).to_ne_bytes());
        bytes.drain(start..start + 8 * kernel);
        let size = bytes.len() as u16;
        bytes[6..8].copy_from_slice(&size.to_ne_bytes());
        let of_user = |frame: &Frame| frame.context == Context::User;
        first = chain.frames().find(of_user).map(|frame| frame.address);
    }
    // The numbers of the registers (`arch/x86/include/uapi/asm/perf_regs.h`, arm64's).
    let program_counter = if cfg!(target_arch = "x86_64") { 8 } else { 32 };
    let registers = || sample.user_registers()?.get(program_counter);
    if let Some(ip) = first.or_else(registers)
        && sample_type.contains(SampleType::IP)
    {
        set(&mut bytes, sample_type, SampleType::IP, ip);
        bytes[4] = bytes[4] & !MODES | USER_MODE;
    }
    bytes
}

/// Returns a sample in user mode of which only the thread and the times are known.
fn without_callers(trailer: &SampleId, id: u64, layout: &RecordLayout) -> Vec<u8> {
    /// `PERF_RECORD_MISC_USER`.
    const USER_MODE: u16 = 2;
    let sample_type = layout.sample_type();
    let thread = trailer
        .thread
        .map_or([-1, -1], |thread| [thread.pid, thread.tid]);
    let [pid, tid] = thread.map(i32::to_ne_bytes);
    let cpu = trailer.cpu.unwrap_or_default().to_ne_bytes();
    let word = |number: u64| number.to_ne_bytes().to_vec();
    let branches = match layout.branch_sample_type() {
        with if with.contains(BranchSampleType::HW_INDEX) => [0; 16].to_vec(),
        _ => word(0),
    };
    // In the order of the fields (`perf_event_open(2)`): those of varying length are empty, but raw data has its padding.
    let fields = [
        (SampleType::IDENTIFIER, word(id)),
        (SampleType::IP, word(0)),
        (SampleType::TID, [pid, tid].concat()),
        (SampleType::TIME, word(0)),
        (SampleType::ADDR, word(0)),
        (SampleType::ID, word(id)),
        (SampleType::STREAM_ID, word(id)),
        (SampleType::CPU, [cpu, [0; 4]].concat()),
        (SampleType::PERIOD, word(0)),
        (SampleType::CALLCHAIN, word(0)),
        (SampleType::RAW, [4_u32.to_ne_bytes(), [0; 4]].concat()),
        (SampleType::BRANCH_STACK, branches),
        (SampleType::REGS_USER, word(0)),
        (SampleType::STACK_USER, word(0)),
    ];
    let fields = fields
        .into_iter()
        .filter(|(field, _)| sample_type.contains(*field));
    let body: Vec<u8> = fields.flat_map(|(_, bytes)| bytes).collect();
    let mut sample = kind::SAMPLE.to_ne_bytes().to_vec();
    sample.extend_from_slice(&USER_MODE.to_ne_bytes());
    sample.extend_from_slice(&(8 + body.len() as u16).to_ne_bytes());
    sample.extend_from_slice(&body);
    sample
}

/// Sets one of the fields that every sample of a type has at the same place.
fn set(sample: &mut [u8], sample_type: SampleType, field: SampleType, value: u64) {
    const HEADER: usize = 8;
    /// The order of the fields (`perf_event_open(2)`), 8 bytes each.
    const FIELDS: [SampleType; 9] = [
        SampleType::IDENTIFIER,
        SampleType::IP,
        SampleType::TID,
        SampleType::TIME,
        SampleType::ADDR,
        SampleType::ID,
        SampleType::STREAM_ID,
        SampleType::CPU,
        SampleType::PERIOD,
    ];
    let before = FIELDS.into_iter().take_while(|other| *other != field);
    let at = HEADER + 8 * before.filter(|other| sample_type.contains(*other)).count();
    if let Some(place) = sample.get_mut(at..at + 8) {
        place.copy_from_slice(&value.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u64 = 5;
    const USER: u64 = -512_i64 as u64;
    const OUT: u16 = 1 << 13;
    const PREEMPTED: u16 = OUT | 1 << 14;

    fn layout() -> RecordLayout {
        use SampleType as S;
        RecordLayout::new(S::IDENTIFIER | S::TID | S::TIME | S::PERIOD | S::CALLCHAIN)
            .with_sample_id_all(true)
    }

    fn record(of: u32, misc: u16, words: &[u64]) -> Vec<u8> {
        let mut bytes = of.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend((8 + 8 * words.len() as u16).to_ne_bytes());
        bytes.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        bytes
    }

    /// Two numbers of 32 bits in one word.
    fn pair(first: u32, second: u32) -> u64 {
        let [a, b] = [first, second].map(u32::to_ne_bytes);
        u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
    }

    fn left(thread: u32, time: u64) -> Vec<u8> {
        record(
            kind::SAMPLE,
            1,
            &[ID, pair(1, thread), time, 1, 2, USER, 0x1000],
        )
    }

    fn switch(thread: u32, time: u64, misc: u16) -> Vec<u8> {
        record(kind::SWITCH, misc, &[pair(1, thread), time, ID])
    }

    /// Returns the thread, the time and the period of each sample that rounds of records give.
    fn times(rounds: &[&[Vec<u8>]]) -> Vec<(i32, u64, u64)> {
        let off_cpu = OffCpu {
            ids: HashSet::from([ID]),
            ..OffCpu::default()
        };
        times_of(off_cpu, layout(), rounds)
    }

    fn times_of(
        mut off_cpu: OffCpu,
        layout: RecordLayout,
        rounds: &[&[Vec<u8>]],
    ) -> Vec<(i32, u64, u64)> {
        let mut all = Vec::new();
        for round in rounds.iter().chain([&&[][..]]) {
            for bytes in *round {
                let record = RawRecord::at_start(bytes).expect("whole");
                off_cpu.take(&record, &layout).expect("of the layout");
            }
            for bytes in off_cpu.finish_round(layout.sample_type()) {
                let record = RawRecord::at_start(&bytes).expect("whole");
                let sample = record.decode_sample(&layout).expect("of the layout");
                let sample = sample.expect("a sample");
                let numbers = (sample.thread(), sample.time(), sample.period());
                let (Some(thread), Some(time), Some(period)) = numbers else {
                    panic!("{sample:?}");
                };
                all.push((thread.tid, time, period));
            }
        }
        all
    }

    #[test]
    fn threads_are_off_their_cpu_until_they_are_back() {
        let asleep = [left(7, 100), switch(7, 101, OUT), left(8, 110)];
        let awake = [switch(8, 150, 0), switch(7, 400, 0)];
        let expected = [(8, 150, 40), (7, 400, 300)];
        assert_eq!(times(&[&asleep, &awake]), expected);
        // The ring of the CPU that it woke up on was read first.
        assert_eq!(times(&[&awake, &asleep]), expected);
        assert_eq!(times(&[&[&awake[..], &asleep].concat()]), expected);
        // It was on a CPU when the recording began, or is off to its end.
        assert_eq!(times(&[&awake]), []);
        assert_eq!(times(&[&asleep]), []);
    }

    #[test]
    fn switches_alone_tell_the_times_too() {
        let asleep = [switch(7, 100, OUT), switch(8, 110, PREEMPTED)];
        let awake = [switch(8, 150, 0), switch(7, 400, 0)];
        let all = |layout| {
            let off_cpu = OffCpu {
                ids: HashSet::from([ID]),
                times_alone: Some(ID),
                ..OffCpu::default()
            };
            times_of(off_cpu, layout, &[&asleep, &awake])
        };
        assert_eq!(all(layout()), [(7, 400, 300)]);
        // With every field that a recording can ask for, which are empty.
        let every = layout().sample_type()
            | SampleType::IP
            | SampleType::ADDR
            | SampleType::CPU
            | SampleType::RAW
            | SampleType::BRANCH_STACK
            | SampleType::REGS_USER
            | SampleType::STACK_USER;
        let every = RecordLayout::new(every)
            .with_branches(BranchSampleType::HW_INDEX)
            .with_registers(0xff, 0)
            .with_sample_id_all(true);
        let bytes = without_callers(&SampleId::default(), ID, &every);
        let record = RawRecord::at_start(&bytes).expect("whole");
        let sample = record.decode_sample(&every).expect("of the layout");
        let sample = sample.expect("a sample");
        let numbers = (sample.id(), sample.ip(), sample.period());
        assert_eq!(numbers, (Some(ID), Some(0), Some(0)));
        assert!(
            sample
                .callchain()
                .is_some_and(|chain| chain.entries().is_empty())
        );
        assert!(
            sample
                .branches()
                .is_some_and(|branches| branches.is_empty())
        );
    }

    #[test]
    fn no_time_is_told_of_what_did_not_sleep_or_is_not_known() {
        let back = switch(7, 400, 0);
        let preempted = [left(7, 100), switch(7, 100, PREEMPTED), back.clone()];
        assert_eq!(times(&[&preempted]), []);
        let body = [pair(1, 1), pair(7, 7), 300, pair(1, 1), 300, ID];
        let begun = [left(7, 100), record(kind::FORK, 0, &body), back.clone()];
        assert_eq!(times(&[&begun]), []);
        let lost = record(kind::LOST, 0, &[ID, 1, pair(1, 9), 300, ID]);
        assert_eq!(times(&[&[left(7, 100), lost, back.clone()]]), []);
        let kernel = [ID, pair(0, 7), 100, 1, 2, -128_i64 as u64, 0x1000];
        let of_kernel = [record(kind::SAMPLE, 1, &kernel), back];
        assert_eq!(times(&[&of_kernel]), []);
    }

    #[test]
    fn a_sample_is_of_the_program_and_not_of_the_scheduler() {
        use SampleType as S;
        let layout =
            RecordLayout::new(S::IP | S::TID | S::TIME | S::CALLCHAIN | S::PERIOD | S::RAW);
        let kernel = -128_i64 as u64;
        let words = [
            0xffff,
            pair(1, 7),
            100,
            1,
            5,
            kernel,
            0xffff,
            USER,
            0x1000,
            0x2000,
            4,
        ];
        let bytes = record(kind::SAMPLE, 1, &words);
        let whole = RawRecord::at_start(&bytes).expect("whole");
        let sample = whole.decode_sample(&layout).expect("of the layout");
        let part = user_part(&whole, &sample.expect("a sample"), layout.sample_type());
        let part = RawRecord::at_start(&part).expect("whole");
        let sample = part.decode_sample(&layout).expect("of the layout");
        let sample = sample.expect("a sample");
        let chain: Vec<u64> = sample
            .callchain()
            .expect("it has one")
            .entries()
            .iter()
            .collect();
        assert_eq!(chain, [USER, 0x1000, 0x2000]);
        assert_eq!((sample.ip(), sample.time()), (Some(0x1000), Some(100)));
        assert_eq!(part.bytes()[4], 2);
        assert_eq!(part.bytes().len(), bytes.len() - 16);
    }

    #[test]
    fn other_records_stay_in_the_recording() {
        let layout = layout();
        let mut off_cpu = OffCpu {
            ids: HashSet::from([ID]),
            ..OffCpu::default()
        };
        let mut kept = |bytes: &[u8]| {
            let record = RawRecord::at_start(bytes).expect("whole");
            off_cpu.take(&record, &layout).expect("of the layout")
        };
        let other = [6, pair(1, 7), 100, 1, 2, USER, 0x1000];
        assert!(kept(&record(kind::SAMPLE, 2, &other)));
        assert!(kept(&record(kind::LOST, 0, &[ID, 1, pair(1, 9), 300, ID])));
        assert!(!kept(&left(7, 100)));
        assert!(!kept(&switch(7, 100, 0)) && !kept(&switch(7, 100, OUT)));
    }
}
