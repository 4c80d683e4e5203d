//! The traits a backend implements: [`Backend`] opens groups, [`Group`] counts and is read, and [`GroupReader`] reads it
//! on any thread.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::{
    Capabilities, Error, ErrorKind, EventInfo, GroupSpec, Overflows, Part, ReadBuf, Result,
    Simultaneity, Target,
};

/// An interface that counts: an operating system's, or bare registers behind a scheduler.
///
/// The trait is object safe, and is implemented for `&B`, `Box<B>` and `Arc<B>` of every backend `B`. A
/// backend whose groups can do more than [`Group`] says opens them by an inherent `open_group`.
///
/// A backend with nothing to count:
///
/// ```
/// use quipu_hal::{Backend, Capabilities, Error, ErrorKind, Group, GroupSpec, Hardware, Result, Target};
///
/// struct Nothing(Capabilities);
///
/// impl Backend for Nothing {
///     fn name(&self) -> &'static str {
///         "nothing"
///     }
///
///     fn capabilities(&self) -> &Capabilities {
///         &self.0
///     }
///
///     fn open(&self, spec: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
///         let attempted = format!("count {}", spec.members[0].event);
///         Err(Error::new(ErrorKind::UnsupportedEvent, attempted).with_member(0))
///     }
/// }
///
/// let backend: Box<dyn Backend> = Box::new(Nothing(Capabilities::none()));
/// let refused = backend.open(&GroupSpec::new([Hardware::Cycles]), &Target::CurrentThread);
/// assert_eq!(refused.err().map(|e| e.kind()), Some(ErrorKind::UnsupportedEvent));
/// ```
pub trait Backend: Send + Sync {
    /// Returns a short name: `linux`, `pctr`, `msr`, `posix`, `sim`.
    fn name(&self) -> &'static str;

    /// Returns what the backend can do on this machine.
    fn capabilities(&self) -> &Capabilities;

    /// Opens a group of counters on a target, in every part of it or not at all.
    ///
    /// Membership is fixed from here on, but for [`extend`](Self::extend). Dropping the group closes it and gives everything back.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind); the error names the member that was refused
    /// ([`Error::member`](crate::Error::member)), and nothing is left open.
    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>>;

    /// Opens a group as [`open`](Self::open) does in the place of one that is stopped and counts its first members on
    /// the same target, with the same attributes. Counters of that group may be kept, with their values.
    ///
    /// By default the group is closed, and the other opened.
    ///
    /// # Errors
    /// As `open`; the group is closed then.
    fn extend(
        &self,
        group: Box<dyn Group>,
        spec: &GroupSpec,
        target: &Target,
    ) -> Result<Box<dyn Group>> {
        drop(group);
        self.open(spec, target)
    }

    /// Returns an error for each register or counter that closed groups could not put back: of kind
    /// [`Interference`](crate::ErrorKind::Interference) if another process has set it since, and
    /// [`Os`](crate::ErrorKind::Os) otherwise. There are none where an operating system puts them back.
    fn restore_failures(&self) -> Vec<Error> {
        Vec::new()
    }

    /// Gives back the registers of groups that are still open, which are disabled with what they have counted. For the end
    /// of a process that does not close its groups: registers do not end with it. Does nothing where an operating system
    /// gives them back.
    fn give_back(&self) {}
}

/// Forwards a trait to what a pointer points to.
macro_rules! backend_behind_pointer {
    ($($pointer:ty),*) => {$(
        impl<B: Backend + ?Sized> Backend for $pointer {
            fn name(&self) -> &'static str {
                (**self).name()
            }

            fn capabilities(&self) -> &Capabilities {
                (**self).capabilities()
            }

            fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
                (**self).open(spec, target)
            }

            fn extend(
                &self,
                group: Box<dyn Group>,
                spec: &GroupSpec,
                target: &Target,
            ) -> Result<Box<dyn Group>> {
                (**self).extend(group, spec, target)
            }

            fn restore_failures(&self) -> Vec<Error> {
                (**self).restore_failures()
            }

            fn give_back(&self) {
                (**self).give_back();
            }
        }
    )*};
}

backend_behind_pointer!(&B, Box<B>, Arc<B>);

impl fmt::Debug for dyn Backend + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Backend")
            .field("name", &self.name())
            .finish_non_exhaustive()
    }
}

/// An open group of counters, in one part of the target or in many.
///
/// Reading allocates nothing and does not block. A device that is tied to the thread that opened it
/// answers [`WrongThread`](crate::ErrorKind::WrongThread) on others.
///
/// # Contract
/// - The time enabled is that for which the group was enabled and its target could run: on a task it
///   stands still while the task sleeps, on a CPU it is wall time.
/// - The same event twice in a group counts twice the same.
/// - Groups of the same event on the same target are independent, whether they share a counter, have one
///   each, or take turns. A counter that cannot be shared is refused to a second group as
///   [`Busy`](crate::ErrorKind::Busy) where the backend does not multiplex, and to a second member as
///   [`TooManyEvents`](crate::ErrorKind::TooManyEvents).
///
/// ```
/// use quipu_hal::{Backend, Count, GroupSpec, Hardware, Result, Target};
///
/// /// Counts the cycles of some work on this thread, with any backend.
/// fn cycles(backend: &dyn Backend, work: impl FnOnce()) -> Result<Count> {
///     let mut group = backend.open(&GroupSpec::new([Hardware::Cycles]), &Target::CurrentThread)?;
///     let mut readings = group.read_buf();
///     work();
///     group.disable()?;
///     group.read(&mut readings)?;
///     Ok(readings.total(0))
/// }
/// ```
pub trait Group: Any + Send {
    /// Returns descriptions of the counted events, in the order of the [`GroupSpec`].
    fn members(&self) -> &[EventInfo];

