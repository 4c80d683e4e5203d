//! Event sets over a backend that refuses what it is told to and counts nothing else than it is told to.

use std::sync::{Arc, Mutex};

use quipu::text::NoNames;
use quipu::{
    Attributes, Count, Error, ErrorKind, EventInfo, EventSet, EventSetBuilder, EventSpec, Filter,
    GroupSpec, IntoGroups, Part, Reading, Result, Software, Target,
};
use quipu_hal::{Backend, Event, ValueKind};
use quipu_scripted::{Scripted, ScriptedGroup};

/// Opens every event but the named ones it refuses; each reading is 10 more than the last.
struct Script {
    name: &'static str,
    refuses: &'static [(&'static str, ErrorKind)],
    kernel_permitted: bool,
    largest_group: usize,
    parts: usize,
}

impl Script {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            refuses: &[],
            kernel_permitted: true,
            largest_group: usize::MAX,
            parts: 1,
        }
    }

    fn backend(self) -> Arc<dyn Backend> {
        let name = self.name;
        let open = move |spec: &GroupSpec, target: &Target| self.open(spec, target);
        Arc::new(Scripted::new(name, open))
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<ScriptedGroup> {
        let mut infos = Vec::new();
        let mut fails_from = u64::MAX;
        for (index, member) in spec.members.iter().enumerate() {
            let attempted = format!("open {member} on {target}");
            let text = member.event.to_string();
            if let Some((_, kind)) = self.refuses.iter().find(|(name, _)| *name == text) {
                return Err(Error::new(*kind, attempted)
                    .with_member(index)
                    .with_reason(self.name));
            }
            if index >= self.largest_group {
                return Err(Error::new(ErrorKind::TooManyEvents, attempted).with_member(index));
            }
            let is_denied = !self.kernel_permitted && text != "free";
            if is_denied && member.filter.contains(Filter::KERNEL) {
                let error = Error::new(ErrorKind::NoPermission, attempted).with_hint("lower it");
                return Err(match text.as_str() {
                    "no-filter" => error.with_reason("it takes no filter"),
                    _ => error,
                });
            }
            if !self.kernel_permitted && ["no-filter", "absent"].contains(&text.as_str()) {
                return Err(Error::new(ErrorKind::UnsupportedEvent, attempted));
            }
            let mut info = EventInfo::counter(text.clone()).occurring_in(member.event.levels());
            if text == "temperature" {
                info.kind = ValueKind::Gauge;
            }
            if text == "fails-second" {
                fails_from = 2;
            }
            infos.push(info);
        }
        let parts = (0..self.parts)
            .map(|cpu| Part::on_cpu(cpu as u32))
            .collect();
        let mut reads = 0;
        let group = ScriptedGroup::of_members(infos).in_parts(parts);
        Ok(group.reading(move |out| {
            reads += 1;
            if reads >= fails_from {
                return Err(Error::new(ErrorKind::CounterInErrorState, "read the group"));
            }
            for part in 0..out.parts().len() {
                for (member, reading) in out[part].iter_mut().enumerate() {
                    *reading = Reading::new(10 * reads + member as u64, 5, 5);
                }
            }
            Ok(())
        }))
    }
}

fn set(backends: Vec<Script>, events: &str, fall_back: bool) -> EventSet {
    EventSet::builder()
        .events(events)
        .unwrap()
        .user_mode_fallback(fall_back)
        .backends(backends.into_iter().map(Script::backend))
        .open()
        .unwrap()
}

