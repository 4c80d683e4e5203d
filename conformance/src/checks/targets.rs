//! Targets: what is claimed can be opened, what is not is refused, and no other work is counted.

use std::sync::mpsc;
use std::thread;

use quipu_hal::{Count, ErrorKind, EventSpec, GroupSpec, Part, Target, TargetKinds};

use crate::context::{Context, stopped};
use crate::verdict::{Missing, Outcome, Stop, ensure, ensure_eq};
use crate::{Ability, Check};

pub(super) const CHECKS: &[Check] = &[
    Check {
        id: "targets.claimed-can-be-opened",
        requires: "Every kind of target that the backend claims can be opened.",
        source: "quipu_hal::Capabilities::targets",
        run: claimed_can_be_opened,
    },
    Check {
        id: "targets.unclaimed-are-refused",
        requires: "A kind of target that the backend does not claim is refused: as an unsupported feature, or for a reason that comes first.",
        source: "quipu_hal::Capabilities::targets",
        run: unclaimed_are_refused,
    },
    Check {
        id: "targets.no-such-thread",
        requires: "A thread that does not exist is refused as such.",
        source: "perf_event_open(2), ESRCH",
        run: no_such_thread,
    },
    Check {
        id: "targets.no-such-cpu",
        requires: "A CPU that does not exist is refused as such.",
        source: "perf_event_open(2), ENODEV and EINVAL on cpu",
        run: no_such_cpu,
    },
    Check {
        id: "targets.no-such-cgroup",
        requires: "A control group that does not exist is refused as such.",
        source: "perf_event_open(2), PERF_FLAG_PID_CGROUP",
        run: no_such_cgroup,
    },
    Check {
        id: "targets.no-cpus",
        requires: "An empty list of CPUs is refused as an invalid request.",
        source: "quipu_hal::Target::Cpus",
        run: no_cpus,
    },
    Check {
        id: "targets.one-cpu-one-part",
        requires: "A CPU is one part that names it.",
        source: "quipu_hal::Part",
        run: one_cpu_one_part,
    },
    Check {
        id: "targets.cpus-in-order",
        requires: "Several CPUs give a part each, in the order asked for.",
        source: "quipu_hal::Target::Cpus",
        run: cpus_in_order,
    },
    Check {
        id: "targets.cpu-named-twice",
        requires: "A CPU that is named twice is refused or counted once, so that no total counts it double.",
        source: "quipu_hal::Target::Cpus",
        run: cpu_named_twice,
    },
    Check {
        id: "targets.all-cpus-once",
        requires: "All CPUs give at least one part, each CPU once.",
        source: "perf_event_open(2), pid -1; quipu_hal::Target::AllCpus",
        run: all_cpus_once,
    },
    Check {
        id: "targets.parts-move-together",
        requires: "Enabling, disabling and resetting reach every part of the target.",
        source: "quipu_hal::Group",
        run: parts_move_together,
    },
    Check {
        id: "targets.this-thread-only",
        requires: "Counting this thread counts nothing of what other threads do. A backend that counts them refuses it.",
        source: "perf_event_open(2), pid 0",
        run: this_thread_only,
    },
    Check {
        id: "targets.another-thread",
        requires: "Counting another thread counts what that one does, and nothing of this one.",
        source: "perf_event_open(2), pid > 0 is a thread id",
        run: another_thread,
    },
    Check {
        id: "targets.thread-by-id",
        requires: "This thread by its id counts the same as this thread.",
        source: "perf_event_open(2), pid",
        run: thread_by_id,
    },
    Check {
        id: "targets.process-is-its-threads",
        requires: "A process is the sum of its threads, a part each.",
        source: "quipu_hal::Target::Process; proc(5), /proc/PID/task",
        run: process_is_its_threads,
    },
    Check {
        id: "targets.on-off-cpu",
        requires: "A counter on a thread survives the thread's sleeping and waking.",
        source: "perf_event_tests, context switches",
        run: on_off_cpu,
    },
];

