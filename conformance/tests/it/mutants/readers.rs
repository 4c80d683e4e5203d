//! Readers of groups that do not read what the group counts.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use quipu_hal::{
    Backend, Error, ErrorKind, EventInfo, Group, GroupReader, GroupSpec, Part, ReadBuf, Result,
    Simultaneity, Target,
};

use super::tamper::{Defect, Mutant};

pub(crate) fn mutants() -> Vec<Mutant> {
    vec![
        mutant(
            "reader-too-high",
            "a reader's values are one too high",
            |shared, out| {
                shared.lock().read(out)?;
                out[0][0].value += 1;
                Ok(())
            },
        ),
        mutant(
            "reader-closes-with-group",
            "a reader reads nothing once the group is closed",
            |shared, out| match Arc::strong_count(&shared.0) {
                1 => Err(Error::new(ErrorKind::Os, "read a group")),
                _ => shared.lock().read(out),
            },
        ),
        Mutant::of(
            "reader-refused-wrongly",
            "readers are refused as an error of the system",
            Readers(None),
        ),
    ]
}

/// Nothing wrong: what the mutants are made of.
pub(crate) fn proper() -> Mutant {
    mutant("reader", "nothing is wrong", |shared, out| {
        shared.lock().read(out)
    })
}

type Read = fn(&Shared, &mut ReadBuf) -> Result<()>;

fn mutant(name: &'static str, defect: &'static str, read: Read) -> Mutant {
    Mutant::of(name, defect, Readers(Some(read)))
}

/// Groups whose readers read so, or that have none.
#[derive(Clone)]
struct Readers(Option<Read>);

impl Defect for Readers {
    fn open(
        &self,
        inner: &dyn Backend,
        spec: &GroupSpec,
        target: &Target,
    ) -> Result<Box<dyn Group>> {
        let group = inner.open(spec, target)?;
        Ok(Box::new(SharedGroup {
            members: group.members().to_vec(),
            parts: group.parts().to_vec(),
            group: Shared(Arc::new(Mutex::new(group))),
            read: self.0,
        }))
    }
}

/// A group that its readers have, too.
#[derive(Clone)]
struct Shared(Arc<Mutex<Box<dyn Group>>>);

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Box<dyn Group>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct SharedGroup {
    members: Vec<EventInfo>,
    parts: Vec<Part>,
    group: Shared,
    read: Option<Read>,
}

impl Group for SharedGroup {
    fn members(&self) -> &[EventInfo] {
        &self.members
    }

    fn parts(&self) -> &[Part] {
        &self.parts
    }

    fn simultaneity(&self) -> Simultaneity {
        self.group.lock().simultaneity()
    }

    fn enable(&mut self) -> Result<()> {
        self.group.lock().enable()
    }

    fn disable(&mut self) -> Result<()> {
        self.group.lock().disable()
    }

    fn reset(&mut self) -> Result<()> {
        self.group.lock().reset()
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        self.group.lock().read(out)
    }

    fn reader(&self) -> Result<Arc<dyn GroupReader>> {
        match self.read {
            Some(read) => Ok(Arc::new(SharedReader {
                group: self.group.clone(),
                read,
            })),
            None => Err(Error::new(ErrorKind::Os, "share a group")),
        }
    }
}

struct SharedReader {
    group: Shared,
    read: Read,
}

impl GroupReader for SharedReader {
    fn read(&self, out: &mut ReadBuf) -> Result<()> {
        (self.read)(&self.group, out)
    }
}
