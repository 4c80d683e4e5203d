//! Passes over the commands, in each of which every event has a counter all the time.

use quipu::command::SuspendedCommand;
use quipu::{
    Attributes, Count, Counts, Event, EventCount, EventSet, EventSetBuilder, GroupSpec, SetEvent,
};
use quipu_shell::reasons;
use quipu_shell::tasks::COUNTERS_END;

use crate::metrics::{Asked, Metric, Source, Unit};

/// CPU time that is too short to say that a counter should have covered it, in nanoseconds.
const SHORT: u64 = 200_000;

/// The share of the CPU time that a counter covers at least, if the kernel did not end it: what execve(2) does before counters
/// start is in that time.
const COVERED: u64 = 10;

/// The events of one pass.
#[derive(Debug, Default)]
pub(crate) struct Pass {
    /// Groups that take no counters of the CPU, and those that keep to themselves.
    alone: Vec<Unit>,
    /// The units whose events make up one group: they are on the CPU's counters together, or not at all.
    together: Vec<Unit>,
}

/// The metrics of a comparison, and the passes in which they are counted.
#[derive(Debug)]
pub(crate) struct Plan {
    /// The metrics that can be measured, in the order of the report.
    pub(crate) metrics: Vec<(Metric, Source)>,
    pub(crate) passes: Vec<Pass>,
    /// The metrics that cannot be measured, with the reason.
    pub(crate) not_counted: Vec<(String, String)>,
    /// Remarks on the counters.
    pub(crate) notes: Vec<String>,
}

/// Opens groups of events on what is tried.
type Open<'a> = dyn Fn(Vec<GroupSpec>) -> quipu::Result<EventSet> + 'a;

/// The value of an event, or why it has none.
pub(crate) type Value = Result<f64, String>;

impl Plan {
    /// Tries what can be counted on the process of a command that is not executed.
    pub(crate) fn new(asked: &Asked, probe: &SuspendedCommand) -> quipu::Result<Self> {
        Self::by(asked, &|groups| builder(groups)?.of_command(probe).open())
    }

    fn by(asked: &Asked, open: &Open<'_>) -> quipu::Result<Self> {
        let mut plan = Self {
            metrics: Vec::new(),
            passes: vec![Pass::default()],
            not_counted: Vec::new(),
            notes: Vec::new(),
        };
        let mut found: Vec<Option<Metric>> = vec![None; asked.labels.len()];
        let mut narrowed = Vec::new();
        for unit in &asked.units {
            let set = open(vec![unit.group.clone()])?;
            let mut is_open = false;
            for (event, index) in set.events().iter().zip(&unit.events) {
                let label = &asked.labels[*index];
                if let Some(error) = event.error() {
                    // A wrong name is no event that this machine lacks.
                    if reasons::is_mistake(&event.spec().event, error) {
                        return Err(error.clone());
                    }
                    let why = reasons::why(&event.spec().event, error);
                    plan.not_counted.push((label.clone(), why));
                    continue;
                }
                is_open = true;
                let name = match event.fell_back_to_user() && !label.ends_with(":u") {
                    true => format!("{label}:u"),
                    false => label.clone(),
                };
                if event.fell_back_to_user() {
                    narrowed.push(name.clone());
                }
                let unit = event.info().map_or("", |info| &info.unit);
                let (unit, _) = scaled_unit(unit);
                found[*index] = Some(Metric {
                    name,
                    unit: unit.to_owned(),
                });
            }
            if is_open {
                plan.place(unit, open)?;
            }
        }
        if !narrowed.is_empty() {
            let names = narrowed.join(", ");
            plan.notes.push(format!("{names}: counted in user mode only, because counting in the kernel is not permitted here"));
        }
        plan.metrics = asked
            .sources
            .iter()
            .filter_map(|source| match source {
                Source::Event(index) => found[*index].clone().map(|metric| (metric, *source)),
                _ => source.metric().map(|metric| (metric, *source)),
            })
            .collect();
        Ok(plan)
    }

