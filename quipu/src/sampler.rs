//! Samples: where the events of a program happen, while it runs.

#[cfg(unix)]
use std::os::fd::BorrowedFd;

use quipu_hal::{Attributes, Error, ErrorKind, EventSpec, Result, Target};

use crate::{IntoGroups, Machine};

cfg_if::cfg_if! {
    if #[cfg(target_os = "linux")] {
        mod linux;

        use linux::Open;
    } else {
        mod elsewhere;

        use elsewhere::Open;
    }
}

/// How often an event is sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SampleRate {
    /// Once in so many events; 1 takes each of them.
    Period(u64),
    /// So many times in a second, for which the period is adjusted.
    Frequency(u64),
}

/// Samples being taken of events on a target. Dropping it closes everything.
///
/// ```no_run
/// use quipu::{SampleRate, Sampler};
///
/// let mut sampler = Sampler::builder()
///     .events("cpu-clock:u")?
///     .rate(SampleRate::Frequency(999))
///     .call_chains(true)
///     .open()?;
/// sampler.enable()?;
/// let squares: u64 = (0..1_000_000u64).map(|i| i.wrapping_mul(i)).fold(0, u64::wrapping_add);
/// sampler.disable()?;
/// sampler.drain(|sample| println!("{:#x}, called from {} others", sample.ip, sample.callers.len()))?;
/// println!("{squares}; {} samples lost", sampler.lost());
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Debug)]
pub struct Sampler {
    open: Open,
}

/// One sample: the part of it that every system that samples has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sample<'a> {
    /// The position of the event among those asked for.
    pub event: usize,
    /// The address of the instruction.
    pub ip: u64,
    /// Whether it is one of the kernel.
    pub in_kernel: bool,
    /// The process.
    pub pid: i32,
    /// The thread.
    pub tid: i32,
    /// The CPU.
    pub cpu: u32,
    /// When it was taken, in nanoseconds of a clock that never goes back.
    pub time: u64,
    /// How many events it stands for.
    pub period: u64,
    /// The address that the event is about, if it is about one and
    /// [addresses](SamplerBuilder::addresses) were asked for.
    pub address: Option<u64>,
    /// Who called the function of `ip`, the innermost first, if
    /// [call chains](SamplerBuilder::call_chains) were asked for.
    pub callers: &'a [Caller],
}

/// A caller in a call chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Caller {
    /// Where it goes on when the call returns: the instruction after the call.
    pub return_address: u64,
    /// Whether it is in the kernel.
    pub in_kernel: bool,
}

impl Sampler {
    /// Describes a sampler: of the calling thread, once a millisecond, unless something else is said.
    pub fn builder() -> SamplerBuilder {
        SamplerBuilder {
            events: Vec::new(),
            rate: SampleRate::Frequency(1000),
            call_chains: false,
            addresses: false,
            target: Target::CurrentThread,
            attributes: Attributes {
                disabled: true,
                ..Attributes::default()
            },
            room: 512 << 10,
            wake_after: None,
            backend: None,
        }
    }

    /// Starts sampling.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn enable(&mut self) -> Result<()> {
        self.open.enable()
    }

    /// Stops sampling. What was taken can still be [drained](Self::drain).
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn disable(&mut self) -> Result<()> {
        self.open.disable()
    }

    /// Hands out the samples taken since the last time, and makes room for others. Each part of the
    /// target (a CPU, a thread) hands out its own in the order of their times, one part after the other.
    ///
    /// # Errors
    /// When the kernel wrote something that is no record; what was taken so far is given up then.
    pub fn drain(&mut self, each: impl FnMut(&Sample<'_>)) -> Result<()> {
        self.open.drain(each)
    }

    /// The descriptors to wait on: poll(2) finds one readable when samples are to be
    /// [drained](Self::drain), as many as [`wake_after`](SamplerBuilder::wake_after) says, and hung up
    /// when the thread it is of has ended. There is one for each part of the target.
    #[cfg(unix)]
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.open.descriptors()
    }

    /// How many samples were lost so far because nobody made room in time.
    pub fn lost(&self) -> u64 {
        self.open.lost()
    }
}

/// Describes a [`Sampler`] and opens it.
#[derive(Debug, Clone)]
pub struct SamplerBuilder {
    events: Vec<EventSpec>,
    rate: SampleRate,
    call_chains: bool,
    addresses: bool,
    target: Target,
    attributes: Attributes,
    room: usize,
    wake_after: Option<u32>,
    backend: Option<String>,
}

impl SamplerBuilder {
    /// Adds events; may be called again.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) when a text is malformed, or names a
    /// group: events are sampled one by one.
    pub fn events(mut self, events: impl IntoGroups) -> Result<Self> {
        for group in events.groups()? {
            let [event] = group.members.as_slice() else {
                let attempted = format!("sample {group}");
                return Err(Error::new(ErrorKind::InvalidConfiguration, attempted)
                    .with_reason("it is a group, and events are sampled one by one"));
            };
            self.events.push(event.clone());
        }
        Ok(self)
    }

    /// How often each event is sampled; 1000 times in a second by default.
    #[must_use]
    pub fn rate(mut self, rate: SampleRate) -> Self {
        self.rate = rate;
        self
    }

    /// Whether samples tell who called, by following frame pointers. Off by default.
    #[must_use]
    pub fn call_chains(mut self, yes: bool) -> Self {
        self.call_chains = yes;
        self
    }

    /// Whether samples tell the address that the event is about: the page that was missing, the data
    /// that a breakpoint watches. Off by default.
    #[must_use]
    pub fn addresses(mut self, yes: bool) -> Self {
        self.addresses = yes;
        self
    }

    /// What is sampled; the calling thread by default.
    #[must_use]
    pub fn target(mut self, target: Target) -> Self {
        self.target = target;
        self
    }

    /// How counters are opened; by default without sampling, for [`Sampler::enable`] to start.
    #[must_use]
    pub fn attributes(mut self, attributes: Attributes) -> Self {
        self.attributes = attributes;
        self
    }

    /// Bytes of room for samples in each part of the target; 512 KiB by default.
    #[must_use]
    pub fn room(mut self, bytes: usize) -> Self {
        self.room = bytes;
        self
    }

    /// After how many samples in a part of the target whoever waits is woken; by default when the room
    /// is half full.
    #[must_use]
    pub fn wake_after(mut self, samples: u32) -> Self {
        self.wake_after = Some(samples);
        self
    }

    /// The backend to sample with, by its [name](crate::BackendStatus::name); by default one that can.
    #[must_use]
    pub fn backend(mut self, name: impl Into<String>) -> Self {
        self.backend = Some(name.into());
        self
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) where no backend samples, or the one that was
    /// asked for does not; else any [`ErrorKind`] with which the backend refuses.
    pub fn open(self) -> Result<Sampler> {
        if self.events.is_empty() {
            return Err(Error::new(ErrorKind::InvalidConfiguration, "sample")
                .with_reason("there are no events"));
        }
        if let Some(name) = self
            .backend
            .as_deref()
            .filter(|name| *name != Open::BACKEND)
        {
            Machine::this().named(name)?;
            let attempted = format!("sample with the backend {name}");
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("it counts and takes no samples"));
        }
        Ok(Sampler {
            open: Open::new(&self)?,
        })
    }
}
