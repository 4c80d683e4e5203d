//! Files for Firefox Profiler: threads, functions and markers.

use quipu_viewers::{Event, Frame, Marker, Recording, Sample, Task, Unit, firefox};
use serde_json::{Value, json};

fn task(pid: i32, tid: i32, process: &str, name: &str) -> Task {
    Task {
        pid,
        tid,
        process: process.into(),
        name: name.into(),
    }
}

/// Returns a shell that became another program with a thread, sampled by time and by a tracepoint.
fn recording() -> Recording {
    let mut recording = Recording::default();
    for (name, unit) in [("offcpu-time", Unit::Time), ("sched:wake", Unit::Count)] {
        let name = name.to_owned();
        recording.events.push(Event { name, unit });
    }
    recording.tasks = vec![
        task(7, 7, "sh", "sh"),
        task(7, 7, "bench", "bench"),
        task(7, 8, "bench", "worker"),
    ];
    let line = |line| Some(("a.c".into(), line));
    let inlined = Frame {
        source: Some(("a.h".into(), 9)),
        is_inlined: true,
        ..Frame::new("work", "/bin/bench")
    };
    let unknown = Frame {
        name: None,
        ..Frame::new("", "[unknown]")
    };
    recording.frames = vec![
        Frame {
            source: line(1),
            ..Frame::new("main", "/bin/bench")
        },
        Frame {
            source: line(2),
            ..Frame::new("main", "/bin/bench")
        },
        inlined,
        unknown,
    ];
    let stacks = [[0, 2], [1, 2]].map(|frames| recording.stacks.push_all(frames));
    let unknown = recording.stacks.push_all([3]);
    let all = [
        (0, 0, unknown, 1),
        (1, 0, stacks[0], 2_500_000),
        (2, 0, stacks[1], 5_000_000_000),
        (2, 1, stacks[1], 1),
    ];
    for (time, (task, event, stack, weight)) in (0..).zip(all) {
        recording.samples.push(Sample {
            time: time * 1_000_000,
            task,
            event,
            stack,
            weight,
        });
    }
    recording.markers.push(Marker {
        time: 3_000_000,
        task: 2,
        event: 1,
        stack: stacks[1],
        text: "comm=\"x\"".to_owned(),
    });
    recording
}

fn written(recording: &Recording) -> Value {
    let mut bytes = Vec::new();
    firefox::write(recording, &mut bytes).expect("written");
    serde_json::from_slice(&bytes).expect("JSON")
}

#[test]
fn threads_are_apart_by_name_and_event() {
    let profile = written(&recording());
    let threads = profile["threads"].as_array().expect("threads");
    let of = |thread: &Value| {
        let text = |key: &str| thread[key].as_str().expect(key).to_owned();
        (
            text("name"),
            text("processName"),
            text("pid"),
            text("tid"),
            thread["isMainThread"] == true,
        )
    };
    let wanted = [
        ("sh (offcpu-time)", "sh", "7", "7", true),
        ("bench (offcpu-time)", "bench", "7.1", "7.1", true),
        ("worker (offcpu-time)", "bench", "7.1", "8", false),
        ("worker (sched:wake)", "bench", "7.1", "8.1", false),
    ];
    let wanted = wanted.map(|(name, process, pid, tid, is_main)| {
        (
            name.to_owned(),
            process.to_owned(),
            pid.to_owned(),
            tid.to_owned(),
            is_main,
        )
    });
    assert_eq!(threads.iter().map(of).collect::<Vec<_>>(), wanted);
    // Time in ms, also beyond 32 bits of ns, and no CPU time of sleeping threads.
    let samples = &threads[2]["samples"];
    assert_eq!(samples["weight"], json!([5000.0]));
    assert_eq!(samples["weightType"], "tracing-ms");
    assert_eq!(samples["time"], json!([2.0]));
    assert_eq!(samples["threadCPUDelta"], Value::Null);
}

#[test]
fn functions_have_lines_of_their_own_file_and_markers_their_text() {
    let profile = written(&recording());
    let (worker, event) = (&profile["threads"][2], &profile["threads"][3]);
    let text = |at: &Value| &worker["stringArray"][at.as_u64().expect("a position") as usize];
    let names = worker["funcTable"]["name"]
        .as_array()
        .expect("names")
        .iter();
    assert_eq!(names.map(text).collect::<Vec<_>>(), ["main", "work"]);
    assert_eq!(worker["frameTable"]["line"], json!([2, 9]));
    assert_eq!(worker["frameTable"]["inlineDepth"], json!([0, 1]));
    assert_eq!(worker["stackTable"]["prefix"], json!([null, 0]));
    assert_eq!(profile["libs"].as_array().map(Vec::len), Some(1));
    assert_eq!(profile["threads"][0]["funcTable"]["resource"], json!([-1]));
    assert_eq!(profile["threads"][0]["stringArray"][0], "[unknown]");
    let data = json!([{"type": "tracepoint", "text": "comm=\"x\"", "cause": {"stack": 1}}]);
    assert_eq!(event["markers"]["data"], data);
    assert_eq!(event["markers"]["startTime"], json!([3.0]));
}

#[test]
fn sleeps_are_in_the_track_of_the_clock() {
    let mut recording = recording();
    let name = "cpu-clock".to_owned();
    recording.events.push(Event {
        name,
        unit: Unit::CpuTime,
    });
    let slept = recording.samples[2];
    recording.samples.push(Sample {
        time: 9_000_000,
        event: 2,
        weight: 1_000_000,
        ..slept
    });
    let profile = written(&recording);
    let threads = profile["threads"].as_array().expect("threads");
    let worker = threads
        .iter()
        .find(|thread| thread["name"] == "worker (wall-time)");
    let worker = worker.expect("a track");
    let samples = &worker["samples"];
    assert_eq!(samples["weight"], json!([5000.0, 1.0]));
    assert_eq!(samples["threadCPUDelta"], json!([0, 1_000_000]));
    // The sleep is called by what the clock has seen.
    let stacks = &worker["stackTable"];
    assert_eq!(
        (&samples["stack"], &stacks["prefix"]),
        (&json!([2, 1]), &json!([null, 0, 1]))
    );
    let frame = stacks["frame"][2].as_u64().expect("a frame") as usize;
    assert_eq!(
        profile["meta"]["categories"][worker["frameTable"]["category"][frame]
            .as_u64()
            .expect("a category") as usize]["name"],
        "Off CPU"
    );
    assert!(
        threads
            .iter()
            .all(|thread| !thread["name"].as_str().expect("a name").contains("offcpu"))
    );
}