    /// Gives a unit its place: the first pass in which there are counters for it too.
    fn place(&mut self, unit: &Unit, open: &Open<'_>) -> quipu::Result<()> {
        if unit
            .group
            .members
            .iter()
            .all(|member| takes_no_counter(&member.event))
        {
            self.passes[0].alone.push(unit.clone());
            return Ok(());
        }
        if unit.group.attributes != Attributes::default() {
            let mut pass = self.passes.iter_mut();
            match pass
                .find(|pass| pass.together.is_empty() && pass.counts_nothing_alone_on_counters())
            {
                Some(pass) => pass.alone.push(unit.clone()),
                None => self.passes.push(Pass {
                    alone: vec![unit.clone()],
                    together: Vec::new(),
                }),
            }
            return Ok(());
        }
        for pass in self
            .passes
            .iter_mut()
            .filter(|pass| pass.counts_nothing_alone_on_counters())
        {
            let mut wanted = pass.together.clone();
            wanted.push(unit.clone());
            let set = open(vec![one_group(&wanted)])?;
            if set.events().iter().all(|event| event.error().is_none()) && is_one_group(&set) {
                pass.together = wanted;
                return Ok(());
            }
        }
        self.passes.push(Pass {
            alone: Vec::new(),
            together: vec![unit.clone()],
        });
        Ok(())
    }
}

/// Returns true if the events of a set are members of one group of counters.
fn is_one_group(set: &EventSet) -> bool {
    let in_first = |event: &SetEvent| event.index().is_ok_and(|at| at.group == 0);
    let one_by_one = |event: &SetEvent| {
        event
            .preset()
            .is_some_and(|preset| !preset.is_in_one_group())
    };
    set.events()
        .iter()
        .all(|event| in_first(event) && !one_by_one(event))
}

fn takes_no_counter(event: &Event) -> bool {
    matches!(event, Event::Software(_) | Event::Tracepoint { .. })
}

fn builder(groups: Vec<GroupSpec>) -> quipu::Result<EventSetBuilder> {
    let mut builder = EventSet::builder();
    builder.events(groups)?.user_mode_fallback(true);
    Ok(builder)
}

fn one_group(units: &[Unit]) -> GroupSpec {
    GroupSpec::new(
        units
            .iter()
            .flat_map(|unit| unit.group.members.iter().cloned()),
    )
}

impl Pass {
    fn counts_nothing_alone_on_counters(&self) -> bool {
        let members = self.alone.iter().flat_map(|unit| &unit.group.members);
        members
            .into_iter()
            .all(|member| takes_no_counter(&member.event))
    }

    /// Returns the number of events.
    pub(crate) fn len(&self) -> usize {
        self.units().map(|unit| unit.events.len()).sum()
    }

    fn units(&self) -> impl Iterator<Item = &Unit> {
        self.alone.iter().chain(&self.together)
    }

    /// Returns the positions of its events among those that were asked for, in the order of its set.
    pub(crate) fn events(&self) -> impl Iterator<Item = usize> {
        self.units().flat_map(|unit| unit.events.iter().copied())
    }

    /// Opens the counters for a command; `None` if there are no events.
    pub(crate) fn open(
        &self,
        command: &SuspendedCommand,
    ) -> quipu::Result<Option<(EventSet, Counts)>> {
        if self.len() == 0 {
            return Ok(None);
        }
        let mut groups: Vec<GroupSpec> = self.alone.iter().map(|unit| unit.group.clone()).collect();
        if !self.together.is_empty() {
            groups.push(one_group(&self.together));
        }
        let set = builder(groups)?.of_command(command).open()?;
        let counts = set.counts();
        Ok(Some((set, counts)))
    }
}

