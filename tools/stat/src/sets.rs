//! The open counters: an event set for each target, all with the same events.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use quipu::{
    Counts, Error, ErrorKind, EventCount, EventSet, EventSpec, Filter, Part, Result, SetEvent,
};
use quipu_hal::ValueKind;
use quipu_text::Label;

use quipu_shell::Failure;

use super::backend::Backends;
use super::derived::Derived;
use super::events::Request;
use super::plan::Plan;
use super::rows::{Row, Unit};
use super::uncounted::Span;
use quipu_shell::reasons;

/// An event set for each target.
pub struct Sets {
    members: Vec<Member>,
    /// The rows of tool events, each with the number of events before it.
    tools: Vec<(usize, Row)>,
    events: Vec<MeasuredEvent>,
    disturbances: Disturbances,
}

/// By event: how often another program disturbed its counting, and how the last time.
type Disturbances = BTreeMap<usize, (u64, String)>;

struct Member {
    cgroup: Option<String>,
    set: EventSet,
}

/// An event of the sets, as known before it is counted.
#[derive(Debug, Clone)]
pub(super) struct MeasuredEvent {
    /// The name as requested, with `:u` added where a fallback narrowed it.
    pub(super) name: Rc<str>,
    pub(super) spec: Rc<EventSpec>,
    pub(super) unit: Unit,
    pub(super) is_gauge: bool,
    /// The backend that counts it.
    pub(super) backend: Option<&'static str>,
    hidden: bool,
    /// The metric that it is counted for.
    pub(super) metric: Option<Derived>,
}

/// The readings of the sets at one moment.
#[derive(Clone)]
pub struct Snapshot {
    counts: Vec<Counts>,
    disturbances: Disturbances,
    /// The time until then that counters of processes have to cover.
    pub(super) span: Option<Span>,
}

impl Snapshot {
    /// Returns the counts of one set.
    pub fn counts(&self, member: usize) -> &Counts {
        &self.counts[member]
    }

    /// Returns how another program disturbed the counting of an event.
    pub fn disturbance(&self, event: usize) -> Option<&str> {
        let (_, how) = self.disturbances.get(&event)?;
        Some(how)
    }

    /// Makes it the counts between two snapshots of the same sets.
    pub fn set_difference(&mut self, now: &Self, earlier: &Self) {
        self.counts.clone_from(&now.counts);
        for (difference, then) in self.counts.iter_mut().zip(&earlier.counts) {
            difference.subtract(then).expect("of the same sets");
        }
        if self.disturbances.is_empty() && now.disturbances.is_empty() {
            return;
        }
        let times = |snapshot: &Self, event: &usize| snapshot.disturbances.get(event).map(|d| d.0);
        self.disturbances.clone_from(&now.disturbances);
        self.disturbances
            .retain(|event, _| times(now, event) != times(earlier, event));
    }
}

impl Sets {
    /// Opens everything. An event that cannot be counted here is no failure, unless it can only be a
    /// mistake: then nothing has been run yet.
    pub fn open(plan: &Plan, backends: &Backends, command: Option<i32>) -> Result<Self, Failure> {
        let mut members = Vec::new();
        if !plan.requests.is_empty() {
            for (cgroup, target) in plan.scope.targets(command) {
                let mut set = EventSet::builder();
                set.events(&plan.requests)?
                    .target(target)
                    .inherit(plan.inherits())
                    .enable_on_exec(plan.starts_on_exec())
                    .user_mode_fallback(true)
                    .cpu_fallback(true);
                for metric in &plan.metrics {
                    set.preset(metric.event_name(), &metric.formula)?;
                }
                if let Some(names) = &plan.names {
                    set.machine(Arc::clone(&names.machine));
                }
                if let Some(child) = command.filter(|_| plan.counts_child()) {
                    set.child_of_cpus(child);
                }
                if let Some(backends) = &backends.counting {
                    set.backends(backends.iter().cloned());
                }
                let set = set.open()?;
                if plan.every_thread && has_ended(&set) {
                    continue;
                }
                members.push(Member {
                    cgroup: cgroup.map(str::to_owned),
                    set,
                });
            }
        }
        let sets = Self {
            tools: plan.tools.clone(),
            events: events(plan, &members),
            members,
            disturbances: Disturbances::new(),
        };
        sets.refuse_mistakes(plan)?;
        Ok(sets)
    }

    /// Returns the number of events of each set.
    pub(super) fn len(&self) -> usize {
        self.events.len()
    }

    pub(super) fn event(&self, index: usize) -> &MeasuredEvent {
        &self.events[index]
    }

    /// Returns the event of a name, as it is in a set that could open it, if there is one.
    pub(super) fn named(&self, name: &str) -> Option<(usize, &SetEvent)> {
        let mut events = self.set_events();
        events.find(|(index, event)| &*self.event(*index).name == name && event.backend().is_some())
    }

