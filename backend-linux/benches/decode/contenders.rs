//! The contenders: what it takes with each to get every field of every sample out of its ring.

use peer_perf_event_open as peo;
use peer_perf_event2 as pe2;
use quipu_hal::{EventSpec, Filter, Software, Target};
use quipu_linux::LinuxBackend;
use quipu_linux::sampling::{Rate, Record, SampleType, SamplerSpec};

use crate::image::{MappedRing, PAGES, RING};

/// An open sampler.
pub(crate) struct Contender {
    /// The memory that the records are written to.
    pub(crate) ring: MappedRing,
    /// Reads all of them; the sum of what is in them.
    pub(crate) drain: Box<dyn FnMut() -> u64>,
}

/// A function that opens a contender.
type Open = fn() -> Result<Contender, String>;

/// The contenders, Quipu first.
pub(crate) const ALL: [(&str, Open); 3] = [
    ("quipu", quipu),
    ("perf-event2", perf_event2),
    ("perf-event-open", perf_event_open),
];

fn text(e: impl std::fmt::Display) -> String {
    e.to_string()
}

fn quipu() -> Result<Contender, String> {
    let never = EventSpec::new(Software::Dummy).with_filter(Filter::USER_ONLY);
    let mut spec = SamplerSpec::new([(never, Rate::Period(1))]);
    spec.sample_type |= SampleType::PERIOD | SampleType::CALLCHAIN;
    spec.ring_bytes = RING;
    let (mut sampler, ring) = MappedRing::of(|| {
        let backend = LinuxBackend::new().map_err(text)?;
        backend
            .open_sampler(&spec, &Target::CurrentThread)
            .map_err(text)
    })?;
    let layout = *sampler.layout();
    let drain = move || {
        let mut sum = 0u64;
        for record in &mut sampler.rings_mut()[0].records() {
            let record = record.expect("a record");
            let Ok(Record::Sample(sample)) = record.decode(&layout) else {
                continue;
            };
            let thread = sample.thread().expect("there");
            sum += sample.ip().expect("there")
                + u64::from(thread.pid.cast_unsigned())
                + u64::from(thread.tid.cast_unsigned())
                + sample.time().expect("there")
                + sample.period().expect("there");
            let chain = sample.callchain().expect("there");
            sum += chain.frames().map(|frame| frame.address).sum::<u64>();
        }
        sum
    };
    Ok(Contender {
        ring,
        drain: Box::new(drain),
    })
}

fn perf_event2() -> Result<Contender, String> {
    use pe2::SampleFlag as S;
    let (mut sampler, ring) = MappedRing::of(|| {
        let mut builder = pe2::Builder::new(pe2::events::Software::DUMMY);
        builder
            .sample(S::IP | S::TID | S::TIME | S::PERIOD | S::CALLCHAIN)
            .sample_period(1);
        let counter = builder.build().map_err(text)?;
        counter.sampled(RING).map_err(text)
    })?;
    let drain = move || {
        let mut sum = 0u64;
        while let Some(record) = sampler.next_record() {
            let Ok(pe2::data::Record::Sample(sample)) = record.parse_record() else {
                continue;
            };
            sum += sample.ip().expect("there")
                + u64::from(sample.pid().expect("there"))
                + u64::from(sample.tid().expect("there"))
                + sample.time().expect("there")
                + sample.period().expect("there");
            let chain = sample.callchain().expect("there");
            // It leaves the markers to the caller.
            let frames = chain.iter().filter(|frame| **frame < -4095_i64 as u64);
            sum += frames.sum::<u64>();
        }
        sum
    };
    Ok(Contender {
        ring,
        drain: Box::new(drain),
    })
}

fn perf_event_open() -> Result<Contender, String> {
    use peo::sample::record::Record;
    use peo::sample::record::sample::CallChain;
    let (sampler, ring) = MappedRing::of(|| {
        let mut options = peo::config::Opts::default();
        options.exclude = peo::config::Priv {
            user: false,
            ..options.exclude
        };
        options.sample_on = peo::config::SampleOn::Count(1);
        options.sample_format.code_addr = true;
        options.sample_format.period = true;
        options.sample_format.call_chain = Some(peo::config::CallChain {
            exclude_user: false,
            exclude_kernel: false,
            defer_user: false,
            max_stack_frames: 0,
        });
        options.record_id_format.task = true;
        options.record_id_format.time = true;
        let target = (peo::config::Proc::CURRENT, peo::config::Cpu::ALL);
        let event = peo::event::sw::Software::Dummy;
        let counter = peo::count::Counter::new(event, target, options).map_err(text)?;
        let sampler = counter.sampler(PAGES.ilog2() as u8).map_err(text)?;
        Ok((counter, sampler))
    })?;
    let drain = move || {
        let (_, sampler) = &sampler;
        let mut sum = 0u64;
        for (_, record) in sampler.iter().expect("one reader") {
            let Record::Sample(sample) = record else {
                continue;
            };
            let id = &sample.record_id;
            let task = id.task.as_ref().expect("there");
            sum += sample.code_addr.expect("there").0
                + u64::from(task.pid)
                + u64::from(task.tid)
                + id.time.expect("there")
                + sample.period.expect("there");
            for chain in sample.call_chain.as_ref().expect("there") {
                if let CallChain::User(frames) = chain {
                    sum += frames.iter().sum::<u64>();
                }
            }
        }
        sum
    };
    Ok(Contender {
        ring,
        drain: Box::new(drain),
    })
}
