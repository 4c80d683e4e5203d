//! Backends that open something else than was asked for.

use quipu_hal::{
    Attributes, Backend, Capabilities, Error, ErrorKind, Event, EventInfo, Features, Filter, Group,
    GroupSpec, Result, Simultaneity, Target, TargetKinds,
};

use super::tamper::{Defect, Mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        attribute(
            "counts-too-early",
            "groups count although they were opened disabled",
            |a| {
                a.disabled = false;
            },
        ),
        attribute(
            "never-starts",
            "groups do not count from the moment they are opened",
            |a| {
                a.disabled = true;
            },
        ),
        attribute("pinned-ignored", "pinned groups are like any other", |a| {
            a.pinned = false;
        }),
        attribute("everything-pinned", "every group is pinned", |a| {
            a.pinned = true;
        }),
        attribute(
            "exclusive-ignored",
            "exclusive groups are like any other",
            |a| {
                a.exclusive = false;
            },
        ),
        attribute("everything-exclusive", "every group is exclusive", |a| {
            a.exclusive = true;
        }),
        attribute(
            "inherit-ignored",
            "inheritance is accepted, and nothing inherited",
            |a| {
                a.inherit = false;
            },
        ),
        attribute(
            "inherit-thread-ignored",
            "inheriting threads alone is accepted, and nothing changed",
            |a| {
                a.inherit_thread = false;
            },
        ),
        attribute(
            "remove-on-exec-ignored",
            "remove-on-exec is accepted, and nothing removed",
            |a| {
                a.remove_on_exec = false;
            },
        ),
        attribute(
            "exec-ignored",
            "enable-on-exec is accepted, and nothing enabled",
            |a| {
                a.enable_on_exec = false;
            },
        ),
        filter("filter-ignored", "events count everywhere", |_| {
            Filter::all()
        }),
        filter(
            "filter-reversed",
            "user and kernel mode change places",
            |filter| {
                let mut other = filter;
                other.set(Filter::USER, filter.contains(Filter::KERNEL));
                other.set(Filter::KERNEL, filter.contains(Filter::USER));
                other
            },
        ),
        Mutant::of(
            "filter-of-the-leader",
            "members have the leader's filter",
            LeadersFilter,
        ),
        Mutant::of(
            "partial-open",
            "members that are refused are left out",
            Partial,
        ),
        Mutant::of(
            "refused-is-zero",
            "an event that does not exist reads 0",
            RefusedIsZero,
        ),
        Mutant::of(
            "panics-on-odd-names",
            "a name with a NUL in it is a panic",
            Panics,
        ),
        Mutant::of(
            "any-target",
            "targets that are not offered are taken for this CPU",
            AnyTarget,
        ),
        Mutant::of(
            "missing-cpu-skipped",
            "CPUs that do not exist are left out",
            MissingSkipped,
        ),
        Mutant::of(
            "cpus-sorted",
            "CPUs are opened in ascending order",
            CpusSorted,
        ),
        Mutant::of(
            "names-reversed",
            "members are named in the wrong order",
            NamesReversed,
        ),
        Mutant::of("nameless", "members have no names", Nameless),
        Mutant::of(
            "empty-opens",
            "a group without members is opened as one of the last event",
            EmptyOpens,
        ),
        error(
            "every-error-is-os",
            "every refusal is of the operating system",
            |e| copy(&e, ErrorKind::Os, e.member()),
        ),
        error(
            "member-not-named",
            "a refusal does not say which member",
            |e| copy(&e, e.kind(), None),
        ),
        error("leader-is-blamed", "every refusal blames the leader", |e| {
            copy(&e, e.kind(), Some(0))
        }),
        error("no-reasons", "a refusal says no more than its kind", |e| {
            let bare = Error::new(e.kind(), "open a group");
            e.member()
                .map_or(bare.clone(), |member| bare.with_member(member))
        }),
        claim("claims-inherit", "the backend claims to inherit", |c| {
            c.features |= Features::INHERIT;
        }),
        claim(
            "claims-threads",
            "the backend claims to count threads",
            |c| {
                c.targets |= TargetKinds::CURRENT_THREAD | TargetKinds::THREAD;
            },
        ),
        claim(
            "claims-no-simultaneity",
            "groups are more simultaneous than the backend says",
            |c| {
                c.simultaneity = Simultaneity::None;
            },
        ),
        claim(
            "claims-a-slot-more",
            "the backend claims a slot more than there is",
            |c| {
                c.slots = c.slots.map(|slots| slots + 1);
            },
        ),
        claim(
            "claims-a-slot-less",
            "the backend claims a slot less than there is",
            |c| {
                c.slots = c.slots.map(|slots| slots - 1);
            },
        ),
    ]
}

/// Opens with other attributes, another filter, another error, or other capabilities.
#[derive(Clone)]
struct Asked {
    attribute: fn(&mut Attributes),
    filter: fn(Filter) -> Filter,
    error: fn(Error) -> Error,
    claim: fn(&mut Capabilities),
}

const AS_ASKED: Asked = Asked {
    attribute: |_| {},
    filter: |filter| filter,
    error: |error| error,
    claim: |_| {},
};

