//! The traits a backend implements: [`Backend`] opens groups, [`Group`] counts and is read.

use std::time::Duration;

use crate::{Capabilities, EventInfo, GroupSpec, Part, ReadBuf, Result, Simultaneity, Target};

/// Something that counts: an operating system's interface, or registers behind the virtual PMU.
pub trait Backend: Send + Sync {
    /// The groups it opens.
    type Group: Group;

    /// A short name: `linux`, `pctr`, `msr`, `posix`, `sim`.
    fn name(&self) -> &'static str;

    /// What it can do on this machine.
    fn capabilities(&self) -> &Capabilities;

    /// Opens a group of counters on a target, in every part of it or not at all.
    ///
    /// Membership is fixed from here on. Dropping the group closes it and gives everything back.
    ///
    /// # Errors
    /// Any [`ErrorKind`](crate::ErrorKind); the error names the member that was refused
    /// ([`Error::member`](crate::Error::member)), and nothing is left open.
    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Self::Group>;

    /// What closed groups could not put back as they found it, a sentence each; nothing where an
    /// operating system sees to that.
    fn not_restored(&self) -> Vec<String> {
        Vec::new()
    }
}

/// A [`Backend`] chosen at run time: object safe, its groups boxed. Every backend is one.
pub trait DynBackend: Send + Sync {
    /// See [`Backend::name`].
    fn name(&self) -> &'static str;

    /// See [`Backend::capabilities`].
    fn capabilities(&self) -> &Capabilities;

    /// See [`Backend::open`].
    ///
    /// # Errors
    /// As [`Backend::open`].
    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>>;

    /// See [`Backend::not_restored`].
    fn not_restored(&self) -> Vec<String> {
        Vec::new()
    }
}

impl<B: Backend> DynBackend for B {
    fn name(&self) -> &'static str {
        Backend::name(self)
    }

    fn capabilities(&self) -> &Capabilities {
        Backend::capabilities(self)
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        Ok(Box::new(Backend::open(self, spec, target)?))
    }

    fn not_restored(&self) -> Vec<String> {
        Backend::not_restored(self)
    }
}

/// An open group of counters, in one part of the target or in many.
///
/// Reading allocates nothing and does not block. A device that is tied to the thread that opened it
/// answers [`WrongThread`](crate::ErrorKind::WrongThread) on others.
pub trait Group: Send + 'static {
    /// What is being counted, in the order of the [`GroupSpec`].
    fn members(&self) -> &[EventInfo];

    /// The parts the target fanned out into, in the order of the readings.
    fn parts(&self) -> &[Part];

    /// How simultaneous the members of a reading are.
    fn simultaneity(&self) -> Simultaneity;

    /// How long groups that take turns count before the next have theirs, as it is at present; nothing
    /// where the backend does not say, as the kernel does not.
    fn rotation_interval(&self) -> Option<Duration> {
        None
    }

    /// A buffer to read this group into.
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
}

/// Reading without a system call, where the operating system gives user mode the registers.
///
/// [`Group::read`] does so by itself whenever it can, and nobody has to ask for it here. This is for
/// those who compare the two, and for code that may not enter the kernel.
pub trait UserReads {
    /// Reads every member in every part without a system call. False when that is not possible on
    /// this thread or at this moment (a member is not on the PMU); what is in `out` means nothing
    /// then.
    ///
    /// # Errors
    /// As [`Group::read`].
    fn read_in_user_space(&mut self, out: &mut ReadBuf) -> Result<bool>;

    /// Reads every member in every part with the operating system's help.
    ///
    /// # Errors
    /// As [`Group::read`].
    fn read_by_system_call(&mut self, out: &mut ReadBuf) -> Result<()>;
}

impl Group for Box<dyn Group> {
    fn members(&self) -> &[EventInfo] {
        (**self).members()
    }

    fn parts(&self) -> &[Part] {
        (**self).parts()
    }

    fn simultaneity(&self) -> Simultaneity {
        (**self).simultaneity()
    }

    fn rotation_interval(&self) -> Option<Duration> {
        (**self).rotation_interval()
    }

    fn read_buf(&self) -> ReadBuf {
        (**self).read_buf()
    }

    fn enable(&mut self) -> Result<()> {
        (**self).enable()
    }

    fn disable(&mut self) -> Result<()> {
        (**self).disable()
    }

    fn reset(&mut self) -> Result<()> {
        (**self).reset()
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        (**self).read(out)
    }

    fn user_reads(&mut self) -> Option<&mut dyn UserReads> {
        (**self).user_reads()
    }
}