#[test]
fn one_refused_group_sinks_only_its_own_members() {
    let mut backend = Script::new("one");
    backend.refuses = &[("branches", ErrorKind::UnsupportedEvent)];
    let mut set = set(
        vec![backend],
        "cycles,{instructions,branches},page-faults",
        false,
    );
    let names: Vec<_> = set.events().iter().map(|e| e.name().to_owned()).collect();
    assert_eq!(names, ["cycles", "instructions", "branches", "page-faults"]);
    let requests: Vec<_> = set.events().iter().map(quipu::SetEvent::request).collect();
    assert_eq!(requests, [0, 1, 1, 2]);

    let mut counts = set.counts();
    set.read(&mut counts).unwrap();
    assert_eq!(counts.get(0).unwrap().total().unwrap(), Count::Exact(10));
    assert_eq!(counts.get(3).unwrap().total().unwrap(), Count::Exact(10));
    for refused in [1, 2] {
        let error = counts.get(refused).unwrap().total().unwrap_err();
        assert_eq!(
            (error.kind(), error.member()),
            (ErrorKind::UnsupportedEvent, Some(1))
        );
    }
}

#[test]
fn each_group_goes_to_the_first_backend_that_can_count_it() {
    let mut first = Script::new("first");
    first.refuses = &[
        ("cycles", ErrorKind::UnsupportedEvent),
        ("cs", ErrorKind::Busy),
    ];
    let second = Script::new("second");
    let set = set(vec![first, second], "cycles,page-faults", false);
    let backends: Vec<_> = set.events().iter().map(|e| e.backend().unwrap()).collect();
    assert_eq!(backends, ["second", "first"]);
}

#[test]
fn the_error_kept_is_the_first_that_says_more_than_no_such_event() {
    let mut first = Script::new("first");
    first.refuses = &[("cycles", ErrorKind::UnsupportedEvent)];
    let mut second = Script::new("second");
    second.refuses = &[("cycles", ErrorKind::Busy)];
    let mut third = Script::new("third");
    third.refuses = &[("cycles", ErrorKind::NoSuchDevice)];
    let set = set(vec![first, second, third], "cycles", false);
    let error = set.events()[0].error().unwrap();
    assert_eq!(
        (error.kind(), error.reason()),
        (ErrorKind::Busy, Some("second"))
    );
}

#[test]
fn user_mode_is_counted_only_where_asked_and_only_events_that_occur_there() {
    let denied = || {
        let mut backend = Script::new("denied");
        backend.kernel_permitted = false;
        vec![backend]
    };
    let strict = set(denied(), "cycles", false);
    assert_eq!(
        strict.events()[0].error().unwrap().kind(),
        ErrorKind::NoPermission
    );

    let set = set(
        denied(),
        "cycles,cycles:k,context-switches,{page-faults,cpu-migrations},faults:u",
        true,
    );
    let [cycles, kernel, switches, faults, migrations, user] = set.events() else {
        panic!("six events");
    };
    assert!(cycles.fell_back_to_user());
    assert_eq!(cycles.name(), "cycles");
    assert_eq!(cycles.spec().to_string(), "cycles:u");
    assert_eq!(kernel.error().unwrap().kind(), ErrorKind::NoPermission);
    for refused in [switches, faults, migrations] {
        let error = refused.error().unwrap();
        assert_eq!(error.kind(), ErrorKind::NoPermission);
        assert!(
            error
                .reason()
                .unwrap()
                .contains("happens in the kernel only"),
            "{error}"
        );
        assert_eq!(error.hint(), Some("lower it"));
    }
    assert!(user.error().is_none() && !user.fell_back_to_user());
}

#[test]
fn the_terms_of_a_preset_count_in_the_same_modes() {
    let open = |largest_group, formula: &str| {
        let mut backend = Script::new("denied");
        backend.kernel_permitted = false;
        backend.largest_group = largest_group;
        EventSet::builder()
            .preset("P", formula)
            .unwrap()
            .events("P")
            .unwrap()
            .user_mode_fallback(true)
            .backends([backend.backend()])
            .open()
            .unwrap()
    };
    for largest_group in [2, 1] {
        let set = open(largest_group, "free + page-faults");
        let [event] = set.events() else {
            panic!("one event: {:?}", set.events());
        };
        assert!(event.fell_back_to_user(), "{event:?}");
        assert_eq!(
            (event.name(), event.spec().filter),
            ("P", Filter::USER_ONLY)
        );
        let preset = event.preset().unwrap();
        assert_eq!(preset.is_in_one_group(), largest_group == 2);
        for term in preset.terms() {
            assert_eq!(term.spec().filter, Filter::USER_ONLY, "{term:?}");
        }
        let set = open(largest_group, "page-faults + context-switches");
        let error = set.events()[0].error().unwrap();
        assert_eq!(error.kind(), ErrorKind::NoPermission);
        let reason = error.reason().unwrap();
        assert!(
            reason.starts_with("its term context-switches: "),
            "{reason}"
        );
    }
}

