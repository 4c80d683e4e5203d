//! A backend for tests of what stands above backends: one function opens its groups, another gives their readings.
//!
//! ```
//! use quipu_hal::{Backend, GroupSpec, Reading, Software, Target};
//! use quipu_scripted::{Scripted, ScriptedGroup};
//!
//! let backend = Scripted::new("seven", |spec, _| {
//!     Ok(ScriptedGroup::of(spec).reading(|out| {
//!         out[0].fill(Reading::new(7, 1, 1));
//!         Ok(())
//!     }))
//! });
//! let spec = GroupSpec::new([Software::PageFaults]);
//! let mut group = backend.open(&spec, &Target::CurrentThread)?;
//! let mut readings = group.read_buf();
//! group.read(&mut readings)?;
//! assert_eq!(readings[0][0].value, 7);
//! # Ok::<(), quipu_hal::Error>(())
//! ```

use std::fmt;

use quipu_hal::{
    Backend, Capabilities, EventInfo, Features, Group, GroupSpec, Part, ReadBuf, Result,
    Simultaneity, Target, TargetKinds,
};

type Open = dyn Fn(&GroupSpec, &Target) -> Result<ScriptedGroup> + Send + Sync;
type Read = dyn FnMut(&mut ReadBuf) -> Result<()> + Send;

/// A backend whose groups a function opens or refuses.
pub struct Scripted {
    name: &'static str,
    capabilities: Capabilities,
    open: Box<Open>,
}

impl Scripted {
    /// Makes a backend that says it can do nothing in particular.
    pub fn new(
        name: &'static str,
        open: impl Fn(&GroupSpec, &Target) -> Result<ScriptedGroup> + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            capabilities: Capabilities::none(),
            open: Box::new(open),
        }
    }

    /// Makes it one that counts hardware events on whole CPUs.
    #[must_use]
    pub fn counting_cpus(mut self) -> Self {
        self.capabilities.targets = TargetKinds::ALL_CPUS;
        self.capabilities.features = Features::HARDWARE_EVENTS;
        self
    }
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Scripted").field(&self.name).finish()
    }
}

impl Backend for Scripted {
    fn name(&self) -> &'static str {
        self.name
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        Ok(Box::new((self.open)(spec, target)?))
    }
}

/// A group whose readings a function gives; starting, stopping and resetting it does nothing.
pub struct ScriptedGroup {
    members: Vec<EventInfo>,
    parts: Vec<Part>,
    read: Box<Read>,
}

impl ScriptedGroup {
    /// Makes a group of counters under the names of their events, in one part; it reads nothing.
    #[must_use]
    pub fn of(spec: &GroupSpec) -> Self {
        let names = spec.members.iter().map(|member| member.event.to_string());
        Self::of_members(names.map(EventInfo::counter).collect())
    }

    /// Makes a group of these members in one part; it reads nothing.
    #[must_use]
    pub fn of_members(members: Vec<EventInfo>) -> Self {
        Self {
            members,
            parts: vec![Part::whole()],
            read: Box::new(|_| Ok(())),
        }
    }

    /// Puts the group into these parts.
    #[must_use]
    pub fn in_parts(mut self, parts: Vec<Part>) -> Self {
        self.parts = parts;
        self
    }

    /// Sets the function that fills a buffer with readings.
    #[must_use]
    pub fn reading(
        mut self,
        read: impl FnMut(&mut ReadBuf) -> Result<()> + Send + 'static,
    ) -> Self {
        self.read = Box::new(read);
        self
    }
}

impl fmt::Debug for ScriptedGroup {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ScriptedGroup").field(&self.members).finish()
    }
}

impl Group for ScriptedGroup {
    fn members(&self) -> &[EventInfo] {
        &self.members
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn simultaneity(&self) -> Simultaneity {
        Simultaneity::Atomic
    }

    fn enable(&mut self) -> Result<()> {
        Ok(())
    }

    fn disable(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset(&mut self) -> Result<()> {
        Ok(())
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        (self.read)(out)
    }
}