    /// Returns true if Linux counts an event of processes wherever they run.
    pub(super) fn follows_processes(&self, index: usize) -> bool {
        let mut events = self.set_events().filter(|(at, _)| *at == index);
        events.any(|(_, event)| {
            event.backend() == Some("linux") && event.fell_back_to_cpus().is_none()
        })
    }

    /// Returns the rows of the tool events that come after so many other events.
    pub(super) fn tools(&self, at: usize) -> impl Iterator<Item = Row> {
        let here = self.tools.iter().filter(move |(before, _)| *before == at);
        here.map(|(_, row)| row.clone())
    }

    /// Returns true for a default event that is not supported here.
    pub(super) fn is_hidden(&self, index: usize) -> bool {
        self.events[index].hidden
    }

    /// Returns the sets of each control group, in order; one entry without a name when there is none.
    pub(super) fn by_cgroup(&self) -> Vec<(Option<&str>, Vec<usize>)> {
        let mut groups: Vec<(Option<&str>, Vec<usize>)> = Vec::new();
        for (index, member) in self.members.iter().enumerate() {
            let name = member.cgroup.as_deref();
            match groups.iter_mut().find(|(known, _)| *known == name) {
                Some((_, members)) => members.push(index),
                None => groups.push((name, vec![index])),
            }
        }
        groups
    }

    /// Returns the parts of every open event of these sets.
    pub(super) fn parts<'a>(&'a self, members: &'a [usize]) -> impl Iterator<Item = &'a Part> {
        members.iter().flat_map(|member| {
            let set = &self.members[*member].set;
            (0..self.len()).flat_map(|event| set.parts(event).unwrap_or_default())
        })
    }

    /// Returns the parts of every open event.
    pub fn all_parts(&self) -> impl Iterator<Item = &Part> {
        self.members.iter().flat_map(|member| {
            (0..self.len()).flat_map(|event| member.set.parts(event).unwrap_or_default())
        })
    }

    /// Returns the events of every set, with their position.
    pub(super) fn set_events(&self) -> impl Iterator<Item = (usize, &SetEvent)> {
        self.members
            .iter()
            .flat_map(|member| member.set.events().iter().enumerate())
    }

    /// Returns true for a preset of several events.
    #[cfg(target_os = "linux")]
    pub(super) fn is_preset(&self, index: usize) -> bool {
        let mut sets = self.members.iter().map(|member| &member.set);
        sets.any(|set| set.events()[index].preset().is_some())
    }

    /// Returns the readings of an event of one counter, in every part of every target.
    #[cfg(target_os = "linux")]
    pub(super) fn readings<'a>(
        &self,
        snapshot: &'a Snapshot,
        index: usize,
    ) -> impl Iterator<Item = (&'a Part, &'a quipu::Reading)> {
        let counts = snapshot.counts.iter();
        let events = counts.filter_map(move |counts| counts.get(index)?.term_readings().ok());
        events.flatten().flatten()
    }

    pub fn enable(&mut self) -> Result<()> {
        let mut members = self.members.iter_mut();
        members.try_for_each(|m| m.set.enable())
    }

    /// Starts what does not start by itself when the command executes.
    pub(super) fn enable_on_cpus(&mut self) -> Result<()> {
        let mut members = self.members.iter_mut();
        members.try_for_each(|m| m.set.enable_on_cpus())
    }

    /// Stops counting. An event that other programs disturbed is no failure: it was counted until then.
    pub fn disable(&mut self) -> Result<()> {
        let refusals = self.members.iter_mut().map(|m| m.set.disable_each());
        for (event, error) in refusals.collect::<Vec<_>>().into_iter().flatten() {
            if error.kind() != ErrorKind::Interference {
                return Err(error);
            }
            self.note_disturbance(event, &error);
        }
        Ok(())
    }

    /// Returns a snapshot of zeros, to read into.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot {
            counts: self.members.iter().map(|m| m.set.counts()).collect(),
            disturbances: Disturbances::new(),
            span: None,
        }
    }

    /// Reads everything. Disturbances by other programs are noted, and undisturbed events are read all
    /// the same.
    pub fn read(&mut self, into: &mut Snapshot) -> Result<()> {
        for (member, counts) in into.counts.iter_mut().enumerate() {
            for tries in 1.. {
                self.members[member].set.read(counts)?;
                let disturbed = disturbed(counts);
                if disturbed.is_empty() {
                    break;
                }
                for (event, error) in disturbed {
                    self.note_disturbance(event, &error);
                }
                // Each part of a target tells once, the first of them in each read.
                let parts = (0..self.len()).filter_map(|e| self.members[member].set.parts(e));
                if tries > parts.map(<[Part]>::len).max().unwrap_or(0) {
                    break;
                }
            }
        }
        if !(self.disturbances.is_empty() && into.disturbances.is_empty()) {
            into.disturbances.clone_from(&self.disturbances);
        }
        Ok(())
    }

    fn note_disturbance(&mut self, event: usize, error: &Error) {
        let how = reasons::why(&self.events[event].spec.event, error);
        let (times, last) = self.disturbances.entry(event).or_default();
        *times += 1;
        *last = how;
    }

    /// Returns how long an event counts at a time if it takes turns with others.
    pub(super) fn rotation_interval(&self, event: usize) -> Option<Duration> {
        let mut sets = self.members.iter();
        sets.find_map(|member| member.set.rotation_interval(event))
    }

    /// Fails for errors that would make the run a waste of time.
    fn refuse_mistakes(&self, plan: &Plan) -> Result<(), Failure> {
        let mut errors = self
            .set_events()
            .filter_map(|(_, event)| Some((event, event.error()?)));
        if let Some((_, error)) =
            errors.find(|(event, error)| reasons::is_mistake(&event.spec().event, error))
        {
            return Err(error.clone().into());
        }
        // What is counted beside the named backend is no reason to run without it.
        let asked_for = self
            .set_events()
            .filter(|(_, event)| !(plan.counts_child() && event.backend() == Some("posix")));
        match refusal_of_all(asked_for.map(|(_, event)| event.error())) {
            Some(denied) => Err(denied.clone().into()),
            None => Ok(()),
        }
    }
}