    /// Returns the parts the target fanned out into, in the order of the readings; by default there is
    /// one, the whole target.
    fn parts(&self) -> &[Part] {
        const { &[Part::whole()] }
    }

    /// Returns the simultaneity of the members of a reading.
    fn simultaneity(&self) -> Simultaneity;

    /// Returns the time that groups which take turns count before the next have theirs, as it is at
    /// present; `None` if it is unknown, as it is for the kernel's scheduler.
    fn rotation_interval(&self) -> Option<Duration> {
        None
    }

    /// Returns a buffer to read this group into. One that shares its parts with the group is checked sooner.
    fn read_buf(&self) -> ReadBuf {
        ReadBuf::new(self.members().len(), self.parts())
    }

    /// Starts counting, in every part; a counter that counts already is left as it is.
    ///
    /// # Errors
    /// When the operating system or device refuses.
    fn enable(&mut self) -> Result<()>;

    /// Stops counting, in every part. Values and times are kept.
    ///
    /// # Errors
    /// When the operating system or device refuses.
    fn disable(&mut self) -> Result<()>;

    /// Sets the values to zero. The raw times go on; the others start over with the values.
    ///
    /// # Errors
    /// When the operating system or device refuses.
    fn reset(&mut self) -> Result<()>;

    /// Reads every member in every part.
    ///
    /// # Errors
    /// [`CounterInErrorState`](crate::ErrorKind::CounterInErrorState) when a pinned group is not on
    /// the PMU; [`InvalidConfiguration`](crate::ErrorKind::InvalidConfiguration) when `out` was not
    /// made by this group; else when the operating system or device refuses.
    fn read(&mut self, out: &mut ReadBuf) -> Result<()>;

    /// The two ways in which [`read`](Self::read) reads, where it has two.
    fn user_reads(&mut self) -> Option<&mut dyn UserReads> {
        None
    }

    /// Returns a reader of this group, which any number of threads may use at once.
    ///
    /// By default it is refused.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](crate::ErrorKind::UnsupportedFeature) where a read has to be alone, or only one thread may
    /// read.
    fn reader(&self) -> Result<Arc<dyn GroupReader>> {
        let error = Error::new(
            ErrorKind::UnsupportedFeature,
            "read a group on many threads at once",
        );
        Err(error.with_reason("the backend reads a group on one thread at a time"))
    }

    /// Returns the overflows of a member that was opened with a signal for them
    /// ([`EventSpec::overflow`](crate::EventSpec::overflow)).
    fn overflows(&self, member: usize) -> Option<Arc<dyn Overflows>> {
        let _ = member;
        None
    }
}

impl fmt::Debug for dyn Group + '_ {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.members().iter().map(|member| &member.name);
        f.debug_struct("Group")
            .field("members", &names.collect::<Vec<_>>())
            .field("parts", &self.parts())
            .finish_non_exhaustive()
    }
}

/// A reader of a group that many threads may use at once.
///
/// Made by [`Group::reader`]. It holds no lock, allocates nothing and does not block. It reads what the group counts: it
/// neither starts nor stops that. Its values and times are those since the last reset before it was made; a later one does
/// not reach it. It keeps the counters open: when the group is closed, they go on as they were.
///
/// ```
/// use std::thread;
///
/// use quipu_hal::{Backend, Count, GroupSpec, Result, Software, Target};
///
/// /// Returns the page faults of this thread, as another thread reads them.
/// fn faults(backend: &dyn Backend) -> Result<Count> {
///     let group = backend.open(&GroupSpec::new([Software::PageFaults]), &Target::CurrentThread)?;
///     let (reader, mut readings) = (group.reader()?, group.read_buf());
///     thread::spawn(move || reader.read(&mut readings).map(|()| readings.total(0)))
///         .join()
///         .expect("no panic")
/// }
/// ```
pub trait GroupReader: Send + Sync {
    /// Reads every member in every part into a buffer of the group's ([`Group::read_buf`]).
    ///
    /// # Errors
    /// As [`Group::read`].
    fn read(&self, out: &mut ReadBuf) -> Result<()>;
}

/// Reading without a system call, where the operating system gives user mode the registers.
///
/// [`Group::read`] does so by itself whenever it can, and need not be asked for it here. This is for
/// those who compare the two, and for code that may not enter the kernel.
///
/// Such a read is not ordered: the instruction that reads a register may execute before earlier instructions have retired
/// and after later ones have begun (Intel SDM, volume 2, RDPMC). For a count of a few instructions, put a fence of your
/// own around them: `core::arch::x86_64::_mm_lfence`, or the instruction ISB of ARM. A system call is ordered by itself.
pub trait UserReads {
    /// Reads every member in every part without a system call. False when that is not possible on
    /// this thread or at this moment (a member is not on the PMU); what is in `out` means nothing
    /// then. A [read by system call](Self::read_by_system_call) may make it possible again.
    ///
    /// # Errors
    /// As [`Group::read`].
    fn read_in_user_space(&mut self, out: &mut ReadBuf) -> Result<bool>;

    /// Reads every member in every part with the operating system's help.
    ///
    /// # Errors
    /// As [`Group::read`].
    fn read_by_system_call(&mut self, out: &mut ReadBuf) -> Result<()>;

    /// Returns the reason why [`Group::read`] makes system calls for this group, if it always does; `None` if it
    /// reads in user space whenever that is possible.
    fn obstacle(&self) -> Option<Error> {
        None
    }
}
