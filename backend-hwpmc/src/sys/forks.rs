//! Forks of a process (kqueue(2), `NOTE_FORK`).

use nix::errno::Errno;
use nix::sys::event::{EvFlags, EventFilter, FilterFlag, KEvent, Kqueue};

use crate::driver::Forks;

const NOW: libc::timespec = libc::timespec {
    tv_sec: 0,
    tv_nsec: 0,
};

/// A queue of one process.
#[derive(Debug)]
pub(super) struct Watch {
    queue: Kqueue,
    has_forked: bool,
}

impl Watch {
    pub(super) fn begin(pid: i32) -> Result<Self, Errno> {
        let queue = Kqueue::new()?;
        let of = usize::try_from(pid).map_err(|_| Errno::ESRCH)?;
        let filter = EventFilter::EVFILT_PROC;
        let flags = EvFlags::EV_ADD | EvFlags::EV_CLEAR;
        let forks = [KEvent::new(of, filter, flags, FilterFlag::NOTE_FORK, 0, 0)];
        queue.kevent(&forks, &mut [], Some(NOW))?;
        Ok(Self {
            queue,
            has_forked: false,
        })
    }
}

impl Forks for Watch {
    fn has_forked(&mut self) -> bool {
        if !self.has_forked {
            let none = KEvent::new(
                0,
                EventFilter::EVFILT_PROC,
                EvFlags::empty(),
                FilterFlag::empty(),
                0,
                0,
            );
            let mut events = [none];
            self.has_forked = match self.queue.kevent(&[], &mut events, Some(NOW)) {
                Ok(0) => false,
                Ok(_) => events[0].fflags().contains(FilterFlag::NOTE_FORK),
                // What is not known may have been.
                Err(_) => true,
            };
        }
        self.has_forked
    }
}