/// Returns true if an event could not be opened because the target has ended; that of others may be another reason,
/// which is found before the target is looked for.
fn has_ended(set: &EventSet) -> bool {
    let mut errors = set.events().iter().filter_map(SetEvent::error);
    errors.any(|error| error.kind() == ErrorKind::NoSuchTarget)
}

/// Returns the events that could not be read because other programs changed their registers.
fn disturbed(counts: &Counts) -> Vec<(usize, Error)> {
    let mut groups = (0..).map_while(|group| counts.buffer(group));
    if groups.all(|group| group.is_ok()) {
        return Vec::new();
    }
    let events = counts.events().enumerate();
    let refused = events.filter_map(|(e, event)| Some((e, refusal(&event)?)));
    refused
        .filter(|(_, error)| error.kind() == ErrorKind::Interference)
        .collect()
}

/// Returns the reason why an event has no readings, if it has none.
pub(super) fn refusal(event: &EventCount<'_>) -> Option<Error> {
    match event.event().preset() {
        Some(_) => event.term_readings().err(),
        None => event.parts().err(),
    }
}

/// Returns an error if no event can be counted, and one of them for a reason that can be removed: no permission,
/// counters that other programs use or that do not work, a failure of the system.
pub fn refusal_of_all<'a>(errors: impl Iterator<Item = Option<&'a Error>>) -> Option<&'a Error> {
    let errors: Vec<&Error> = errors.collect::<Option<_>>()?;
    errors.into_iter().find(|error| {
        matches!(
            error.kind(),
            ErrorKind::NoPermission | ErrorKind::Busy | ErrorKind::NoSuchDevice | ErrorKind::Os
        )
    })
}

fn events(plan: &Plan, members: &[Member]) -> Vec<MeasuredEvent> {
    let Some(first) = members.first() else {
        return Vec::new();
    };
    let events = first.set.events();
    let named = events.iter().zip(names(&plan.requests, events));
    named
        .enumerate()
        .map(|(index, (event, name))| {
            let info = members
                .iter()
                .find_map(|member| member.set.events()[index].info());
            let mut metrics = plan.metrics.iter();
            let metric = metrics.find(|metric| event.spec().event == metric.event());
            let mut unit = info.map_or_else(Unit::none, Unit::of);
            if let Some(metric) = metric {
                unit.name = metric.unit.clone().into();
            }
            MeasuredEvent {
                name: name.into(),
                spec: event.spec().clone().into(),
                metric: metric.cloned(),
                unit,
                is_gauge: info.is_some_and(|info| info.kind == ValueKind::Gauge),
                backend: event.backend(),
                hidden: plan.requests[event.request()].optional && info.is_none(),
            }
        })
        .collect()
}

/// Returns the names of the events of a set that was opened for these requests.
pub fn names(requests: &[Request], events: &[SetEvent]) -> Vec<String> {
    let mut positions = vec![0; requests.len()];
    let names = events.iter().map(|event| {
        let position = &mut positions[event.request()];
        let label = requests[event.request()].labels.get(*position);
        *position += 1;
        name(label, event)
    });
    names.collect()
}

/// Returns the name as typed, with a modifier where the event is counted in user mode only because the
/// kernel may not be counted.
fn name(label: Option<&Label>, event: &SetEvent) -> String {
    let honours_levels = event
        .info()
        .is_some_and(|info| info.honours.intersects(Filter::LEVELS));
    match (event.fell_back_to_user() && honours_levels, label) {
        (false, Some(label)) => label.to_string(),
        (false, None) => event.name().to_owned(),
        (true, Some(label)) => {
            let mut label = label.clone();
            label.add("u", event.spec());
            label.to_string()
        }
        (true, None) => event.spec().to_string(),
    }
}
