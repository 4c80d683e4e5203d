//! Mutation tests of the checks that only an operating system's backend can be put through: each
//! catches a Linux backend that treats tasks in a wrong way.

use std::io::Write as _;
use std::sync::Arc;

use quipu::{GroupSpec, Hardware, Machine, Result, Software, Target};
use quipu_conformance::fixtures::LinuxFixture;
use quipu_conformance::{Fixture, Verdict, all};
use quipu_hal::{Backend, Capabilities, Group, PmuEvent};

/// Opens something else than it was asked to.
type Opens = fn(&dyn Backend, GroupSpec, Target) -> Result<Box<dyn Group>>;

/// Defects, and checks that must catch them.
const MUTANTS: [(&str, Opens, &[&str]); 10] = [
    (
        "nothing is inherited",
        |inner, mut spec, target| {
            spec.attributes.inherit = false;
            inner.open(&spec, &target)
        },
        &[
            "inherit.threads-are-counted",
            "inherit.many-threads",
            "inherit.processes-are-counted",
        ],
    ),
    (
        "everything is inherited",
        |inner, mut spec, target| {
            spec.attributes.inherit = true;
            inner.open(&spec, &target)
        },
        &["inherit.not-unless-asked"],
    ),
    (
        "enable-on-exec is ignored",
        |inner, mut spec, target| {
            spec.attributes.enable_on_exec = false;
            inner.open(&spec, &target)
        },
        &["exec.counts-after"],
    ),
    (
        "every group is enabled on exec",
        |inner, mut spec, target| {
            spec.attributes.enable_on_exec = true;
            inner.open(&spec, &target)
        },
        &["exec.not-enabled-without"],
    ),
    (
        "enable-on-exec counts at once",
        |inner, mut spec, target| {
            spec.attributes.disabled &= !spec.attributes.enable_on_exec;
            inner.open(&spec, &target)
        },
        &["exec.silent-before"],
    ),
    (
        "every thread is the calling one",
        |inner, spec, target| match target {
            Target::Thread(_) => inner.open(&spec, &Target::CurrentThread),
            _ => inner.open(&spec, &target),
        },
        &["targets.another-thread", "targets.no-such-thread"],
    ),
    (
        "a process is its first thread",
        |inner, spec, target| match target {
            Target::Process(pid) => inner.open(&spec, &Target::Thread(pid)),
            _ => inner.open(&spec, &target),
        },
        &["targets.process-is-its-threads"],
    ),
    (
        "the calling thread is every thread of the process",
        |inner, spec, target| match target {
            Target::CurrentThread => {
                let pid = i32::try_from(std::process::id()).unwrap_or(i32::MAX);
                inner.open(&spec, &Target::Process(pid))
            }
            _ => inner.open(&spec, &target),
        },
        &["lifecycle.buffer-shape"],
    ),
    (
        "the kernel reads a name in the memory of each thread that makes another",
        |inner, mut spec, target| {
            let program = c"/bin/sh".as_ptr() as u64;
            for member in spec.members.iter_mut().filter(|_| spec.attributes.inherit) {
                let probe = PmuEvent::new("uprobe").with_value("config1", program);
                member.event = probe.into();
            }
            inner.open(&spec, &target)
        },
        &["inherit.goes-unnoticed"],
    ),
    (
        "instructions are page faults",
        |inner, mut spec, target| {
            for member in &mut spec.members {
                if member.event == Hardware::Instructions.into() {
                    member.event = Software::PageFaults.into();
                }
            }
            inner.open(&spec, &target)
        },
        &["values.counted-loop", "multiplexing.estimate-near-work"],
    ),
];

struct Wrong {
    inner: Arc<dyn Backend>,
    opens: Opens,
}

impl Backend for Wrong {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        self.inner.capabilities()
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        (self.opens)(&*self.inner, spec.clone(), target.clone())
    }
}

#[test]
fn backends_that_get_tasks_wrong_are_caught() {
    let name = "backends_that_get_tasks_wrong_are_caught";
    let linux = Machine::this().usable().find(|b| b.name() == "linux");
    let Some(linux) = linux else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIP {name}: perf_event_open cannot be used here"
        );
        return;
    };
    for (defect, opens, catchers) in MUTANTS {
        let inner = Arc::clone(linux);
        let wrong: Arc<dyn Backend> = Arc::new(Wrong { inner, opens });
        let fixture: Arc<dyn Fixture> = Arc::new(LinuxFixture::new(wrong));
        for id in catchers {
            let check = all().find(|check| check.id == *id).expect("a check");
            match check.run(&fixture) {
                Verdict::Fail(_) => {}
                Verdict::Pass => panic!("{id} does not catch it when {defect}"),
                Verdict::Skip(missing) => {
                    let _ = writeln!(std::io::stderr(), "SKIP {name}: {id}: {missing}");
                }
            }
        }
    }
}
