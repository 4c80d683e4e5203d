//! The fields in the samples of tracepoints are what the kernel was told.

use std::process::Command;

use crate::machine::{backend, skip};
use quipu_hal::{Attributes, ErrorKind, Event, EventSpec, Target};
use quipu_linux::sampling::{Rate, Record, SampleType, Sampler, SamplerSpec};
use quipu_linux::tracefs::{FieldValue, TraceFormat, Tracefs};

/// A sampler of every occurrence of a tracepoint with its fields, and what those are.
fn open(
    test: &str,
    spec: EventSpec,
    system: &str,
    name: &str,
    attributes: Attributes,
) -> Option<(Sampler, TraceFormat)> {
    let format = match Tracefs::find().and_then(|tracefs| tracefs.format(system, name)) {
        Ok(format) => format,
        Err(e) => {
            skip(test, format!("{e:#}"));
            return None;
        }
    };
    let mut sampler = SamplerSpec::new([(spec, Rate::Period(1))]);
    sampler.sample_type |= SampleType::RAW;
    sampler.attributes = attributes;
    match backend(test)?.open_sampler(&sampler, &Target::CurrentThread) {
        Ok(sampler) => Some((sampler, format)),
        Err(e) if e.kind() == ErrorKind::NoPermission => {
            skip(test, format!("{e:#}"));
            None
        }
        Err(e) => panic!("{e:#}"),
    }
}

/// Returns the results of `look` for the raw bytes of every sample.
fn raw<T>(sampler: &mut Sampler, mut look: impl FnMut(&[u8]) -> T) -> Vec<T> {
    let layout = *sampler.layout();
    let mut seen = Vec::new();
    for ring in sampler.rings_mut() {
        for record in &mut ring.records() {
            let record = record.expect("a record");
            if let Record::Sample(sample) = record.decode(&layout).expect("of the layout") {
                seen.push(look(sample.raw().expect("asked for")));
            }
        }
    }
    seen
}

#[test]
fn the_arguments_of_system_calls() {
    let test = "the_arguments_of_system_calls";
    let event = Event::tracepoint("syscalls", "sys_enter_getpriority");
    let spec = EventSpec::new(event).with_condition("who >= 70003");
    let opened = open(
        test,
        spec,
        "syscalls",
        "sys_enter_getpriority",
        Attributes::default(),
    );
    let Some((mut sampler, format)) = opened else {
        return;
    };
    for who in 70_000..70_010 {
        // SAFETY: the call takes numbers and touches no memory of ours.
        unsafe { libc::syscall(libc::SYS_getpriority, libc::PRIO_USER, who) };
    }
    let number = |raw: &[u8], name: &str| match format.field(name).expect(name).value(raw) {
        Some(FieldValue::Unsigned(number)) => i64::try_from(number).expect("small"),
        Some(FieldValue::Signed(number)) => number,
        other => panic!("{name} is {other:?}"),
    };
    let seen = raw(&mut sampler, |raw| {
        [
            number(raw, "common_type"),
            number(raw, "common_pid"),
            number(raw, "__syscall_nr"),
            number(raw, "which"),
            number(raw, "who"),
        ]
    });
    // SAFETY: the call takes nothing and touches no memory of ours.
    let thread = i64::from(unsafe { libc::gettid() });
    let id = i64::try_from(format.id()).expect("small");
    let [call, which] = [libc::SYS_getpriority, i64::from(libc::PRIO_USER)];
    let expected: Vec<_> = (70_003..70_010)
        .map(|who| [id, thread, call, which, who])
        .collect();
    assert_eq!(seen, expected);
}

/// Text of a fixed length: the kernel's note of a thread's new name.
#[test]
fn the_name_of_a_thread() {
    let test = "the_name_of_a_thread";
    let spec = EventSpec::new(Event::tracepoint("task", "task_rename"));
    let opened = open(test, spec, "task", "task_rename", Attributes::default());
    let Some((mut sampler, format)) = opened else {
        return;
    };
    for name in [c"quipu-one", c"quipu-two"] {
        // SAFETY: the call reads a text of at most 16 bytes, which this is.
        unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
    }
    let text = |raw: &[u8], name: &str| match format.field(name).expect(name).value(raw) {
        Some(FieldValue::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("{name} is {other:?}"),
    };
    let seen = raw(&mut sampler, |raw| text(raw, "newcomm"));
    assert_eq!(seen, ["quipu-one", "quipu-two"]);
}

/// Text of any length, which lies behind the fields: the file that a child executes.
#[test]
fn the_file_of_a_program() {
    let test = "the_file_of_a_program";
    let spec = EventSpec::new(Event::tracepoint("sched", "sched_process_exec"));
    let inherit = Attributes::default().with_inherit(true);
    let opened = open(test, spec, "sched", "sched_process_exec", inherit);
    let Some((mut sampler, format)) = opened else {
        return;
    };
    let ran = Command::new("/bin/sh").args(["-c", ":"]).status();
    if !ran.is_ok_and(|status| status.success()) {
        return skip(test, "there is no /bin/sh");
    }
    let filename = format.field("filename").expect("of every kernel");
    let seen = raw(&mut sampler, |raw| match filename.value(raw) {
        Some(FieldValue::Text(text)) => String::from_utf8_lossy(text).into_owned(),
        other => panic!("it is {other:?}"),
    });
    assert_eq!(seen, ["/bin/sh"]);
}
