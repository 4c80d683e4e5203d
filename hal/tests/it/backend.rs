//! Defaults of backends and groups, and pointers to backends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quipu_hal::{
    Backend, Capabilities, Error, ErrorKind, EventInfo, Group, GroupSpec, Hardware, Part, ReadBuf,
    Result, Simultaneity, Target,
};

/// A group of one event, whose members are those of its backend's last call.
struct OneEvent([EventInfo; 1]);

impl OneEvent {
    fn new(name: &str) -> Self {
        Self([EventInfo::counter(name.to_owned())])
    }
}

impl Group for OneEvent {
    fn members(&self) -> &[EventInfo] {
        &self.0
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

    fn read(&mut self, _: &mut ReadBuf) -> Result<()> {
        Ok(())
    }
}

/// A backend that has nothing but what it must.
struct Least(Capabilities);

impl Backend for Least {
    fn name(&self) -> &'static str {
        "least"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.0
    }

    fn open(&self, _: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
        Ok(Box::new(OneEvent::new("opened")))
    }
}

/// A backend that has all.
struct Most {
    capabilities: Capabilities,
    given_back: AtomicUsize,
}

impl Backend for Most {
    fn name(&self) -> &'static str {
        "most"
    }

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn open(&self, _: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
        Err(Error::new(ErrorKind::Busy, "open it"))
    }

    fn extend(&self, _: Box<dyn Group>, _: &GroupSpec, _: &Target) -> Result<Box<dyn Group>> {
        Ok(Box::new(OneEvent::new("extended")))
    }

    fn restore_failures(&self) -> Vec<Error> {
        vec![Error::new(ErrorKind::Interference, "restore it")]
    }

    fn give_back(&self) {
        self.given_back.fetch_add(1, Ordering::Relaxed);
    }
}

fn name_of(group: &dyn Group) -> &str {
    &group.members()[0].name
}

#[test]
fn a_backend_opens_anew_what_it_cannot_extend() {
    let backend = Least(Capabilities::none());
    let spec = GroupSpec::new([Hardware::Cycles]);
    let group = Box::new(OneEvent::new("before"));
    let extended = backend
        .extend(group, &spec, &Target::CurrentThread)
        .expect("it opens");
    assert_eq!(name_of(&*extended), "opened");
    assert_eq!(backend.restore_failures(), []);
    backend.give_back();
    let shown = format!("{:?}", &backend as &dyn Backend);
    assert_eq!(shown, r#"Backend { name: "least", .. }"#);
}

#[test]
fn a_group_is_of_one_part_and_read_by_its_thread() {
    let mut group = OneEvent::new("cycles");
    assert_eq!(group.parts(), [Part::whole()]);
    assert_eq!(group.rotation_interval(), None);
    let buf = group.read_buf();
    assert_eq!((buf.members(), buf.parts()), (1, &[Part::whole()][..]));
    assert!(group.user_reads().is_none() && group.overflows(0).is_none());
    let refused = group.reader().err().map(|error| error.kind());
    assert_eq!(refused, Some(ErrorKind::UnsupportedFeature));
    let shown = format!("{:?}", &group as &dyn Group);
    assert!(
        shown.starts_with(r#"Group { members: ["cycles"], parts: [Part { "#),
        "{shown}"
    );
}

#[test]
fn a_pointer_to_a_backend_is_that_backend() {
    fn check(backend: &impl Backend, calls: impl Fn() -> usize) {
        let spec = GroupSpec::new([Hardware::Cycles]);
        let target = Target::CurrentThread;
        assert_eq!(backend.name(), "most");
        assert_eq!(backend.capabilities().slots, Some(7));
        let refused = backend.open(&spec, &target).err().map(|error| error.kind());
        assert_eq!(refused, Some(ErrorKind::Busy));
        let group = Box::new(OneEvent::new("before"));
        let extended = backend.extend(group, &spec, &target).expect("it extends");
        assert_eq!(name_of(&*extended), "extended");
        let failures = backend.restore_failures();
        assert_eq!(failures[0].kind(), ErrorKind::Interference);
        let before = calls();
        backend.give_back();
        assert_eq!(calls(), before + 1);
    }
    let mut capabilities = Capabilities::none();
    capabilities.slots = Some(7);
    let most = Arc::new(Most {
        capabilities,
        given_back: AtomicUsize::new(0),
    });
    let calls = || most.given_back.load(Ordering::Relaxed);
    check(&&*most, calls);
    check(&Arc::clone(&most), calls);
    check(&Box::new(Arc::clone(&most)), calls);
    let shared: Arc<dyn Backend> = most.clone();
    check(&shared, calls);
}
