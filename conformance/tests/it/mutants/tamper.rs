//! A backend with a defect: all other calls are passed on to the one it wraps.

use std::sync::Arc;

use quipu_conformance::Fixture;
use quipu_conformance::fixtures::{Altered, SimFixture};
use quipu_hal::{
    Backend, Capabilities, EventInfo, Group, GroupReader, GroupSpec, Part, ReadBuf, Result,
    Simultaneity, Target, UserReads,
};

/// A broken backend, and what is wrong with it.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    pub(crate) defect: &'static str,
    make: Box<dyn Fn() -> SimFixture + Send + Sync>,
}

impl Mutant {
    pub(crate) fn fixture(&self) -> Arc<dyn Fixture> {
        Arc::new((self.make)())
    }

    /// One made of altered parts.
    pub(crate) fn of_parts(
        name: &'static str,
        defect: &'static str,
        make: impl Fn() -> SimFixture + Send + Sync + 'static,
    ) -> Self {
        Self {
            name,
            defect,
            make: Box::new(make),
        }
    }

    /// One whose backend has a defect.
    pub(crate) fn of(name: &'static str, defect: &'static str, tamper: impl Defect) -> Self {
        Self::of_parts(name, defect, move || {
            SimFixture::altered(Altered {
                driver: |pmu| pmu,
                map: |map| map,
                backend: |inner: Box<dyn Backend>| -> Box<dyn Backend> {
                    Box::new(TamperedBackend::new(inner, tamper.clone()))
                },
            })
        })
    }
}

/// Methods that a broken backend replaces. Each group has a copy of its own, so a defect may have state.
#[allow(unused_variables)]
pub(crate) trait Defect: Clone + Send + Sync + 'static {
    /// True if its groups can be read in user space.
    const USER_READS: bool = false;

    fn capabilities(&self, capabilities: Capabilities) -> Capabilities {
        capabilities
    }

    fn open(
        &self,
        inner: &dyn Backend,
        spec: &GroupSpec,
        target: &Target,
    ) -> Result<Box<dyn Group>> {
        inner.open(spec, target)
    }

    fn members(&self, members: Vec<EventInfo>) -> Vec<EventInfo> {
        members
    }

    fn enable(&mut self, group: &mut dyn Group) -> Result<()> {
        group.enable()
    }

    fn disable(&mut self, group: &mut dyn Group) -> Result<()> {
        group.disable()
    }

    fn reset(&mut self, group: &mut dyn Group) -> Result<()> {
        group.reset()
    }

    fn read(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<()> {
        group.read(out)
    }

    fn read_in_user_space(&mut self, group: &mut dyn Group, out: &mut ReadBuf) -> Result<bool> {
        Ok(false)
    }
}

pub(crate) struct TamperedBackend<D> {
    inner: Box<dyn Backend>,
    capabilities: Capabilities,
    defect: D,
}

impl<D: Defect> TamperedBackend<D> {
    pub(crate) fn new(inner: Box<dyn Backend>, defect: D) -> Self {
        Self {
            capabilities: defect.capabilities(inner.capabilities().clone()),
            inner,
            defect,
        }
    }
}

impl<D: Defect> Backend for TamperedBackend<D> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, spec: &GroupSpec, target: &Target) -> Result<Box<dyn Group>> {
        let inner = self.defect.open(&*self.inner, spec, target)?;
        Ok(Box::new(TamperedGroup {
            members: self.defect.members(inner.members().to_vec()),
            inner,
            defect: self.defect.clone(),
        }))
    }
}

struct TamperedGroup<D> {
    inner: Box<dyn Group>,
    members: Vec<EventInfo>,
    defect: D,
}

impl<D: Defect> Group for TamperedGroup<D> {
    fn members(&self) -> &[EventInfo] {
        &self.members
    }

    fn parts(&self) -> &[Part] {
        self.inner.parts()
    }

    fn simultaneity(&self) -> Simultaneity {
        self.inner.simultaneity()
    }

    fn enable(&mut self) -> Result<()> {
        self.defect.enable(&mut *self.inner)
    }

    fn disable(&mut self) -> Result<()> {
        self.defect.disable(&mut *self.inner)
    }

    fn reset(&mut self) -> Result<()> {
        self.defect.reset(&mut *self.inner)
    }

    fn read(&mut self, out: &mut ReadBuf) -> Result<()> {
        self.defect.read(&mut *self.inner, out)
    }

    fn reader(&self) -> Result<Arc<dyn GroupReader>> {
        self.inner.reader()
    }

    fn user_reads(&mut self) -> Option<&mut dyn UserReads> {
        D::USER_READS.then_some(self as &mut dyn UserReads)
    }
}

impl<D: Defect> UserReads for TamperedGroup<D> {
    fn read_in_user_space(&mut self, out: &mut ReadBuf) -> Result<bool> {
        self.defect.read_in_user_space(&mut *self.inner, out)
    }

    fn read_by_system_call(&mut self, out: &mut ReadBuf) -> Result<()> {
        self.inner.read(out)
    }
}