fn each_kind(context: &Context<'_>) -> Vec<Target> {
    let mut targets = vec![
        Target::CurrentThread,
        Target::Process(i32::try_from(std::process::id()).unwrap_or(i32::MAX)),
        Target::CurrentCpu,
        Target::Cpu(0),
        Target::Cpus(vec![0]),
        Target::AllCpus,
    ];
    targets.extend(context.fixture().thread_id().map(Target::Thread));
    targets
}

fn claimed_can_be_opened(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut opened = 0;
    for target in each_kind(context) {
        if context.capabilities().targets.contains(target.kind()) {
            let group = context.open_on(&GroupSpec::single(event.clone()), &target)?;
            ensure!(!group.parts().is_empty(), "{target} has no parts");
            opened += 1;
        }
    }
    ensure!(
        opened > 0,
        "the backend claims no kind of target that can be named here"
    );
    Ok(())
}

fn unclaimed_are_refused(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let cgroup = Target::Cgroup {
        path: "/".into(),
        cpus: Vec::new(),
    };
    let mut refused = 0;
    for target in each_kind(context)
        .into_iter()
        .chain([Target::Thread(1), cgroup])
    {
        if !context.capabilities().targets.contains(target.kind()) {
            let error = context.refusal(&GroupSpec::single(event.clone()), &target)?;
            ensure!(
                matches!(
                    error.kind(),
                    ErrorKind::UnsupportedFeature
                        | ErrorKind::NoPermission
                        | ErrorKind::NoSuchTarget
                ),
                "refused for another reason than its kind: {error:#}"
            );
            refused += 1;
        }
    }
    match refused {
        0 => Err(Missing::Inapplicable("every kind of target is offered").into()),
        _ => Ok(()),
    }
}

fn no_such(context: &Context<'_>, target: &Target) -> Outcome {
    context.need_target(target.kind())?;
    let error = context.refusal(&GroupSpec::single(context.exact()?), target)?;
    ensure_eq!(
        error.kind(),
        ErrorKind::NoSuchTarget,
        "the kind of \"{error}\""
    );
    Ok(())
}

fn no_such_thread(context: &Context<'_>) -> Outcome {
    // Above the greatest id a kernel gives (PID_MAX_LIMIT is 2^22).
    no_such(context, &Target::Thread(i32::MAX - 1))
}

fn no_such_cpu(context: &Context<'_>) -> Outcome {
    no_such(context, &Target::Cpu(1 << 20))?;
    no_such(context, &Target::Cpus(vec![0, 1 << 20]))
}

fn no_such_cgroup(context: &Context<'_>) -> Outcome {
    no_such(
        context,
        &Target::Cgroup {
            path: "/no/such/control/group".into(),
            cpus: Vec::new(),
        },
    )
}

fn no_cpus(context: &Context<'_>) -> Outcome {
    context.need_target(TargetKinds::CPU)?;
    let nothing = Target::Cpus(Vec::new());
    let error = context.refusal(&GroupSpec::single(context.exact()?), &nothing)?;
    ensure_eq!(
        error.kind(),
        ErrorKind::InvalidConfiguration,
        "the kind of \"{error}\""
    );
    Ok(())
}

fn one_cpu_one_part(context: &Context<'_>) -> Outcome {
    let group = context.open_on(&GroupSpec::single(context.exact()?), &Target::Cpu(0))?;
    let seen: Vec<_> = group.parts().iter().map(|p| (p.cpu, p.thread)).collect();
    ensure_eq!(seen, [(Some(0), None)], "the parts of CPU 0");
    Ok(())
}

/// The CPUs there are, as the backend says.
fn all_cpus(context: &Context<'_>, event: &EventSpec) -> Outcome<Vec<u32>> {
    let group = context.open_on(&stopped([event.clone()]), &Target::AllCpus)?;
    Ok(group.parts().iter().filter_map(|p| p.cpu).collect())
}

