//! Readers of sets.

use std::sync::Arc;

use quipu::{Backend, ErrorKind, EventSet};
use quipu_scripted::{Scripted, ScriptedGroup};

#[test]
fn a_backend_without_readers_refuses_them() {
    let open = |spec: &_, _: &_| Ok(ScriptedGroup::of(spec));
    let backend: Arc<dyn Backend> = Arc::new(Scripted::new("alone", open));
    let mut builder = EventSet::builder();
    builder.events("page-faults").expect("a list");
    let set = builder.backends([backend]).open().expect("one event");
    let refused = set.reader().expect_err("it is scripted");
    assert_eq!(refused.kind(), ErrorKind::UnsupportedFeature);
}

#[cfg(target_os = "linux")]
#[test]
fn clones_read_on_many_threads_what_the_set_counts() {
    use std::thread;

    use quipu::{Counts, Reader};

    fn assert_shared(_: &(impl Send + Sync + Clone)) {}

    let values = |counts: &Counts| -> Vec<Option<u64>> {
        counts.events().map(|event| event.value().ok()).collect()
    };
    let read = move |reader: Reader| {
        let mut counts = reader.counts();
        reader.read(&mut counts).expect("its own buffer");
        values(&counts)
    };
    let linux: Arc<dyn Backend> = Arc::new(quipu::linux_backend().expect("software counts"));
    let mut builder = EventSet::builder();
    let events = builder.events("{page-faults,minor-faults}:u,no-such-event");
    let mut set = (events.expect("a list").backends([linux]).open()).expect("two events");
    let reader = set.reader().expect("Linux has readers");
    assert_shared(&reader);
    let names: Vec<_> = reader.events().iter().map(quipu::SetEvent::name).collect();
    assert_eq!(names, ["page-faults:u", "minor-faults:u", "no-such-event"]);
    assert!(format!("{reader:?}").starts_with("Reader { events: [SetEvent {"));
    let mut other = EventSet::builder().open().expect("a backend").counts();
    let refused = reader.read(&mut other).expect_err("of another set");
    assert_eq!(refused.kind(), ErrorKind::InvalidConfiguration);
    set.enable().expect("it is open");
    // More than the C library keeps of what was given back, so that pages are fresh.
    std::hint::black_box(vec![1u8; 1 << 26]);
    set.disable().expect("it is open");
    let mut own = set.counts();
    set.read(&mut own).expect("its own buffer");
    let expected = values(&own);
    assert!(
        expected[0] > Some(0) && expected[2].is_none(),
        "{expected:?}"
    );
    let threads = [(); 4].map(|()| {
        let reader = reader.clone();
        thread::spawn(move || read(reader))
    });
    for thread in threads {
        assert_eq!(thread.join().expect("no panic"), expected);
    }
    drop(set);
    assert_eq!(read(reader), expected);
}
