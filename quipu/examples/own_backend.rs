//! For the author of a backend: a source of counts of one's own, used through an event set like any other.
//!
//! Run with `cargo run -p quipu-counters --example own_backend`.

use std::sync::Arc;
use std::time::Instant;

use quipu::EventSet;
use quipu_hal::{
    Backend, Capabilities, Error, ErrorKind, Event, EventInfo, Group, GroupSpec, ReadBuf, Reading,
    Result, Simultaneity, Target, TargetKinds,
};

/// Wall time in nanoseconds, as the event `ticks`.
struct Clock(Capabilities);

struct Ticks {
    members: [EventInfo; 1],
    total: u64,
    since: Option<Instant>,
}

impl Backend for Clock {
    fn name(&self) -> &'static str {
        "clock"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        let attempted = format!("count {}", spec.members[0]);
        if spec
            .members
            .iter()
            .any(|m| m.event != Event::Named("ticks".into()))
        {
            return Err(Error::new(ErrorKind::UnsupportedEvent, attempted)
                .with_reason("the clock counts `ticks` only"));
        }
        if spec.members.len() > 1 {
            return Err(Error::new(ErrorKind::TooManyEvents, attempted)
                .with_reason("the clock has one counter"));
        }
        if *target != Target::CurrentThread {
            return Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
                .with_reason("the clock counts for the calling thread only"));
        }
        let mut group = Ticks {
            members: [EventInfo::counter("ticks")],
            total: 0,
            since: None,
        };
        if !spec.attributes.disabled {
            group.enable()?;
        }
        Ok(Box::new(group))
    }
}

impl Ticks {
    fn now(&self) -> u64 {
        let running = self.since.map_or(0, |since| since.elapsed().as_nanos());
        self.total + running as u64
    }
}

impl Group for Ticks {
    fn members(&self) -> &[EventInfo] {
        &self.members
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Atomic
    }

    fn enable(&mut self) -> Result<()> {
        self.since.get_or_insert_with(Instant::now);
        Ok(())
    }

    fn disable(&mut self) -> Result<()> {
        self.total = self.now();
        self.since = None;
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        self.total = 0;
        self.since = self.since.map(|_| Instant::now());
        Ok(())
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        out.check_shape(1, self.parts())?;
        let time = self.now();
        // It was enabled, and counted, all of the time.
        out[0][0] = Reading::new(time, time, time);
        Ok(())
    }
}

fn main() -> Result<()> {
    let mut capabilities = Capabilities::none();
    capabilities.targets = TargetKinds::CURRENT_THREAD;
    let clock: Arc<dyn Backend> = Arc::new(Clock(capabilities));
    let mut builder = EventSet::builder();
    let ticks = builder.backends([clock]).event("ticks")?;
    let mut set = builder.open()?;
    let mut counts = set.counts();
    set.enable()?;
    std::thread::sleep(std::time::Duration::from_millis(20));
    set.disable()?;
    set.read(&mut counts)?;
    println!("20 ms of sleep took {:?} ticks", counts.of(ticks).total()?);
    Ok(())
}
