//! Samples of a thread of the calling process, kept in memory while it runs and added up in the end.

use std::time::Duration;

use quipu_perf_data::TimeOrder;
use quipu_shell::Failure;
use quipu_shell::target::TargetOptions;

use crate::record::{self, Live, SamplingOptions};
use crate::recording::Replay;
use crate::report::{self, Loading, Profile};

/// As many bytes of records are kept: half a minute of copied stacks, or half an hour of chains by frame pointers.
const MOST: usize = 512 << 20;

/// Describes what is sampled, and how often. Unless it is said, that is what `quipu record` takes.
///
/// ```no_run
/// use std::time::Duration;
///
/// use quipu_profile::sampling::{Options, Sampling};
///
/// // The thread with the number of the process is its first one.
/// let mut options = Options::of_thread(std::process::id() as i32);
/// options.events = Some("cpu-clock:u".to_owned());
/// let mut sampling = Sampling::start(&options)?;
/// let squares: u64 = (0..1_000_000u64).map(|i| i.wrapping_mul(i)).fold(0, u64::wrapping_add);
/// sampling.drain(Duration::ZERO)?;
/// let profile = sampling.stop()?;
/// println!("{squares} {}", profile.folded(&profile.events[0]));
/// # Ok::<(), quipu_shell::Failure>(())
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Events, as `quipu record -e` takes them.
    pub events: Option<String>,
    /// Samples in a second.
    pub frequency: Option<u64>,
    /// Events between two samples, in place of a frequency.
    pub period: Option<u64>,
    /// Method of finding call chains, as `quipu record --call-graph` takes it; without one there are none.
    pub call_graph: Option<String>,
    /// Thread that is sampled.
    pub tid: i32,
    /// True if the threads and processes that it starts are sampled too.
    pub inherit: bool,
}

impl Options {
    /// Returns those of a thread alone.
    pub fn of_thread(tid: i32) -> Self {
        Self {
            events: None,
            frequency: None,
            period: None,
            call_graph: None,
            tid,
            inherit: false,
        }
    }

    /// Returns the options of a recording of the same.
    fn recording(&self) -> Result<record::Options, Failure> {
        if self.frequency.is_some() && self.period.is_some() {
            return Err(Failure::usage(
                "samples have a frequency or a period, not both",
            ));
        }
        if self.frequency == Some(0) || self.period == Some(0) {
            return Err(Failure::usage(
                "a frequency and a period of samples are 1 or more",
            ));
        }
        let method = self.call_graph.as_deref().map(str::parse);
        let method = method
            .transpose()
            .map_err(|why: String| Failure::usage(format_args!("call chains: {why}")))?;
        Ok(record::Options {
            sampling: SamplingOptions {
                event: self.events.iter().cloned().collect(),
                frequency: self.frequency.map(record::Frequency::Of),
                count: self.period,
                call_graph: method,
                mmap_pages: 128,
                ..SamplingOptions::default()
            },
            target: TargetOptions {
                tid: vec![self.tid],
                no_inherit: !self.inherit,
                ..TargetOptions::default()
            },
            ..record::Options::default()
        })
    }
}

/// Samples that are being taken. They are lost if they are not [drained](Self::drain) in time. A thread that was there before can do
/// that without being sampled.
pub struct Sampling {
    live: Live,
    records: Vec<u8>,
    is_full: bool,
}

impl Sampling {
    /// Starts sampling.
    ///
    /// # Errors
    /// If nothing can be sampled, or the options contradict each other.
    pub fn start(options: &Options) -> Result<Self, Failure> {
        Ok(Self {
            live: Live::open(&options.recording()?)?,
            records: Vec::new(),
            is_full: false,
        })
    }

    /// Waits until the memory for new samples is half full, but not longer than `timeout`, and takes them out of it.
    ///
    /// # Errors
    /// If the kernel wrote something that is no record.
    pub fn drain(&mut self, timeout: Duration) -> Result<(), Failure> {
        if self.is_full {
            std::thread::sleep(timeout);
            return Ok(());
        }
        self.live.wait(timeout)?;
        self.live.drain(&mut self.records)?;
        if self.records.len() > MOST {
            self.is_full = true;
            self.live.disable()?;
        }
        Ok(())
    }

    /// Stops sampling, and returns what was sampled. Functions get their names now, also those that a compiler has listed
    /// meanwhile.
    ///
    /// # Errors
    /// If the kernel wrote something that is no record.
    pub fn stop(mut self) -> Result<Profile, Failure> {
        self.live.disable()?;
        self.live.drain(&mut self.records)?;
        let events = &self.live.events;
        let names = events.iter();
        let names: Vec<_> = names
            .map(|event| event.name().unwrap_or_default().to_owned())
            .collect();
        let mut loading = Loading::of_stacks(events, &names)?;
        let mut replay = Replay::live(events, false);
        let mut order = TimeOrder::new();
        // A round is complete when the next one ends.
        for round in [&*self.records, &[], &[]] {
            replay.round(&mut order, round, &mut loading);
        }
        let mut profile = loading.finish(&replay);
        let of_events = report::notes_on_events(&profile.events.iter().collect::<Vec<_>>());
        profile.notes.splice(0..0, self.live.notes.drain(..));
        profile.notes.extend(of_events);
        if self.is_full {
            profile.notes.push(format!(
                "sampling ended early, when there were {} MB of samples: take fewer a second, or shorter call chains",
                MOST >> 20
            ));
        }
        Ok(profile)
    }
}