fn cpus_in_order(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    context.need_target(TargetKinds::CPU)?;
    let mut cpus = all_cpus(context, &event)?;
    if cpus.len() < 2 {
        return Err(Missing::Inapplicable("there is one CPU only").into());
    }
    cpus.reverse();
    let group = context.open_on(&stopped([event]), &Target::Cpus(cpus.clone()))?;
    let wanted: Vec<_> = cpus.into_iter().map(Part::on_cpu).collect();
    ensure_eq!(group.parts(), wanted, "the parts");
    Ok(())
}

fn cpu_named_twice(context: &Context<'_>) -> Outcome {
    context.need_target(TargetKinds::CPU)?;
    let twice = Target::Cpus(vec![0, 0]);
    match context
        .fixture()
        .backend()
        .open(&stopped([context.exact()?]), &twice)
    {
        Ok(group) => ensure_eq!(group.parts().len(), 1, "parts of one CPU"),
        Err(error) => {
            ensure_eq!(
                error.kind(),
                ErrorKind::InvalidConfiguration,
                "the kind of \"{error}\""
            );
        }
    }
    Ok(())
}

fn all_cpus_once(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let cpus = all_cpus(context, &event)?;
    ensure!(!cpus.is_empty(), "there are no CPUs");
    let mut once = cpus.clone();
    once.sort_unstable();
    once.dedup();
    ensure_eq!(once.len(), cpus.len(), "different CPUs among {cpus:?}");
    Ok(())
}

fn parts_move_together(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_on(&stopped([event]), &Target::AllCpus)?;
    let times = |buf: &quipu_hal::ReadBuf| -> Vec<u64> {
        let of_member = buf.member(0).into_iter().flatten();
        of_member.map(|(_, r)| r.time_enabled).collect()
    };
    ensure!(
        times(&context.read(&mut *group)?).iter().all(|&t| t == 0),
        "a part is enabled already"
    );
    group.enable()?;
    context.pass_turns(2)?;
    group.disable()?;
    let stopped = context.read(&mut *group)?;
    ensure!(
        times(&stopped).iter().all(|&t| t > 0),
        "not every part was enabled: {stopped:?}"
    );
    context.pass_turns(2)?;
    ensure_eq!(
        context.read(&mut *group)?,
        stopped,
        "the reading of all parts after disabling"
    );
    group.reset()?;
    let reset = context.read(&mut *group)?;
    ensure!(
        (0..reset.parts().len())
            .all(|part| (reset[part][0].value, reset[part][0].time_enabled) == (0, 0)),
        "not every part was reset: {reset:?}"
    );
    Ok(())
}

/// A thread that does work on request, and has an id.
struct Worker {
    thread_id: Option<i32>,
    orders: Option<mpsc::Sender<u64>>,
    done: mpsc::Receiver<()>,
}

/// Runs `measure` with a worker beside it.
fn with_worker<T>(
    context: &Context<'_>,
    event: &EventSpec,
    measure: impl FnOnce(&mut Worker) -> Outcome<T>,
) -> Outcome<T> {
    let fixture = context.fixture();
    thread::scope(|scope| {
        let (orders, ordered) = mpsc::channel::<u64>();
        let (finish, done) = mpsc::channel();
        let (send, sent) = mpsc::channel();
        scope.spawn(move || {
            // The other side is gone when the check has failed.
            let _ = send.send(fixture.thread_id());
            for times in ordered {
                if let Some(work) = fixture.workload(event, times) {
                    work();
                }
                if finish.send(()).is_err() {
                    break;
                }
            }
        });
        let gone = || Stop::Fail("the working thread is gone".into());
        let mut worker = Worker {
            thread_id: sent.recv().map_err(|_| gone())?,
            orders: Some(orders),
            done,
        };
        measure(&mut worker)
    })
}

impl Worker {
    fn work(&self, times: u64) -> Outcome {
        let gone = || Stop::Fail("the working thread is gone".into());
        let orders = self.orders.as_ref().ok_or_else(gone)?;
        orders.send(times).map_err(|_| gone())?;
        self.done.recv().map_err(|_| gone())
    }
}

