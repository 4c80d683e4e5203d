//! Descriptions of event sets.

use std::fmt;
use std::iter;
use std::sync::Arc;

use quipu_events_format::Formula;
use quipu_hal::{
    Attributes, Backend, Error, ErrorKind, Event, EventSpec, GroupSpec, Result, Target,
};

use crate::counts::EventId;
use crate::expansion::ExpandedGroup;
use crate::open::{OpenGroup, Opener, alone, may_open_apart};
use crate::{EventSet, IntoGroups, Machine, NativeEvents, SetEvent};

/// A description of an [`EventSet`], from which any number of sets can be opened.
///
/// A set counts from [`EventSet::enable`] on, or from execve(2) with
/// [`enable_on_exec`](Self::enable_on_exec); never from the moment it is opened.
///
/// ```
/// use quipu::{EventSet, Target};
///
/// // One set for each of four threads, all of the same events.
/// let mut faults = EventSet::builder();
/// faults.events("minor-faults,major-faults")?.target(Target::CurrentThread);
/// let counts: Vec<_> = std::thread::scope(|scope| {
///     let threads: Vec<_> = (0..4)
///         .map(|_| {
///             scope.spawn(|| {
///                 let mut set = faults.open()?;
///                 let mut counts = set.counts();
///                 set.enable()?;
///                 set.read(&mut counts)?;
///                 Ok(counts)
///             })
///         })
///         .collect();
///     threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
/// });
/// # counts.into_iter().collect::<quipu::Result<Vec<quipu::Counts>>>()?;
/// # Ok::<(), quipu::Error>(())
/// ```
#[derive(Clone)]
pub struct EventSetBuilder {
    /// The groups asked for, with the attributes of the set added to their own.
    requests: Vec<GroupSpec>,
    /// The requests that have attributes of their own, with these.
    own_attributes: Vec<(usize, Attributes)>,
    target: Target,
    attributes: Attributes,
    user_mode_fallback: bool,
    cpu_fallback: bool,
    child: Option<i32>,
    backends: Option<Vec<Arc<dyn Backend>>>,
    machine: Option<Arc<Machine>>,
    presets: Vec<(String, Arc<Formula>)>,
}

impl EventSetBuilder {
    pub(crate) fn new() -> Self {
        Self {
            requests: Vec::new(),
            own_attributes: Vec::new(),
            target: Target::CurrentThread,
            attributes: Attributes::default().with_disabled(true),
            user_mode_fallback: false,
            cpu_fallback: false,
            child: None,
            backends: None,
            machine: None,
            presets: Vec::new(),
        }
    }

    /// Adds events and groups, in order; may be called again. Names in text are read as those of the
    /// [machine](Self::machine) set before, where unit masks end like modifiers.
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if a text is malformed.
    pub fn events(&mut self, events: impl IntoGroups) -> Result<&mut Self> {
        let native = match &self.machine {
            Some(machine) => &machine.native,
            None => NativeEvents::this(),
        };
        let groups = events.into_groups(&**native);
        let first = self.requests.len();
        match first {
            0 => self.requests = groups?,
            _ => self.requests.extend(groups?),
        }
        for (request, group) in self.requests.iter_mut().enumerate().skip(first) {
            if group.attributes != Attributes::default() {
                self.own_attributes.push((request, group.attributes));
            }
            group.attributes = with_set(self.attributes, group.attributes);
        }
        Ok(self)
    }