#[test]
fn what_is_refused_either_way_tells_the_reason_that_is_true() {
    let mut backend = Script::new("denied");
    backend.kernel_permitted = false;
    let set = set(vec![backend], "absent,no-filter", true);
    let [absent, no_filter] = set.events() else {
        panic!("two events");
    };
    assert_eq!(absent.error().unwrap().kind(), ErrorKind::UnsupportedEvent);
    let error = no_filter.error().unwrap();
    assert_eq!(error.kind(), ErrorKind::NoPermission);
    assert_eq!(error.reason(), Some("it takes no filter"));
}

#[test]
fn differences_skip_gauges_and_keep_errors_of_either_reading() {
    let mut set = set(
        vec![Script::new("one")],
        "cycles,temperature,fails-second",
        false,
    );
    let mut before = set.counts();
    set.read(&mut before).unwrap();
    let mut after = set.counts();
    set.read(&mut after).unwrap();
    assert_eq!(
        after.get(2).unwrap().total().unwrap_err().kind(),
        ErrorKind::CounterInErrorState
    );
    after.subtract(&before).unwrap();
    assert_eq!(after.get(0).unwrap().total().unwrap(), Count::Exact(10));
    assert_eq!(after.get(1).unwrap().total().unwrap(), Count::Exact(20));

    let mut later = before.clone();
    later.subtract(&after).unwrap();
    assert!(later.get(2).unwrap().total().is_err());
}

#[test]
fn a_gauge_in_several_parts_has_no_total() {
    let mut backend = Script::new("one");
    backend.parts = 2;
    let mut set = set(vec![backend], "cycles,temperature", false);
    let mut counts = set.counts();
    set.read(&mut counts).unwrap();
    assert_eq!(counts.get(0).unwrap().total().unwrap(), Count::Exact(20));
    let error = counts.get(1).unwrap().total().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UnsupportedFeature);
    assert_eq!(counts.get(1).unwrap().parts().unwrap().len(), 2);
}

