//! Requests of a builder to backends, group by group: a scripted one writes them down.

use std::sync::{Arc, Mutex};

use quipu::{
    Attributes, Error, ErrorKind, Event, EventSet, EventSetBuilder, EventSpec, GroupSpec,
    IntoGroups, OverflowSignal, Result, Target,
};
use quipu_hal::{Backend, Capabilities, Features, Group, TargetKinds};
use quipu_scripted::ScriptedGroup;

type Refuses = fn(&GroupSpec) -> Option<ErrorKind>;

/// A backend that refuses what `refuses` says and writes down all that it is asked to open.
#[derive(Clone)]
struct Asked {
    name: &'static str,
    capabilities: Capabilities,
    refuses: Refuses,
    groups: Arc<Mutex<Vec<(GroupSpec, Target)>>>,
    /// The members of groups that took over the counters of smaller ones.
    extended: Arc<Mutex<Vec<usize>>>,
}

impl Asked {
    fn new(refuses: Refuses) -> Self {
        Self {
            name: "asked",
            capabilities: Capabilities::none(),
            refuses,
            groups: Arc::default(),
            extended: Arc::default(),
        }
    }

    fn of_targets(mut self, targets: TargetKinds) -> Self {
        self.capabilities.targets = targets;
        self
    }

    fn builder(&self, events: impl IntoGroups) -> EventSetBuilder {
        let mut builder = EventSet::builder();
        builder.backends([Arc::new(self.clone()) as Arc<dyn Backend>]);
        builder.events(events).expect("a list");
        builder
    }

    fn taken(&self) -> Vec<(GroupSpec, Target)> {
        std::mem::take(&mut *self.groups.lock().expect("no test panics with it"))
    }

    /// Returns the groups that were asked for since the last call, as text.
    fn events(&self) -> Vec<String> {
        let taken = self.taken().into_iter();
        let of_group = |(group, _): (GroupSpec, Target)| {
            let members: Vec<String> = group.members.iter().map(EventSpec::to_string).collect();
            members.join(",")
        };
        taken.map(of_group).collect()
    }

    fn attributes(&self) -> Vec<Attributes> {
        let taken = self.taken().into_iter();
        taken.map(|(group, _)| group.attributes).collect()
    }
}

impl Backend for Asked {
    fn name(&self) -> &'static str {
        self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        let mut groups = self.groups.lock().expect("no test panics with it");
        groups.push((spec.clone(), target.clone()));
        match (self.refuses)(spec) {
            Some(kind) => Err(Error::new(kind, "open it").with_reason(self.name)),
            None => Ok(Box::new(ScriptedGroup::of(spec))),
        }
    }

    fn extend(
        &self,
        group: Box<dyn Group>,
        spec: &GroupSpec,
        target: &Target,
    ) -> Result<Box<dyn Group>> {
        let mut extended = self.extended.lock().expect("no test panics with it");
        extended.push(group.members().len());
        self.open(spec, target)
    }
}

fn nothing(_: &GroupSpec) -> Option<ErrorKind> {
    None
}

fn everything(_: &GroupSpec) -> Option<ErrorKind> {
    Some(ErrorKind::UnsupportedEvent)
}

fn kinds(set: &EventSet) -> Vec<Option<ErrorKind>> {
    let errors = set.events().iter().map(quipu::SetEvent::error);
    errors.map(|error| error.map(Error::kind)).collect()
}

#[test]
fn each_attribute_of_a_set_is_that_of_its_groups() {
    type Set = fn(&mut EventSetBuilder, bool) -> &mut EventSetBuilder;
    type With = fn(Attributes, bool) -> Attributes;
    let all: [(Set, With); 6] = [
        (EventSetBuilder::inherit, Attributes::with_inherit),
        (
            EventSetBuilder::inherit_thread,
            Attributes::with_inherit_thread,
        ),
        (EventSetBuilder::pinned, Attributes::with_pinned),
        (EventSetBuilder::exclusive, Attributes::with_exclusive),
        (
            EventSetBuilder::enable_on_exec,
            Attributes::with_enable_on_exec,
        ),
        (
            EventSetBuilder::remove_on_exec,
            Attributes::with_remove_on_exec,
        ),
    ];
    let plain = Attributes::default().with_disabled(true);
    for (set, with) in all {
        let asked = Asked::new(nothing);
        let mut builder = asked.builder("a,b:D");
        set(&mut builder, true).events("c:e").expect("a list");
        builder.open().expect("a backend");
        let own = [plain, plain.with_pinned(true), plain.with_exclusive(true)];
        assert_eq!(asked.attributes(), own.map(|group| with(group, true)));
        set(&mut builder, false).open().expect("a backend");
        assert_eq!(asked.attributes(), own);
    }
}