/// Returns the value of an event, in the unit of its metric; `cpu_time` is that of the command, in nanoseconds.
pub(crate) fn value(event: EventCount<'_>, cpu_time: u64) -> Value {
    let total = event
        .total()
        .map_err(|error| reasons::why(&event.event().spec().event, &error))?;
    let is_linux = event.event().backend() == Some("linux");
    if is_linux && cpu_time > SHORT && event.event().preset().is_none() {
        let covered = event
            .parts()
            .map(|parts| parts.map(|(_, reading)| reading.time_enabled).max());
        if covered.is_ok_and(|enabled| enabled.unwrap_or(0) < cpu_time / COVERED) {
            return Err(COUNTERS_END.to_owned());
        }
    }
    match total {
        Count::Exact(exact) => {
            let info = event.event().info();
            let (_, factor) = scaled_unit(info.map_or("", |info| &info.unit));
            Ok(exact as f64 * info.map_or(1.0, |info| info.scale) * factor)
        }
        Count::NotCounted => Err("it never had a counter: others have them all".to_owned()),
        _ => Err("it shared its counter with others, and an estimate is not compared".to_owned()),
    }
}

/// Returns the unit of a metric for that of an event, and the factor between them.
fn scaled_unit(unit: &str) -> (&str, f64) {
    match unit {
        "ns" => ("s", 1e-9),
        "ms" | "msec" => ("s", 1e-3),
        _ => (unit, 1.0),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use quipu::{Error, ErrorKind, Reading};
    use quipu_scripted::{Scripted, ScriptedGroup};

    use super::*;

    /// A CPU with two counters, which cannot count branch misses; readings have run for half of the time.
    fn two_counters(groups: Vec<GroupSpec>) -> quipu::Result<EventSet> {
        let backend = Scripted::new("linux", |spec, _| {
            let refused = |kind, reason| Err(Error::new(kind, "open a group").with_reason(reason));
            let is_named =
                |name: &str| spec.members.iter().any(|one| one.event.to_string() == name);
            match spec.members.len() {
                _ if is_named("branch-misses") => {
                    refused(ErrorKind::UnsupportedEvent, "there is none")
                }
                3.. => refused(ErrorKind::TooManyEvents, "there are two counters"),
                _ => Ok(ScriptedGroup::of(spec).reading(|out| {
                    out[0].fill(Reading::new(7, 2_000_000, 1_000_000));
                    Ok(())
                })),
            }
        });
        builder(groups)?
            .backends([Arc::new(backend) as Arc<dyn quipu::Backend>])
            .open()
    }

    #[test]
    fn events_that_do_not_fit_have_passes_of_their_own() {
        let list = "cycles,page-faults,instructions,branch-misses,{cache-misses,branches},cache-references";
        let asked = Asked::new(&[list.to_owned()]).expect("it is well formed");
        let plan = Plan::by(&asked, &two_counters).expect("it can be tried");
        let passes: Vec<Vec<usize>> = plan
            .passes
            .iter()
            .map(|pass| pass.events().collect())
            .collect();
        assert_eq!(passes, [vec![1, 0, 2], vec![4, 5], vec![6]]);
        assert_eq!(
            plan.not_counted,
            [("branch-misses".to_owned(), "there is none".to_owned())]
        );
        let names: Vec<&str> = plan
            .metrics
            .iter()
            .map(|(metric, _)| metric.name.as_str())
            .collect();
        let counted = [
            "cycles",
            "page-faults",
            "instructions",
            "cache-misses",
            "branches",
            "cache-references",
        ];
        assert_eq!(names, [&counted[..], &["elapsed", "cpu-time"]].concat());
    }

    #[test]
    fn estimates_and_counters_that_ended_have_no_value() {
        let mut set =
            two_counters(vec![GroupSpec::single(quipu::Hardware::Cycles)]).expect("it opens");
        let mut counts = set.counts();
        set.read(&mut counts).expect("it is read");
        let of = |cpu_time| {
            value(counts.get(0).expect("an event"), cpu_time).expect_err("it is no count")
        };
        assert!(of(1_000_000).contains("an estimate is not compared"));
        assert_eq!(of(30_000_000), COUNTERS_END);
    }
}