#[test]
fn a_buffer_of_another_set_is_refused() {
    let mut one = set(vec![Script::new("one")], "cycles", false);
    let two = set(vec![Script::new("one")], "cycles", false);
    let error = one.read(&mut two.counts()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
}

#[test]
fn requests_come_as_text_events_groups_and_lists() {
    let set = EventSet::builder()
        .events("cycles:u")
        .unwrap()
        .events([Software::PageFaults, Software::TaskClock])
        .unwrap()
        .events(EventSpec::new(Event::Named("X".into())))
        .unwrap()
        .events(GroupSpec::new([Software::CpuClock, Software::Dummy]))
        .unwrap()
        .backends([Script::new("one").backend()])
        .open()
        .unwrap();
    let names: Vec<_> = set
        .events()
        .iter()
        .map(|e| (e.name(), e.request()))
        .collect();
    assert_eq!(
        names,
        [
            ("cycles:u", 0),
            ("page-faults", 1),
            ("task-clock", 2),
            ("X", 3),
            ("cpu-clock", 4),
            ("dummy", 4)
        ]
    );
    let error = EventSet::builder().events("{cycles").err().unwrap();
    assert_eq!(error.kind(), ErrorKind::InvalidConfiguration);
}

/// Whatever holds requests is the requests that it holds, in their order.
#[test]
fn requests_may_be_owned_borrowed_and_nested() {
    let names = NoNames;
    let [x, y] = ["x", "y"].map(|name| EventSpec::new(Event::Named(name.into())));
    let [one, other] = [GroupSpec::single(x.clone()), GroupSpec::single(y.clone())];
    let both = vec![one.clone(), other.clone()];
    let pair = GroupSpec::new([x.clone(), y.clone()]);
    assert_eq!("x,y".into_groups(&names), Ok(both.clone()));
    assert_eq!("x,y".to_owned().into_groups(&names), Ok(both.clone()));
    assert_eq!((&x).into_groups(&names), Ok(vec![one.clone()]));
    assert_eq!(x.event.clone().into_groups(&names), Ok(vec![one]));
    assert_eq!(y.clone().into_groups(&names), Ok(vec![other]));
    let list = vec![x.clone(), y.clone()];
    assert_eq!((&list[..]).into_groups(&names), Ok(both.clone()));
    assert_eq!(list.into_groups(&names), Ok(both.clone()));
    assert_eq!([&x, &y].into_groups(&names), Ok(both));
    assert_eq!((&pair).into_groups(&names), Ok(vec![pair.clone()]));
    assert_eq!(
        vec![vec![pair.clone()], Vec::new(), vec![pair.clone()]].into_groups(&names),
        Ok(vec![pair.clone(), pair])
    );
}

/// Those of a set may be given before events and after them, and take the place of others.
#[test]
fn a_group_is_opened_with_the_attributes_of_its_set_and_its_own() {
    let attributes = Arc::new(Mutex::new(Vec::<Attributes>::new()));
    let kept = Arc::clone(&attributes);
    // It opens nothing, and keeps the attributes that it was asked for.
    let backend = Scripted::new("asked", move |spec, target| {
        kept.lock().unwrap().push(spec.attributes);
        let attempted = format!("open a group on {target}");
        Err(Error::new(ErrorKind::UnsupportedEvent, attempted))
    });
    let mut builder = EventSet::builder();
    builder.backends([Arc::new(backend) as Arc<dyn Backend>]);
    let asked = |builder: &EventSetBuilder| {
        builder.open().unwrap();
        std::mem::take(&mut *attributes.lock().unwrap())
    };
    let plain = Attributes::default().with_disabled(true);
    builder.events("a:D,b").unwrap();
    assert_eq!(asked(&builder), [plain.with_pinned(true), plain]);
    let inherited = plain.with_inherit(true);
    builder.inherit(true).events("{c,d}:e").unwrap();
    assert_eq!(
        asked(&builder),
        [
            inherited.with_pinned(true),
            inherited,
            inherited.with_exclusive(true),
        ]
    );
    builder.inherit_thread(true).remove_on_exec(true);
    let of_threads = |group: Attributes| {
        let group = group.with_inherit_thread(true);
        group.with_remove_on_exec(true)
    };
    let each = [
        inherited.with_pinned(true),
        inherited,
        inherited.with_exclusive(true),
    ];
    assert_eq!(asked(&builder), each.map(of_threads));
    builder
        .inherit(false)
        .inherit_thread(false)
        .remove_on_exec(false);
    let own = [plain.with_pinned(true), plain, plain.with_exclusive(true)];
    assert_eq!(asked(&builder), own);
}

#[test]
fn a_set_counts_nothing_before_it_is_enabled_whatever_else_is_set() {
    let mut set = EventSet::builder()
        .events("page-faults")
        .unwrap()
        .inherit(true)
        .pinned(true)
        .exclusive(true)
        .enable_on_exec(true)
        .open()
        .unwrap();
    if let Some(error) = set.events()[0].error() {
        println!("SKIP page faults cannot be counted: {error:#}");
        return;
    }
    let mut counts = set.counts();
    let touched = vec![1u8; 4 << 20];
    std::hint::black_box(&touched);
    set.read(&mut counts).unwrap();
    assert_eq!(counts.get(0).unwrap().total(), Ok(Count::Exact(0)));
}
