//! Calls that a set passes on to its groups, and answers of these.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use quipu::{Error, ErrorKind, EventInfo, EventSet, GroupSpec, Part, ReadBuf, Result, Target};
use quipu_hal::{Backend, Capabilities, Group, Overflows, Simultaneity, UserReads};

/// Opens groups that do as the names of their events say.
struct Outspoken {
    capabilities: Capabilities,
    calls: Arc<Mutex<Vec<String>>>,
}

struct OutspokenGroup {
    members: Vec<EventInfo>,
    calls: Arc<Mutex<Vec<String>>>,
}

#[derive(Debug)]
struct OverflowsOf(i32);

impl Backend for Outspoken {
    fn name(&self) -> &'static str {
        "outspoken"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
        let names = spec.members.iter().map(|member| member.event.to_string());
        Ok(Box::new(OutspokenGroup {
            members: names.map(EventInfo::counter).collect(),
            calls: Arc::clone(&self.calls),
        }))
    }
}

impl OutspokenGroup {
    fn has(&self, name: &str) -> bool {
        self.members.iter().any(|member| member.name == name)
    }

    /// Refuses it to a group with `stuck`.
    fn call(&self, name: &str) -> Result<()> {
        let call = format!("{name} {}", self.members[0].name);
        self.calls.lock().expect("no test panics").push(call);
        match self.has("stuck") {
            true => Err(Error::new(ErrorKind::Os, name).with_reason(self.members[0].name.clone())),
            false => Ok(()),
        }
    }
}

impl Group for OutspokenGroup {
    fn members(&self) -> &[EventInfo] {
        &self.members
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Atomic
    }

    fn rotation_interval(&self) -> Option<Duration> {
        self.has("turns").then_some(Duration::from_millis(4))
    }

    fn read_buf(&self) -> ReadBuf {
        let members = self.members.len() - usize::from(self.has("narrow"));
        ReadBuf::new(members, [Part::whole()])
    }

    fn enable(&mut self) -> Result<()> {
        self.call("enable")
    }

    fn disable(&mut self) -> Result<()> {
        self.call("disable")
    }

    fn reset(&mut self) -> Result<()> {
        self.call("reset")
    }

    fn read(&mut self, _: &mut ReadBuf) -> Result<()> {
        Ok(())
    }

    fn user_reads(&mut self) -> Option<&mut dyn UserReads> {
        match self.has("seen") {
            true => Some(self),
            false => None,
        }
    }

    fn overflows(&self, member: usize) -> Option<Arc<dyn Overflows>> {
        let descriptor = i32::try_from(member).expect("few members");
        Some(Arc::new(OverflowsOf(descriptor)))
    }
}

impl UserReads for OutspokenGroup {
    fn read_in_user_space(&mut self, _: &mut ReadBuf) -> Result<bool> {
        Ok(true)
    }

    fn read_by_system_call(&mut self, _: &mut ReadBuf) -> Result<()> {
        Ok(())
    }

    fn obstacle(&self) -> Option<Error> {
        let error = Error::new(ErrorKind::Busy, "read it without a system call");
        self.has("obstructed").then_some(error)
    }
}

impl Overflows for OverflowsOf {
    fn descriptor(&self) -> i32 {
        self.0
    }

    fn take(&self) -> Option<u64> {
        None
    }

    fn pause(&self) -> Result<(), i32> {
        Ok(())
    }

    fn resume(&self) -> Result<(), i32> {
        Ok(())
    }

    fn restart(&self) -> Result<()> {
        Ok(())
    }
}

/// Returns a set, and what is asked of its groups.
fn opened(events: &str) -> (EventSet, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let backend: Arc<dyn Backend> = Arc::new(Outspoken {
        capabilities: Capabilities::none(),
        calls: Arc::clone(&calls),
    });
    let mut builder = EventSet::builder();
    let builder = builder.preset("sum", "x + stuck").expect("a formula");
    let builder = builder.backends([backend]).events(events).expect("a list");
    (builder.open().expect("a backend"), calls)
}

/// All are asked, and the first refusal is told.
#[test]
fn a_group_that_refuses_is_no_reason_to_leave_others_out() {
    let (mut set, calls) = opened("a,{stuck,b},{c,stuck},d");
    let called = |name: &str| {
        let calls = std::mem::take(&mut *calls.lock().expect("no test panics"));
        let all = ["a", "stuck", "c", "d"].map(|group| format!("{name} {group}"));
        assert_eq!(calls, all);
    };
    let first = |outcome: Result<()>| {
        let error = outcome.expect_err("one is stuck");
        assert_eq!(error.reason(), Some("stuck"));
    };
    first(set.enable());
    called("enable");
    first(set.disable());
    called("disable");
    first(set.reset());
    called("reset");
    // They count what was asked for, on no other CPUs.
    set.enable_on_cpus().expect("there are no such groups");
    set.disable_on_cpus().expect("there are no such groups");
    assert!(calls.lock().expect("no test panics").is_empty());
}

#[test]
fn events_whose_group_could_not_be_stopped_are_named() {
    let stopped = |events: &str| {
        let (mut set, _) = opened(events);
        let refusals = set.disable_each();
        let kinds = refusals.iter().map(|(_, error)| error.kind());
        assert!(kinds.into_iter().all(|kind| kind == ErrorKind::Os));
        refusals
            .into_iter()
            .map(|(event, _)| event)
            .collect::<Vec<_>>()
    };
    assert_eq!(stopped("a,b"), [0; 0]);
    assert_eq!(stopped("a,{stuck,b},c"), [1, 2]);
    assert_eq!(stopped("stuck,a"), [0]);
    assert_eq!(stopped("a,sum,{b,stuck}"), [1, 2, 3]);
}

#[test]
fn what_groups_tell_is_found_by_their_events() {
    let (mut set, _) = opened("a,{turns,b},{seen,obstructed},seen");
    let interval = Some(Duration::from_millis(4));
    let intervals = [0, 1, 2, 3, 6].map(|event| set.rotation_interval(event));
    assert_eq!(intervals, [None, interval, interval, None, None]);
    let obstacles = [0, 3, 4, 5, 6].map(|event| {
        let obstacle = set.user_read_obstacle(event);
        obstacle.map(|error| error.kind())
    });
    let [none, busy] = [ErrorKind::UnsupportedFeature, ErrorKind::Busy].map(Some);
    assert_eq!(obstacles, [none, busy, busy, None, None]);
    let descriptors = [0, 1, 2, 3, 4].map(|event| {
        let overflows = set.overflows(event);
        overflows.expect("every group has some").descriptor()
    });
    assert_eq!(descriptors, [0, 0, 1, 0, 1]);
    assert!(set.overflows(6).is_none());
}

#[test]
fn a_buffer_that_lacks_members_has_no_readings_of_them() {
    let (mut set, _) = opened("{a,b,narrow},c");
    let mut counts = set.counts();
    set.read(&mut counts).expect("its own counts");
    let kinds: Vec<_> = counts
        .events()
        .map(|event| event.total().err().map(|error| error.kind()))
        .collect();
    let lacks = Some(ErrorKind::InvalidConfiguration);
    assert_eq!(kinds, [None, None, lacks, None]);
    let narrow = counts.get(2).expect("an event");
    assert!(narrow.parts().is_err());
}