/// An exact event that nothing but its workload causes, so that it distinguishes threads.
fn event_of_threads(context: &Context<'_>, targets: TargetKinds) -> Outcome<EventSpec> {
    context.need_target(targets)?;
    context.undisturbed()
}

fn this_thread_only(context: &Context<'_>) -> Outcome {
    let event = event_of_threads(context, TargetKinds::CURRENT_THREAD)?;
    with_worker(context, &event, |worker| {
        let mut group = context.open_on(&stopped([event.clone()]), &Target::CurrentThread)?;
        group.enable()?;
        worker.work(40)?;
        context.cause(&event, 3)?;
        let stopped = group.disable();
        if context.fixture().counts_other_threads() {
            let refused = stopped.err().map(|error| error.kind());
            ensure_eq!(
                refused,
                Some(ErrorKind::UnsupportedFeature),
                "the refusal after another thread has run"
            );
            return Ok(());
        }
        stopped?;
        context.ensure_value(&mut *group, 3, "3 here and 40 in another thread")?;
        Ok(())
    })
}

fn another_thread(context: &Context<'_>) -> Outcome {
    let event = event_of_threads(context, TargetKinds::THREAD)?;
    with_worker(context, &event, |worker| {
        let thread_id = worker.thread_id.ok_or(Ability::ThreadIds)?;
        let mut group = context.open_on(&stopped([event.clone()]), &Target::Thread(thread_id))?;
        ensure_eq!(
            group.parts()[0].thread,
            Some(thread_id),
            "the thread that the part names"
        );
        group.enable()?;
        worker.work(40)?;
        context.cause(&event, 3)?;
        worker.work(1)?;
        group.disable()?;
        context.ensure_value(&mut *group, 41, "3 here and 41 in the other thread")?;
        Ok(())
    })
}

fn thread_by_id(context: &Context<'_>) -> Outcome {
    let event = event_of_threads(context, TargetKinds::THREAD)?;
    let thread_id = context.fixture().thread_id().ok_or(Ability::ThreadIds)?;
    let mut by_id = context.open_on(&stopped([event.clone()]), &Target::Thread(thread_id))?;
    context.count(&mut *by_id, &event, 14)?;
    context.ensure_value(&mut *by_id, 14, "this thread by its id")?;
    Ok(())
}

fn process_is_its_threads(context: &Context<'_>) -> Outcome {
    let event = event_of_threads(context, TargetKinds::PROCESS)?;
    with_worker(context, &event, |worker| {
        let own = context.fixture().thread_id().ok_or(Ability::ThreadIds)?;
        let other = worker.thread_id.ok_or(Ability::ThreadIds)?;
        let process = Target::Process(i32::try_from(std::process::id()).unwrap_or(i32::MAX));
        let mut group = context.open_on(&stopped([event.clone()]), &process)?;
        group.enable()?;
        worker.work(40)?;
        context.cause(&event, 3)?;
        group.disable()?;
        let buf = context.read(&mut *group)?;
        for (thread, wanted) in [(own, 3), (other, 40)] {
            let is_of_thread = |(part, _): &(&Part, _)| part.thread == Some(thread);
            let seen = buf.member(0).and_then(|mut parts| parts.find(is_of_thread));
            let seen = seen.map(|(_, reading)| reading.value);
            ensure_eq!(seen, Some(wanted), "the part of thread {thread}");
        }
        ensure_eq!(buf.total(0), Count::Exact(43), "the total");
        Ok(())
    })
}

fn on_off_cpu(context: &Context<'_>) -> Outcome {
    let event = context.exact()?;
    let mut group = context.open_on(&stopped([event.clone()]), &Target::CurrentThread)?;
    group.enable()?;
    for _ in 0..10 {
        context.cause(&event, 2)?;
        thread::sleep(std::time::Duration::from_millis(1));
    }
    group.disable()?;
    context.ensure_value(&mut *group, 20, "2 before each of 10 sleeps")?;
    Ok(())
}