    /// Adds one event, alone in its group, and returns the id by which its counts are found.
    ///
    /// ```
    /// use quipu::EventSet;
    ///
    /// let mut builder = EventSet::builder();
    /// let [clock, faults] = [builder.event("task-clock:u")?, builder.event("page-faults:u")?];
    /// let mut set = builder.open()?;
    /// let mut counts = set.counts();
    /// set.enable()?;
    /// set.read(&mut counts)?;
    /// println!("{:?} ns, {:?} faults", counts.of(clock).total(), counts.of(faults).total());
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`events`](Self::events); [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if it is not one event,
    /// of which nothing is added.
    pub fn event(&mut self, event: impl IntoGroups) -> Result<EventId> {
        let requests = self.requests.len();
        let id = EventId(self.requests.iter().map(|group| group.members.len()).sum());
        self.events(event)?;
        let added = self.requests[requests..].iter();
        let added: usize = added.map(|group| group.members.len()).sum();
        match added {
            1 => Ok(id),
            events => {
                self.requests.truncate(requests);
                self.own_attributes
                    .retain(|(request, _)| *request < requests);
                Err(Error::new(ErrorKind::InvalidConfiguration, "add an event")
                    .with_reason(format!("these are {events} events")))
            }
        }
    }

    /// Sets what is measured; the calling thread by default.
    pub fn target(&mut self, target: Target) -> &mut Self {
        self.target = target;
        self
    }

    /// Sets whether threads and processes that the target makes later are counted too
    /// ([`Attributes::inherit`]). Off by default.
    pub fn inherit(&mut self, yes: bool) -> &mut Self {
        self.restate(self.attributes.with_inherit(yes))
    }

    /// Sets whether, of what [`inherit`](Self::inherit) follows, only threads are counted
    /// ([`Attributes::inherit_thread`]; Linux since 5.13). Off by default.
    pub fn inherit_thread(&mut self, yes: bool) -> &mut Self {
        self.restate(self.attributes.with_inherit_thread(yes))
    }

    /// Sets whether every group is on the PMU or in the error state, as `:D` does for one
    /// ([`Attributes::pinned`]). Off by default.
    pub fn pinned(&mut self, yes: bool) -> &mut Self {
        self.restate(self.attributes.with_pinned(yes))
    }

    /// Sets whether every group is alone on the PMU while it counts, as `:e` does for one
    /// ([`Attributes::exclusive`]). Off by default.
    pub fn exclusive(&mut self, yes: bool) -> &mut Self {
        self.restate(self.attributes.with_exclusive(yes))
    }

    /// Sets whether counting starts when the target executes a program
    /// ([`Attributes::enable_on_exec`]). Off by default: [`EventSet::enable`] starts it.
    pub fn enable_on_exec(&mut self, yes: bool) -> &mut Self {
        self.restate(self.attributes.with_enable_on_exec(yes))
    }

    /// Sets a command as what is measured: its process and all that it starts, from execve(2) on. It sets the target,
    /// [`inherit`](Self::inherit) and [`enable_on_exec`](Self::enable_on_exec).
    ///
    /// ```
    /// # #[cfg(unix)]
    /// # fn main() -> quipu::Result<()> {
    /// use std::process::{Command, Stdio};
    ///
    /// use quipu::EventSet;
    /// use quipu::command::SuspendedCommand;
    ///
    /// let mut command = Command::new("ls");
    /// command.stdout(Stdio::null());
    /// let suspended = SuspendedCommand::of(command)?;
    /// let mut set = EventSet::builder().events("page-faults")?.of_command(&suspended).open()?;
    /// let mut counts = set.counts();
    /// let exit = suspended.resume()?.wait()?;
    /// set.read(&mut counts)?;
    /// println!("{}: {:?} page faults", exit.status, counts.by_name("page-faults").map(|e| e.total()));
    /// # Ok(())
    /// # }
    /// # #[cfg(not(unix))]
    /// # fn main() {}
    /// ```
    #[cfg(all(feature = "command", unix))]
    pub fn of_command(&mut self, command: &crate::command::SuspendedCommand) -> &mut Self {
        self.target(Target::Process(command.pid()))
            .inherit(true)
            .enable_on_exec(true)
    }

    /// Sets whether a task is counted no longer once it executes a program
    /// ([`Attributes::remove_on_exec`]; Linux since 5.13). Off by default.
    pub fn remove_on_exec(&mut self, yes: bool) -> &mut Self {
        self.restate(self.attributes.with_remove_on_exec(yes))
    }

    /// Adds the attributes of the set to those that each group has by itself.
    fn restate(&mut self, attributes: Attributes) -> &mut Self {
        self.attributes = attributes;
        for group in &mut self.requests {
            group.attributes = with_set(attributes, Attributes::default());
        }
        for (request, own) in &self.own_attributes {
            self.requests[*request].attributes = with_set(attributes, *own);
        }
        self
    }

    /// Sets the fallback to user mode, group by group, where counting in the kernel is not permitted and
    /// the events occur in user mode ([`SetEvent::fell_back_to_user`](crate::SetEvent::fell_back_to_user)).
    /// Off by default.
    pub fn user_mode_fallback(&mut self, yes: bool) -> &mut Self {
        self.user_mode_fallback = yes;
        self
    }

    /// Sets the fallback to CPUs, for a thread or process on a backend that counts whole CPUs only, as
    /// bare registers do: all CPUs if the backend reaches them all, else the one that the calling thread
    /// is on ([`SetEvent::fell_back_to_cpus`](crate::SetEvent::fell_back_to_cpus)). Such a group
    /// heeds neither [`inherit`](Attributes::inherit) and [`inherit_thread`](Attributes::inherit_thread) nor
    /// [`enable_on_exec`](Attributes::enable_on_exec) and [`remove_on_exec`](Attributes::remove_on_exec); where the others rely on the latter,
    /// [`EventSet::enable_on_cpus`] starts it. Off by default.
    pub fn cpu_fallback(&mut self, yes: bool) -> &mut Self {
        self.cpu_fallback = yes;
        self
    }

    /// Sets the child process that is counted, with its own children, where CPUs are asked for and a backend
    /// follows tasks only. None by default.
    pub fn child_of_cpus(&mut self, pid: i32) -> &mut Self {
        self.child = Some(pid);
        self
    }

    /// Sets the backends to try, in order; by default the usable ones of [`Machine::this`].
    pub fn backends(&mut self, backends: impl IntoIterator<Item = Arc<dyn Backend>>) -> &mut Self {
        self.backends = Some(backends.into_iter().collect());
        self
    }

    /// Sets the machine whose backends and presets are used; by default [`Machine::this`]. With
    /// [`backends`](Self::backends), only its presets are.
    pub fn machine(&mut self, machine: Arc<Machine>) -> &mut Self {
        self.machine = Some(machine);
        self
    }

    /// Defines a name for a formula over events, for this set; it hides other events of that name. The
    /// events of the formula are not presets themselves.
    ///
    /// ```
    /// use quipu::EventSet;
    ///
    /// let mut set = EventSet::builder()
    ///     .preset("ALL_FAULTS", "minor-faults + major-faults")?
    ///     .events("ALL_FAULTS:u")?
    ///     .open()?;
    /// let mut counts = set.counts();
    /// set.read(&mut counts)?;
    /// println!("{:?}", counts.by_name("ALL_FAULTS:u").map(|faults| faults.total()));
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`InvalidConfiguration`](ErrorKind::InvalidConfiguration) if the text is no formula, or one
    /// without events.
    pub fn preset(&mut self, name: impl Into<String>, formula: &str) -> Result<&mut Self> {
        let name = name.into();
        let refused = |reason: String| {
            Error::new(ErrorKind::InvalidConfiguration, format!("define {name}"))
                .with_reason(reason)
        };
        let formula = Formula::parse(formula).map_err(|error| refused(format!("{error}")))?;
        if formula.events().is_empty() {
            return Err(refused("the formula counts no event".into()));
        }
        self.presets.push((name, Arc::new(formula)));
        Ok(self)
    }

    /// Opens every group on the first backend that can count it.
    ///
    /// A preset of several events is opened as one group if there are counters for that, otherwise
    /// event by event; in a group with others, its events become members of that group.
    ///
    /// # Errors
    /// [`NoSuchDevice`](ErrorKind::NoSuchDevice) if there is no backend at all. Groups that cannot be
    /// opened are no error of the set; see [`SetEvent::error`](crate::SetEvent::error).
    pub fn open(&self) -> Result<EventSet> {
        let opener = self.opener()?;
        let members = self.requests.iter().map(|asked| asked.members.len());
        let mut events = Vec::with_capacity(members.sum());
        let mut groups = Vec::with_capacity(self.requests.len());
        let open = |expanded: &ExpandedGroup<'_>, groups: &mut Vec<OpenGroup>| {
            let first = groups.len();
            let outcome = opener.open(expanded.spec(), expanded.is_one_preset(), groups);
            (first, outcome)
        };
        for (request, asked) in self.requests.iter().enumerate() {
            let formulas = match self.formulas(asked) {
                Ok(formulas) => formulas,
                Err(error) => {
                    for member in &asked.members {
                        let state = Err(error.clone());
                        events.push(SetEvent::new(member, request, false, state));
                    }
                    continue;
                }
            };
            let expanded = ExpandedGroup::new(asked, formulas);
            let (first, outcome) = open(&expanded, &mut groups);
            if asked.attributes.weak && outcome.as_ref().is_err_and(may_open_apart) {
                for (at, member) in asked.members.iter().enumerate() {
                    let alone = alone(member, asked);
                    let expanded = ExpandedGroup::new(&alone, expanded.formulas_of(at));
                    let (first, outcome) = open(&expanded, &mut groups);
                    events.extend(expanded.events(request, (first, &outcome, &groups)));
                }
                continue;
            }
            events.extend(expanded.events(request, (first, &outcome, &groups)));
        }
        Ok(EventSet::new(events.into(), groups, &self.target))
    }

    /// Opens every group as [`open`](Self::open) does, if each event can be counted.
    ///
    /// ```
    /// use quipu::EventSet;
    ///
    /// let mut builder = EventSet::builder();
    /// builder.events("task-clock,NO_SUCH_EVENT")?;
    /// assert_eq!(builder.open()?.events().len(), 2);
    /// let refused = builder.open_all().expect_err("no such event");
    /// assert!(refused.to_string().contains("NO_SUCH_EVENT"));
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// As `open`, and the refusal of the first event that cannot be counted.
    pub fn open_all(&self) -> Result<EventSet> {
        let set = self.open()?;
        match set.events().iter().find_map(SetEvent::error) {
            Some(error) => Err(error.clone()),
            None => Ok(set),
        }
    }

    /// Opens the events as [`open`](Self::open) does, in the place of a set that is stopped, has the first of them and was
    /// opened with the same settings. A backend may keep the counters of that set, so that a group which grows event
    /// by event is not opened as often; values go on from where they are, or from zero.
    ///
    /// ```
    /// use quipu::{EventSet, GroupSpec, Software};
    ///
    /// let [clock, faults] = [Software::TaskClock, Software::PageFaults];
    /// let set = EventSet::builder().events(GroupSpec::new([clock]))?.open()?;
    /// let set = EventSet::builder().events(GroupSpec::new([clock, faults]))?.extend(set)?;
    /// assert_eq!(set.events().len(), 2);
    /// # Ok::<(), quipu::Error>(())
    /// ```
    ///
    /// # Errors
    /// As `open`; the set is closed then.
    pub fn extend(&self, set: EventSet) -> Result<EventSet> {
        match self.extended(set)? {
            Some(set) => Ok(set),
            None => self.open(),
        }
    }

    /// Extends a set of one group, if its backend can count the group that is asked for.
    fn extended(&self, set: EventSet) -> Result<Option<EventSet>> {
        let opener = self.opener()?;
        let ([asked], Some((before, open))) = (&self.requests[..], set.into_only_group()) else {
            return Ok(None);
        };
        let is_first = before.len() <= asked.members.len()
            && iter::zip(&*before, &asked.members).all(|(before, asked)| before.spec() == asked);
        let formulas = self.formulas(asked);
        let (true, Ok(formulas)) = (is_first, formulas) else {
            return Ok(None);
        };
        let expanded = ExpandedGroup::new(asked, formulas);
        let backends = opener.backends_for(expanded.spec()).unwrap_or_default();
        let Some(backend) = backends.iter().find(|b| b.name() == open.backend) else {
            return Ok(None);
        };
        let Ok(group) = backend.extend(open.group, expanded.spec(), &self.target) else {
            return Ok(None);
        };
        let groups = vec![OpenGroup { group, ..open }];
        let events = expanded.events(0, (0, &Ok(()), &groups)).collect();
        Ok(Some(EventSet::new(events, groups, &self.target)))
    }

    fn opener(&self) -> Result<Opener<'_>> {
        let given = self.machine.as_deref();
        let (backends, machine) = match &self.backends {
            Some(backends) => (&**backends, None),
            None => {
                let machine = given.unwrap_or_else(|| Machine::this());
                (machine.counting()?, Some(machine))
            }
        };
        Ok(Opener {
            backends,
            machine,
            child: self.child,
            target: &self.target,
            user_mode_fallback: self.user_mode_fallback,
            cpu_fallback: self.cpu_fallback,
        })
    }

    /// Returns the formula that each member of a group is a name for; none if no member is one.
    fn formulas(&self, asked: &GroupSpec) -> Result<Vec<Option<Arc<Formula>>>> {
        let mut formulas = Vec::new();
        for (at, member) in asked.members.iter().enumerate() {
            if let Some(formula) = self.formula(member)? {
                while formulas.len() < at {
                    formulas.push(None);
                }
                formulas.push(Some(formula));
            } else if !formulas.is_empty() {
                formulas.push(None);
            }
        }
        Ok(formulas)
    }

    /// Returns the formula that an event is a name for, if it is one.
    fn formula(&self, spec: &EventSpec) -> Result<Option<Arc<Formula>>> {
        let formula = self.known_formula(spec)?;
        match &formula {
            Some(formula) if spec.overflow.is_some() && formula.events().len() > 1 => {
                let attempted = format!("have a signal sent for overflows of {spec}");
                Err(Error::new(ErrorKind::UnsupportedFeature, attempted)
                    .with_reason("it is a preset of several events, which no counter counts"))
            }
            _ => Ok(formula),
        }
    }

    fn known_formula(&self, spec: &EventSpec) -> Result<Option<Arc<Formula>>> {
        let native = match (&self.machine, &self.backends) {
            (Some(machine), _) => Some(&machine.native),
            (None, None) => Some(NativeEvents::this()),
            (None, Some(_)) => None,
        };
        let Event::Named(name) = &spec.event else {
            return native.map_or(Ok(None), |native| native.user_defined(&spec.event));
        };
        let own = self.presets.iter().rev().find(|(own, _)| own == name);
        match (own, native) {
            (Some((_, formula)), _) => Ok(Some(Arc::clone(formula))),
            (None, Some(native)) => native.formula(name),
            (None, None) => Ok(None),
        }
    }
}

/// Returns the attributes of a group, with each flag of its set.
fn with_set(set: Attributes, group: Attributes) -> Attributes {
    group
        .with_inherit(set.inherit || group.inherit)
        .with_inherit_thread(set.inherit_thread || group.inherit_thread)
        .with_pinned(set.pinned || group.pinned)
        .with_exclusive(set.exclusive || group.exclusive)
        .with_enable_on_exec(set.enable_on_exec || group.enable_on_exec)
        .with_remove_on_exec(set.remove_on_exec || group.remove_on_exec)
        .with_disabled(set.disabled || group.disabled)
}

impl fmt::Debug for EventSetBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let backends = self.backends.as_deref();
        let names = backends.map(|all| all.iter().map(Backend::name).collect::<Vec<_>>());
        f.debug_struct("EventSetBuilder")
            .field("requests", &self.requests)
            .field("target", &self.target)
            .field("attributes", &self.attributes)
            .field("user_mode_fallback", &self.user_mode_fallback)
            .field("cpu_fallback", &self.cpu_fallback)
            .field("child_of_cpus", &self.child)
            .field("backends", &names)
            .field("presets", &self.presets)
            .finish_non_exhaustive()
    }
}
