//! The samples that `quipu top` shows in tests.

use crate::report::{EventProfile, Profile, Seen, Task, Weight};

/// Returns 75 ns of work, called by main and by twice as much of other, and 25 ns of malloc.
pub(super) fn profile() -> Profile {
    let mut profile = Profile::default();
    let mut event = EventProfile {
        name: "cpu-clock".into(),
        ..EventProfile::default()
    };
    let of = |object: &str, name: &str| Seen {
        object: object.into(),
        name: Some(name.into()),
        at: None,
        inlined: false,
        in_kernel: false,
        source: None,
    };
    for (object, name, caller, period) in [
        ("/lib/libc.so.6", "malloc", "main", 25),
        ("/bin/a", "work", "main", 25),
        ("/bin/a", "work", "other", 50),
    ] {
        let frames = [of(object, name), of("/bin/a", caller)];
        let frames = frames.map(|function| profile.functions.place(function));
        let task = Task {
            command: "a".into(),
            pid: None,
            tid: None,
            cpu: None,
        };
        let stack = profile.stacks.stack(task, &frames);
        event.total.add(Weight::of_sample(period));
        event.stacks.add(
            stack,
            Weight {
                samples: 256,
                period,
            },
        );
    }
    profile.events.push(event);
    profile
}
