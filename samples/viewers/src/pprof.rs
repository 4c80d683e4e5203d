//! The profile format of pprof (`proto/profile.proto` of its sources): a sample type for each event.

mod message;
mod tables;

use std::io::{self, Write};

use foldhash::HashMap;
use prost::Message as _;

use crate::{Recording, StackId, Unit};

use message::{Label, Profile, Sample, ValueType};
use tables::Tables;

/// Writes a recording. Samples of the same thread and stack are one, with a value for each event.
///
/// # Errors
/// If it cannot be written, or the recording has no samples.
pub fn write(recording: &Recording, out: &mut dyn Write) -> io::Result<()> {
    let events = recording.seen_events();
    let mut columns = vec![0; recording.events.len()];
    for (column, event) in events.iter().enumerate() {
        columns[*event] = column;
    }
    let mut tables = Tables::new(recording);
    let mut samples: Vec<Sample> = Vec::new();
    let mut places: HashMap<(usize, Option<StackId>), usize> = HashMap::default();
    for sample in &recording.samples {
        let key = (sample.task, sample.stack);
        let place = *places.entry(key).or_insert_with(|| {
            samples.push(Sample {
                location_id: tables.locations(sample.stack),
                value: vec![0; events.len()],
                label: labels(recording, sample.task, &mut tables),
            });
            samples.len() - 1
        });
        let value = &mut samples[place].value[columns[sample.event]];
        *value = value.saturating_add_unsigned(sample.weight);
    }
    if samples.is_empty() {
        return Err(io::Error::other("there are no samples"));
    }
    let types = events.iter().map(|event| {
        let event = &recording.events[*event];
        ValueType {
            r#type: tables.string(&event.name),
            unit: tables.string(match event.unit {
                Unit::Count => "count",
                Unit::CpuTime | Unit::Time => "nanoseconds",
            }),
        }
    });
    let sample_type: Vec<_> = types.collect();
    let title = tables.string(&recording.title);
    let duration = recording.samples.iter().map(|sample| sample.time).max();
    let profile = Profile {
        default_sample_type: sample_type.first().map_or(0, |first| first.r#type),
        period_type: sample_type.first().cloned(),
        period: 1,
        sample_type,
        sample: samples,
        time_nanos: (recording.began * 1e6) as i64,
        duration_nanos: i64::try_from(duration.unwrap_or(0)).unwrap_or(i64::MAX),
        comment: vec![title],
        mapping: tables.mapping,
        location: tables.location,
        function: tables.function,
        string_table: tables.strings,
    };
    out.write_all(&profile.encode_to_vec())
}

/// Returns what is known of a thread.
fn labels(recording: &Recording, task: usize, tables: &mut Tables<'_>) -> Vec<Label> {
    let task = &recording.tasks[task];
    let mut number = |key, number: i32| Label {
        key: tables.string(key),
        str: 0,
        num: number.into(),
    };
    let (pid, tid) = (number("pid", task.pid), number("tid", task.tid));
    let mut text = |key, text| Label {
        key: tables.string(key),
        str: tables.string(text),
        num: 0,
    };
    let (process, thread) = (text("process", &task.process), text("thread", &task.name));
    vec![process, thread, pid, tid]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Event, Frame, Task};

    /// Returns a recording of two events: `inlined` in `outer` of a program, called by code without a name of the kernel.
    fn recording() -> Recording {
        let mut recording = Recording::default();
        for (name, unit) in [
            ("unseen", Unit::Count),
            ("clock", Unit::CpuTime),
            ("faults", Unit::Count),
        ] {
            let name = name.to_owned();
            recording.events.push(Event { name, unit });
        }
        recording.tasks.push(Task {
            pid: 7,
            tid: 8,
            process: "bench".into(),
            name: "worker".into(),
        });
        let kernel = Frame {
            name: None,
            in_kernel: true,
            ..Frame::new("", "[kernel.kallsyms]")
        };
        let inlined = Frame {
            source: Some(("a.c".into(), 3)),
            is_inlined: true,
            ..Frame::new("inlined", "/bin/bench")
        };
        recording.frames = vec![kernel, Frame::new("outer", "/bin/bench"), inlined];
        let build_id = "0123".to_owned();
        recording.build_ids.insert("/bin/bench".into(), build_id);
        let stack = recording.stacks.push_all([0, 1, 2]);
        for (event, weight) in [(1, 10), (2, 1), (1, 20)] {
            recording.samples.push(crate::Sample {
                time: 0,
                task: 0,
                event,
                stack,
                weight,
            });
        }
        recording
    }

    #[test]
    fn a_sample_has_a_value_for_each_event_and_a_location_for_each_address() {
        let mut bytes = Vec::new();
        write(&recording(), &mut bytes).expect("written");
        let profile = Profile::decode(bytes.as_slice()).expect("a profile");
        let text = |at: i64| profile.string_table[at as usize].as_str();
        let types = profile
            .sample_type
            .iter()
            .map(|t| (text(t.r#type), text(t.unit)));
        assert_eq!(
            types.collect::<Vec<_>>(),
            [("clock", "nanoseconds"), ("faults", "count")]
        );
        let [sample] = profile.sample.as_slice() else {
            panic!("{:?}", profile.sample);
        };
        assert_eq!(sample.value, [30, 1]);
        let labels = sample
            .label
            .iter()
            .map(|l| (text(l.key), text(l.str), l.num));
        let wanted = [
            ("process", "bench", 0),
            ("thread", "worker", 0),
            ("pid", "", 7),
            ("tid", "", 8),
        ];
        assert_eq!(labels.collect::<Vec<_>>(), wanted);
        // The innermost first, and what is inlined in the location of the function that it is in.
        let names = sample.location_id.iter().map(|id| {
            let location = &profile.location[*id as usize - 1];
            let lines = location.line.iter().map(|line| {
                let function = profile.function[line.function_id as usize - 1];
                (text(function.name), text(function.filename), line.line)
            });
            lines.collect::<Vec<_>>()
        });
        let wanted = [
            vec![("inlined", "a.c", 3), ("outer", "", 0)],
            vec![("[kernel.kallsyms]", "", 0)],
        ];
        assert_eq!(names.collect::<Vec<_>>(), wanted);
        // The program is the first mapping, although the kernel was seen first.
        let mappings = profile
            .mapping
            .iter()
            .map(|m| (m.id, text(m.filename), text(m.build_id)));
        assert_eq!(
            mappings.collect::<Vec<_>>(),
            [(1, "/bin/bench", "0123"), (2, "[kernel.kallsyms]", "")]
        );
    }

    #[test]
    fn nothing_is_no_profile() {
        let none = write(&Recording::default(), &mut Vec::new());
        assert_eq!(
            none.expect_err("no samples").to_string(),
            "there are no samples"
        );
    }
}
