//! The contenders: the same five events, user mode only, by every library.

use std::fs::DirEntry;
use std::hint::black_box;

use peer_perf_event as pe1;
use peer_perf_event_open as peo;
use peer_perf_event2 as pe2;
use quipu_hal::{Attributes, EventSpec, Filter, Group, GroupSpec, Software, Target};
use quipu_linux::{Anchors, LinuxBackend, LinuxGroup};

use crate::raw::Raw;

/// An open library: reads so many times.
pub(crate) type Reader = Box<dyn FnMut(u32)>;

/// Libraries by name, with what opens their counters.
pub(crate) type Contenders = [(&'static str, fn() -> Reader); 5];

const EVENTS: [Software; 5] = [
    Software::TaskClock,
    Software::PageFaults,
    Software::ContextSwitches,
    Software::CpuMigrations,
    Software::MinorFaults,
];
/// The kernel's numbers of the same.
const NUMBERS: [u64; 5] = [1, 2, 3, 4, 5];
const PE1: [pe1::events::Software; 5] = {
    use pe1::events::Software as S;
    [
        S::TASK_CLOCK,
        S::PAGE_FAULTS,
        S::CONTEXT_SWITCHES,
        S::CPU_MIGRATIONS,
        S::PAGE_FAULTS_MIN,
    ]
};
const PE2: [pe2::events::Software; 5] = {
    use pe2::events::Software as S;
    [
        S::TASK_CLOCK,
        S::PAGE_FAULTS,
        S::CONTEXT_SWITCHES,
        S::CPU_MIGRATIONS,
        S::PAGE_FAULTS_MIN,
    ]
};
const PEO: [peo::event::sw::Software; 5] = {
    use peo::event::sw::Software as S;
    [
        S::TaskClock,
        S::PageFault,
        S::CtxSwitch,
        S::CpuMigration,
        S::MinorPageFault,
    ]
};

/// Opening a counter on each thread of this process, and closing all.
pub(crate) const ATTACHERS: [(&str, fn()); 2] = [("raw", attach_raw), ("quipu", attach_quipu)];

/// Lists the threads once more afterwards, as whoever wants all of them has to, because meanwhile there may be new ones.
fn attach_raw() {
    let threads = || {
        let entries = std::fs::read_dir("/proc/self/task").expect("procfs is there");
        let number =
            |entry: std::io::Result<DirEntry>| entry.ok()?.file_name().to_str()?.parse().ok();
        entries.filter_map(number).collect::<Vec<i32>>()
    };
    let first = threads();
    let attached = Raw::attach(NUMBERS[1], first.iter().copied());
    assert_eq!(threads(), first);
    black_box(attached);
}

fn attach_quipu() {
    let event = EventSpec::new(EVENTS[1]).with_filter(Filter::USER_ONLY);
    let target = Target::Process(std::process::id() as i32);
    let backend = LinuxBackend::new().expect("this process may count");
    // As the bare ones are.
    let stopped = Attributes::default().with_disabled(true);
    let group = GroupSpec::new([event]).with_attributes(stopped);
    black_box(backend.open_group(&group, &target)).expect("it opens");
}

/// One counter.
pub(crate) const SINGLES: Contenders = [
    ("raw", || {
        let raw = Raw::open(&NUMBERS[..1]);
        raw.enable();
        reader(move || raw.read())
    }),
    ("quipu", || {
        let mut group = open_quipu(&EVENTS[..1]);
        group.enable().expect("enable");
        let mut buf = group.read_buf();
        reader(move || {
            group.read(&mut buf).expect("read");
            black_box(&buf);
        })
    }),
    ("perf-event", || {
        let mut counter = pe1::Builder::new().kind(PE1[0]).build().expect("opens");
        counter.enable().expect("enable");
        reader(move || {
            black_box(counter.read_count_and_time().expect("read").count);
        })
    }),
    ("perf-event2", || {
        let mut counter = pe2::Builder::new(PE2[0]).build().expect("opens");
        counter.enable().expect("enable");
        reader(move || {
            black_box(counter.read_full().expect("read").count());
        })
    }),
    ("perf-event-open", || {
        let counter = peo::count::Counter::new(PEO[0], peo_target(), peo_options());
        let counter = counter.expect("opens");
        counter.enable().expect("enable");
        reader(move || {
            black_box(counter.stat().expect("read").count);
        })
    }),
];

/// Five counters in one group.
pub(crate) const GROUPS: Contenders = [
    ("raw", || {
        let raw = Raw::open(&NUMBERS);
        raw.enable();
        reader(move || raw.read())
    }),
    ("quipu", || {
        let mut group = open_quipu(&EVENTS);
        group.enable().expect("enable");
        let mut buf = group.read_buf();
        reader(move || {
            group.read(&mut buf).expect("read");
            black_box(&buf);
        })
    }),
    ("perf-event", || {
        let (mut group, members) = open_pe1();
        group.enable().expect("enable");
        reader(move || {
            black_box((group.read().expect("read"), &members));
        })
    }),
    ("perf-event2", || {
        let (mut group, members) = open_pe2();
        group.enable().expect("enable");
        reader(move || {
            black_box((group.read().expect("read"), &members));
        })
    }),
    ("perf-event-open", || {
        let group = open_peo();
        group.enable().expect("enable");
        reader(move || {
            black_box(group.leader().stat().expect("read"));
        })
    }),
];

fn reader(mut read: impl FnMut() + 'static) -> Reader {
    Box::new(move |times| {
        for _ in 0..times {
            read();
        }
    })
}

/// The contenders of opening and closing; the first is the measure.
pub(crate) const OPENERS: [&str; 6] = [
    "raw",
    "quipu",
    "quipu with anchors",
    "perf-event",
    "perf-event2",
    "perf-event-open",
];

/// Returns a function that opens a group of the five events, not counting, and closes it again.
pub(crate) fn opener(name: &str) -> Box<dyn FnMut()> {
    match name {
        "raw" => Box::new(|| drop(Raw::open(&NUMBERS))),
        "quipu" => {
            let (backend, spec) = quipu(&EVENTS);
            Box::new(move || {
                drop(
                    backend
                        .open_group(&spec, &Target::CurrentThread)
                        .expect("opens"),
                );
            })
        }
        "quipu with anchors" => {
            let (backend, spec) = quipu(&EVENTS);
            let anchors = Anchors::hold(&EVENTS).expect("opens");
            Box::new(move || {
                black_box(&anchors);
                drop(
                    backend
                        .open_group(&spec, &Target::CurrentThread)
                        .expect("opens"),
                );
            })
        }
        "perf-event" => Box::new(|| drop(open_pe1())),
        "perf-event2" => Box::new(|| drop(open_pe2())),
        "perf-event-open" => Box::new(|| drop(open_peo())),
        other => panic!("no contender is called {other}"),
    }
}

fn quipu(events: &[Software]) -> (LinuxBackend, GroupSpec) {
    let user = |event: &Software| EventSpec::new(*event).with_filter(Filter::USER_ONLY);
    let spec = GroupSpec::new(events.iter().map(user))
        .with_attributes(Attributes::default().with_disabled(true));
    (
        LinuxBackend::new().expect("a kernel with perf_event_open"),
        spec,
    )
}

fn open_quipu(events: &[Software]) -> LinuxGroup {
    let (backend, spec) = quipu(events);
    backend
        .open_group(&spec, &Target::CurrentThread)
        .expect("opens")
}

fn open_pe1() -> (pe1::Group, Vec<pe1::Counter>) {
    let mut group = pe1::Group::new().expect("opens");
    let members = PE1
        .iter()
        .map(|event| {
            let builder = pe1::Builder::new().group(&mut group).kind(*event);
            builder.build().expect("opens")
        })
        .collect();
    (group, members)
}

fn open_pe2() -> (pe2::Group, Vec<pe2::Counter>) {
    let mut group = pe2::Group::new().expect("opens");
    let members = PE2
        .iter()
        .map(|event| group.add(&pe2::Builder::new(*event)).expect("opens"))
        .collect();
    (group, members)
}

fn peo_target() -> impl Into<peo::config::Target> {
    (peo::config::Proc::CURRENT, peo::config::Cpu::ALL)
}

fn peo_options() -> peo::config::Opts {
    let mut options = peo::config::Opts::default();
    options.exclude.kernel = true;
    options.exclude.hv = true;
    options.stat_format.time_enabled = true;
    options.stat_format.time_running = true;
    options
}

fn open_peo() -> peo::count::group::CounterGroup {
    let mut options = peo_options();
    options.stat_format.id = true;
    options.stat_format.siblings = true;
    let leader = peo::count::Counter::new(PEO[0], peo_target(), &options).expect("opens");
    let mut group = peo::count::group::CounterGroup::from(leader);
    let mut options = peo::config::sibling::Opts::default();
    options.exclude.kernel = true;
    options.exclude.hv = true;
    options.stat_format.id = true;
    for event in &PEO[1..] {
        group.add(*event, &options).expect("opens");
    }
    group
}
