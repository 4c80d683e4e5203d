//! Contenders on equal events, the first of a group leading.

/// `EventSet`, as a program uses it.
pub(crate) mod quipu {
    use std::hint::black_box;

    use quipu::EventSet;

    use crate::pairs::Work;

    const ONE: &str = "task-clock:u";
    const FIVE: &str =
        "{task-clock:u,page-faults:u,context-switches:u,cpu-migrations:u,minor-faults:u}";
    const ONE_OF_THE_CPU: &str = "instructions:u";
    const FOUR_OF_THE_CPU: &str = "{instructions:u,cycles:u,branches:u,branch-misses:u}";

    fn open(events: &str) -> EventSet {
        let mut builder = EventSet::builder();
        let set = builder.events(events).and_then(|builder| builder.open());
        set.expect("the events open")
    }

    fn read(events: &str) -> Work {
        let mut set = open(events);
        set.enable().expect("it starts");
        let mut counts = set.counts();
        Box::new(move |times| {
            for _ in 0..times {
                set.read(&mut counts).expect("it reads");
                black_box(&counts);
            }
        })
    }

    fn open_and_close(events: &'static str) -> Work {
        Box::new(move |times| {
            for _ in 0..times {
                drop(black_box(open(events)));
            }
        })
    }

    pub(crate) fn read_1() -> Work {
        read(ONE)
    }

    pub(crate) fn read_5() -> Work {
        read(FIVE)
    }

    pub(crate) fn map_1() -> Work {
        read(ONE_OF_THE_CPU)
    }

    pub(crate) fn map_4() -> Work {
        read(FOUR_OF_THE_CPU)
    }

    pub(crate) fn open_1() -> Work {
        open_and_close(ONE)
    }

    pub(crate) fn open_5() -> Work {
        open_and_close(FIVE)
    }
}

/// The bare system calls, and the bare loop over mapped pages.
pub(crate) mod raw {
    use std::hint::black_box;

    use crate::pairs::Work;
    use crate::raw::{Kind, Raw};

    fn read(events: usize) -> Work {
        let raw = Raw::open(Kind::Software, events).expect("the events open");
        raw.enable();
        Box::new(move |times| {
            for _ in 0..times {
                black_box(raw.read());
            }
        })
    }

    fn map(events: usize) -> Work {
        let raw = Raw::open(Kind::Hardware, events).expect("the events open");
        let pages = raw.map().expect("the pages are mapped");
        raw.enable();
        Box::new(move |times| {
            for _ in 0..times {
                // The kernel takes a counter away at times.
                if pages.read().is_none() {
                    black_box(raw.read());
                }
            }
        })
    }

    fn open_and_close(events: usize) -> Work {
        Box::new(move |times| {
            for _ in 0..times {
                drop(black_box(Raw::open(Kind::Software, events)));
            }
        })
    }

    /// Returns the reason if counters of the CPU cannot be read in user space here.
    pub(crate) fn maps_counters() -> Result<(), String> {
        let raw = Raw::open(Kind::Hardware, 4)
            .map_err(|error| format!("no counters of the CPU: {error}"))?;
        let pages = raw.map().map_err(|error| error.to_string())?;
        raw.enable();
        match pages.read() {
            Some(_) => Ok(()),
            None => Err("the kernel or this CPU does not allow it".to_owned()),
        }
    }

    pub(crate) fn read_1() -> Work {
        read(1)
    }

    pub(crate) fn read_5() -> Work {
        read(5)
    }

    pub(crate) fn map_1() -> Work {
        map(1)
    }

    pub(crate) fn map_4() -> Work {
        map(4)
    }

    pub(crate) fn open_1() -> Work {
        open_and_close(1)
    }

    pub(crate) fn open_5() -> Work {
        open_and_close(5)
    }
}

/// The crate `perf-event2`.
pub(crate) mod perf_event2 {
    use std::hint::black_box;

    use peer_perf_event2::events::Software;
    use peer_perf_event2::{Builder, Counter, Group};

    use crate::pairs::Work;

    const FIVE: [Software; 5] = [
        Software::TASK_CLOCK,
        Software::PAGE_FAULTS,
        Software::CONTEXT_SWITCHES,
        Software::CPU_MIGRATIONS,
        Software::PAGE_FAULTS_MIN,
    ];

    fn open() -> (Group, Vec<Counter>) {
        let mut group = Group::new().expect("the group opens");
        let add = |event: &Software| group.add(&Builder::new(*event)).expect("the event opens");
        let members = FIVE.iter().map(add).collect();
        (group, members)
    }

    pub(crate) fn read_5() -> Work {
        let (mut group, members) = open();
        group.enable().expect("it starts");
        Box::new(move |times| {
            for _ in 0..times {
                black_box((group.read().expect("it reads"), &members));
            }
        })
    }

    pub(crate) fn open_5() -> Work {
        Box::new(|times| {
            for _ in 0..times {
                drop(black_box(open()));
            }
        })
    }
}