/// Nothing of them is added, and later ones do not get the attributes that they asked for.
#[test]
fn an_event_that_is_refused_leaves_those_before_it_as_they_are() {
    let asked = Asked::new(nothing);
    let mut builder = asked.builder("a:D,{b,c}:e");
    for several in ["d:D,e:D", "{d,e}:D", "d:D,e"] {
        let refused = builder.event(several).expect_err("they are two");
        assert_eq!(refused.kind(), ErrorKind::InvalidConfiguration);
        assert_eq!(refused.reason(), Some("these are 2 events"));
    }
    builder.event("f").expect("one");
    builder.inherit(true).event("g:D").expect("one");
    builder.open().expect("a backend");
    let plain = Attributes::default().with_disabled(true).with_inherit(true);
    let [pinned, exclusive] = [plain.with_pinned(true), plain.with_exclusive(true)];
    assert_eq!(asked.attributes(), [pinned, exclusive, plain, pinned]);
}

#[test]
fn a_signal_is_sent_for_what_one_counter_counts() {
    let asked = Asked::new(nothing);
    let open = |name: &str| {
        let spec = EventSpec::new(Event::Named(name.to_owned()));
        let mut builder = asked.builder(spec.with_overflow(OverflowSignal::new(1000, 10)));
        builder.preset("SUM", "a + b").expect("a formula");
        builder.preset("ONE", "a").expect("a formula");
        kinds(&builder.open().expect("a backend"))
    };
    assert_eq!(open("SUM"), [Some(ErrorKind::UnsupportedFeature)]);
    assert_eq!(asked.events(), [""; 0], "nothing is opened of it");
    assert_eq!(open("ONE"), [None]);
    assert_eq!(open("a"), [None]);
    assert_eq!(asked.taken().len(), 2);
}

/// A weak group, `:W`, is counted event by event if there are not enough counters for it.
#[test]
fn a_weak_group_that_does_not_fit_is_opened_apart() {
    fn two_at_most(spec: &GroupSpec) -> Option<ErrorKind> {
        (spec.members.len() > 2).then_some(ErrorKind::TooManyEvents)
    }
    fn busy(_: &GroupSpec) -> Option<ErrorKind> {
        Some(ErrorKind::Busy)
    }
    let open = |asked: &Asked, events: &str| {
        let mut builder = asked.builder(events);
        builder.preset("SUM", "a + b").expect("a formula");
        kinds(&builder.open().expect("a backend"))
    };
    let asked = Asked::new(two_at_most);
    assert_eq!(open(&asked, "{c,SUM,d}:W"), [None; 3]);
    assert_eq!(asked.events(), ["c,a,b,d", "c", "a,b", "d"]);
    assert_eq!(open(&asked, "{c,d}:W"), [None; 2]);
    assert_eq!(asked.events(), ["c,d"]);
    let too_many = Some(ErrorKind::TooManyEvents);
    assert_eq!(open(&asked, "{c,SUM,d}"), [too_many; 3]);
    assert_eq!(asked.events(), ["c,a,b,d"]);
    let asked = Asked::new(busy);
    assert_eq!(open(&asked, "{c,d}:W"), [Some(ErrorKind::Busy); 2]);
    assert_eq!(asked.events(), ["c,d"], "the counters are no fewer apart");
    assert_eq!(open(&asked, "SUM"), [Some(ErrorKind::Busy)]);
    assert_eq!(asked.events(), ["a,b"]);
}

/// A backend that counts software events knows best which of them there are not.
#[test]
fn the_reason_kept_is_that_of_a_backend_of_such_events() {
    for (events, knows, told) in [
        ("page-faults", true, "second"),
        ("page-faults", false, "first"),
        ("cycles", true, "first"),
        ("{page-faults,cycles}", true, "first"),
    ] {
        let [mut first, mut second] = [Asked::new(everything), Asked::new(everything)];
        (first.name, second.name) = ("first", "second");
        if knows {
            second.capabilities.features = Features::SOFTWARE_EVENTS;
        }
        let backends = [first, second].map(|asked| Arc::new(asked) as Arc<dyn Backend>);
        let mut builder = EventSet::builder();
        let set = builder.events(events).expect("a list").backends(backends);
        let set = set.open().expect("two backends");
        let error = set.events()[0].error().expect("neither has it");
        assert_eq!(error.reason(), Some(told), "{events}");
    }
}

/// A child is counted with the attributes of the set, and its own children.
#[test]
fn a_child_in_the_place_of_cpus_has_the_attributes_of_the_set() {
    fn in_turn(spec: &GroupSpec) -> Option<ErrorKind> {
        let is_of_child = spec.attributes.inherit;
        (!is_of_child).then_some(ErrorKind::UnsupportedFeature)
    }
    let open = |targets: TargetKinds, on_exec: bool| {
        let asked = Asked::new(in_turn).of_targets(targets);
        let mut builder = asked.builder("a");
        builder.target(Target::AllCpus).child_of_cpus(77);
        let builder = builder.enable_on_exec(on_exec);
        let builder = builder.remove_on_exec(on_exec).inherit_thread(on_exec);
        let outcome = kinds(&builder.open().expect("a backend"));
        (outcome, asked.taken())
    };
    for on_exec in [false, true] {
        let (outcome, asked) = open(TargetKinds::PROCESS, on_exec);
        assert_eq!(outcome, [None]);
        let [(of_cpus, all), (of_child, child)] = &asked[..] else {
            panic!("{asked:?}");
        };
        assert_eq!((all, child), (&Target::AllCpus, &Target::Process(77)));
        let attributes = of_cpus.attributes.with_inherit(true);
        assert_eq!(of_child.attributes, attributes);
        assert_eq!(attributes.enable_on_exec, on_exec);
    }
    // It reaches CPUs, and refuses for another reason.
    let (outcome, asked) = open(TargetKinds::PROCESS | TargetKinds::ALL_CPUS, false);
    assert_eq!(outcome, [Some(ErrorKind::UnsupportedFeature)]);
    assert_eq!(asked.len(), 1);
}