fn attribute(name: &'static str, defect: &'static str, attribute: fn(&mut Attributes)) -> Mutant {
    Mutant::of(
        name,
        defect,
        Asked {
            attribute,
            ..AS_ASKED
        },
    )
}

fn filter(name: &'static str, defect: &'static str, filter: fn(Filter) -> Filter) -> Mutant {
    Mutant::of(name, defect, Asked { filter, ..AS_ASKED })
}

fn error(name: &'static str, defect: &'static str, error: fn(Error) -> Error) -> Mutant {
    Mutant::of(name, defect, Asked { error, ..AS_ASKED })
}

fn claim(name: &'static str, defect: &'static str, claim: fn(&mut Capabilities)) -> Mutant {
    Mutant::of(name, defect, Asked { claim, ..AS_ASKED })
}

/// Changes the kind of an error and the member it names.
fn copy(error: &Error, kind: ErrorKind, member: Option<usize>) -> Error {
    let mut other = Error::new(kind, error.attempted());
    if let Some(errno) = error.errno() {
        other = other.with_errno(errno);
    }
    if let Some(reason) = error.reason() {
        other = other.with_reason(reason);
    }
    if let Some(hint) = error.hint() {
        other = other.with_hint(hint);
    }
    match member {
        Some(member) => other.with_member(member),
        None => other,
    }
}

type Opened = Result<Box<dyn Group>>;

impl Defect for Asked {
    fn capabilities(&self, mut capabilities: Capabilities) -> Capabilities {
        (self.claim)(&mut capabilities);
        capabilities
    }

    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        let mut spec = spec.clone();
        (self.attribute)(&mut spec.attributes);
        for member in &mut spec.members {
            member.filter = (self.filter)(member.filter);
        }
        inner.open(&spec, target).map_err(self.error)
    }
}

#[derive(Clone)]
struct LeadersFilter;

impl Defect for LeadersFilter {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        let mut spec = spec.clone();
        if let Some(filter) = spec.members.first().map(|leader| leader.filter) {
            spec.members
                .iter_mut()
                .for_each(|member| member.filter = filter);
        }
        inner.open(&spec, target)
    }
}

#[derive(Clone)]
struct Partial;

impl Defect for Partial {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        let mut spec = spec.clone();
        loop {
            match inner.open(&spec, target) {
                Err(error) if spec.members.len() > 1 && error.member().is_some() => {
                    spec.members.remove(error.member().unwrap_or_default());
                }
                opened => return opened,
            }
        }
    }
}

#[derive(Clone)]
struct RefusedIsZero;

impl Defect for RefusedIsZero {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        inner.open(spec, target).or_else(|error| {
            if error.kind() != ErrorKind::UnsupportedEvent {
                return Err(error);
            }
            // An event that nothing causes.
            let mut spec = spec.clone();
            for member in &mut spec.members {
                if member.event != Event::Named("FIRST".into()) {
                    member.event = Event::Named("SECOND".into());
                }
            }
            inner.open(&spec, target)
        })
    }
}

#[derive(Clone)]
struct Panics;

impl Defect for Panics {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        for member in &spec.members {
            if let Event::Named(name) = &member.event {
                // Without the message of a panic, which is what is wanted here.
                if let Err(error) = std::ffi::CString::new(name.as_str()) {
                    std::panic::resume_unwind(Box::new(error.to_string()));
                }
            }
        }
        inner.open(spec, target)
    }
}

#[derive(Clone)]
struct AnyTarget;

impl Defect for AnyTarget {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        if inner.capabilities().targets.contains(target.kind()) {
            inner.open(spec, target)
        } else {
            inner.open(spec, &Target::CurrentCpu)
        }
    }
}

#[derive(Clone)]
struct MissingSkipped;

impl Defect for MissingSkipped {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        let exists = |cpu: &u32| *cpu < 2;
        match target {
            Target::Cpus(cpus) if cpus.iter().any(exists) => inner.open(
                spec,
                &Target::Cpus(cpus.iter().copied().filter(exists).collect()),
            ),
            _ => inner.open(spec, target),
        }
    }
}

#[derive(Clone)]
struct CpusSorted;

impl Defect for CpusSorted {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        let mut target = target.clone();
        if let Target::Cpus(cpus) = &mut target {
            cpus.sort_unstable();
        }
        inner.open(spec, &target)
    }
}

#[derive(Clone)]
struct NamesReversed;

impl Defect for NamesReversed {
    fn members(&self, mut members: Vec<EventInfo>) -> Vec<EventInfo> {
        members.reverse();
        members
    }
}

#[derive(Clone)]
struct Nameless;

impl Defect for Nameless {
    fn members(&self, mut members: Vec<EventInfo>) -> Vec<EventInfo> {
        members
            .iter_mut()
            .for_each(|member| member.name = "".into());
        members
    }
}

#[derive(Clone)]
struct EmptyOpens;

impl Defect for EmptyOpens {
    fn open(&self, inner: &dyn Backend, spec: &GroupSpec, target: &Target) -> Opened {
        if spec.members.is_empty() {
            return inner.open(&GroupSpec::single(Event::Named("FIRST".into())), target);
        }
        inner.open(spec, target)
    }
}