/// Only a backend that follows no task counts CPUs in its place, and with no attribute of tasks.
#[test]
fn cpus_take_the_place_of_tasks_where_these_are_never_followed() {
    fn tasks(spec: &GroupSpec) -> Option<ErrorKind> {
        let is_of_tasks = spec.attributes.inherit;
        is_of_tasks.then_some(ErrorKind::UnsupportedFeature)
    }
    let open = |targets: TargetKinds, fallback: bool| {
        let asked = Asked::new(tasks).of_targets(targets);
        let mut builder = asked.builder("a");
        builder.target(Target::Process(77)).cpu_fallback(fallback);
        builder.inherit(true).inherit_thread(true);
        builder.enable_on_exec(true).remove_on_exec(true);
        let set = builder.open().expect("a backend");
        let of_cpus = set.events()[0].fell_back_to_cpus().cloned();
        (of_cpus, asked.taken())
    };
    let (of_cpus, asked) = open(TargetKinds::ALL_CPUS, true);
    assert_eq!(of_cpus, Some(Target::AllCpus));
    let attributes = Attributes::default().with_disabled(true);
    assert_eq!(asked[1].0.attributes, attributes);
    assert_eq!(asked[1].1, Target::AllCpus);
    for (targets, fallback) in [
        (TargetKinds::ALL_CPUS, false),
        (TargetKinds::CPU, true),
        (TargetKinds::PROCESS | TargetKinds::ALL_CPUS, true),
        (TargetKinds::THREAD | TargetKinds::ALL_CPUS, true),
        (TargetKinds::CURRENT_THREAD, true),
    ] {
        let (of_cpus, asked) = open(targets, fallback);
        assert_eq!((of_cpus, asked.len()), (None, 1), "{targets:?}");
    }
}

#[test]
fn counters_are_taken_over_from_one_group_that_begins_another() {
    let extended = |open: &str, wanted: &str| {
        let asked = Asked::new(nothing);
        let set = asked.builder(open).open().expect("a backend");
        let larger = asked.builder(wanted).extend(set).expect("a backend");
        assert_eq!(kinds(&larger), vec![None; larger.events().len()]);
        std::mem::take(&mut *asked.extended.lock().expect("no test panics with it"))
    };
    assert_eq!(extended("{a,b}", "{a,b,c}"), [2]);
    assert_eq!(extended("{a,b}", "{a,b}"), [2]);
    assert_eq!(extended("a", "{a,b}"), [1]);
    for (open, wanted) in [
        ("{a,b}", "a"),
        ("{a,b}", "{b,a,c}"),
        ("{a,b}", "{a,c,b}"),
        ("a", "{a:u,b}"),
        ("a,b", "{a,b}"),
        ("a", "a,b"),
        ("b", "a"),
    ] {
        assert_eq!(extended(open, wanted), [0; 0], "{open} to {wanted}");
    }
}

/// It counts other CPUs, or in other modes, than the larger set asks for.
#[test]
fn counters_of_a_fallback_are_not_taken_over() {
    fn tasks(spec: &GroupSpec) -> Option<ErrorKind> {
        let is_of_tasks = spec.attributes.inherit;
        is_of_tasks.then_some(ErrorKind::UnsupportedFeature)
    }
    fn kernel(spec: &GroupSpec) -> Option<ErrorKind> {
        let in_kernel = |member: &EventSpec| member.filter.contains(quipu::Filter::KERNEL);
        let all = spec.members.iter().any(in_kernel);
        all.then_some(ErrorKind::NoPermission)
    }
    for (refuses, of_tasks) in [(tasks as Refuses, true), (kernel, false)] {
        let asked = Asked::new(refuses).of_targets(TargetKinds::ALL_CPUS);
        let builder = |events| {
            let mut builder = asked.builder(events);
            builder.inherit(of_tasks);
            builder.cpu_fallback(true).user_mode_fallback(true);
            builder
        };
        let set = builder("a").open().expect("a backend");
        assert_eq!(kinds(&set), [None]);
        let larger = builder("{a,b}").extend(set).expect("a backend");
        assert_eq!(kinds(&larger), [None; 2]);
        let extended = asked.extended.lock().expect("no test panics with it");
        assert_eq!(*extended, [0; 0]);
    }
}
