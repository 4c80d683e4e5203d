//! Files for viewers: what is in them is what `quipu report` prints.

use std::collections::BTreeMap;
use std::fs;

use inferno::flamegraph;
use serde_json::Value;

use super::diff::diff;
use super::{Bench, branches, stderr, stdout};
use crate::printed::unwrapped;

/// The weight that functions have by themselves, by event and name.
type Weights = BTreeMap<(String, String), u64>;

/// Returns the weights that a report prints.
fn reported(bench: &Bench, options: &[&str]) -> Weights {
    let mut weights = Weights::new();
    for row in bench.rows(&[&["--inline"], options].concat()) {
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let short = text("object")
            .rsplit('/')
            .next()
            .unwrap_or_default()
            .to_owned();
        let title = match row["symbol"].as_str() {
            Some(symbol) => symbol.to_owned(),
            None => format!("[{}]", short.trim_matches(['[', ']'])),
        };
        let period = row["period"].as_u64().expect("a number");
        *weights.entry((text("event"), title)).or_default() += period;
    }
    weights.retain(|_, weight| *weight > 0);
    weights
}

fn json(bench: &Bench, file: &str) -> Value {
    let text = fs::read_to_string(bench.path(file)).expect("it was written");
    serde_json::from_str(&text).expect("JSON")
}

/// Returns the numbers of a column.
fn column(table: &Value, name: &str) -> Vec<Option<usize>> {
    let numbers = table[name].as_array().expect(name).iter();
    numbers
        .map(|number| number.as_u64().map(|n| n as usize))
        .collect()
}

/// Returns the weights in a file for Firefox Profiler, whose threads are named by their events too if those are several.
fn of_firefox(profile: &Value, only: Option<&str>) -> Weights {
    let mut weights = Weights::new();
    for thread in profile["threads"].as_array().expect("threads") {
        let name = thread["name"].as_str().expect("a name");
        let event = match name.rsplit_once(" (") {
            Some((_, event)) => event.trim_end_matches(')'),
            None => only.expect("one event"),
        };
        let samples = &thread["samples"];
        let (stacks, frames) = (
            column(&thread["stackTable"], "frame"),
            column(&thread["frameTable"], "func"),
        );
        let names = column(&thread["funcTable"], "name");
        let is_time = samples["weightType"] == "tracing-ms";
        let own = column(samples, "stack")
            .into_iter()
            .zip(samples["weight"].as_array().expect("weights"));
        for (stack, weight) in own {
            let func =
                frames[stacks[stack.expect("a stack")].expect("a frame")].expect("a function");
            let name = &thread["stringArray"][names[func].expect("a name")];
            let weight = match is_time {
                true => (weight.as_f64().expect("ms") * 1e6).round() as u64,
                false => weight.as_u64().expect("a number"),
            };
            let key = (event.to_owned(), name.as_str().expect("text").to_owned());
            *weights.entry(key).or_default() += weight;
        }
    }
    weights.retain(|_, weight| *weight > 0);
    weights
}

/// Returns the weights in a file for speedscope.
fn of_speedscope(file: &Value) -> Weights {
    let mut weights = Weights::new();
    for profile in file["profiles"].as_array().expect("profiles") {
        let event = profile["name"]
            .as_str()
            .expect("a name")
            .rsplit_once(": ")
            .expect("a thread")
            .0;
        let samples = profile["samples"].as_array().expect("samples").iter();
        for (sample, weight) in samples.zip(profile["weights"].as_array().expect("weights")) {
            let innermost = sample
                .as_array()
                .and_then(|frames| frames.last())
                .and_then(Value::as_u64);
            let frame = &file["shared"]["frames"][innermost.expect("a frame") as usize];
            let key = (
                event.to_owned(),
                frame["name"].as_str().expect("text").to_owned(),
            );
            *weights.entry(key).or_default() += weight.as_u64().expect("a number");
        }
    }
    weights.retain(|_, weight| *weight > 0);
    weights
}

#[test]
fn files_for_viewers_have_the_weights_of_a_report() {
    let Some(bench) = Bench::new("files_for_viewers_have_the_weights_of_a_report") else {
        return;
    };
    let files = ["--firefox", "out.json", "--speedscope", "out.speedscope"];
    let events = ["-e", "page-faults:u,minor-faults:u", "-c", "1", "-g"];
    bench.record_faults(&[&events[..], &files].concat());
    let wanted = reported(&bench, &[]);
    for event in ["page-faults:u", "minor-faults:u"] {
        assert_eq!(wanted[&(event.to_owned(), "hot".to_owned())], 300);
    }
    let profile = json(&bench, "out.json");
    assert_eq!(of_firefox(&profile, None), wanted);
    assert_eq!(of_speedscope(&json(&bench, "out.speedscope")), wanted);
    // The names of the process and of its threads, a track for each event.
    let threads = profile["threads"].as_array().expect("threads");
    let names: Vec<_> = threads
        .iter()
        .map(|thread| (&thread["processName"], &thread["name"]))
        .collect();
    let tracks = ["program (page-faults:u)", "program (minor-faults:u)"];
    for track in tracks {
        assert!(
            names.contains(&(&"program".into(), &track.into())),
            "{names:?}"
        );
    }
    assert!(threads[0]["isMainThread"] == true && threads[1]["tid"] != threads[0]["tid"]);
    // Source lines.
    let lines = column(&threads[0]["frameTable"], "line");
    assert!(lines.iter().flatten().count() > 0, "{lines:?}");
}

#[test]
fn clocks_are_weighed_by_time_and_branches_change_nothing() {
    const TEST: &str = "clocks_are_weighed_by_time_and_branches_change_nothing";
    let Some(bench) = Bench::new(TEST) else {
        return;
    };
    let shell = ["-e", "cpu-clock", "-F", "999", "-g"];
    bench.record(
        &shell,
        "sh -c i=0;while\t[\t$i\t-lt\t30000\t];do\ti=$((i+1));done",
    );
    let files = [
        "--firefox",
        "out.json",
        "--speedscope",
        "out.speedscope",
        "--pprof",
        "out.pb",
    ];
    let written = bench.report(&files);
    assert!(written.status.success(), "{}", stderr(&written));
    let wanted = reported(&bench, &[]);
    assert!(!wanted.is_empty());
    assert_eq!(
        of_firefox(&json(&bench, "out.json"), Some("cpu-clock")),
        wanted
    );
    assert_eq!(of_speedscope(&json(&bench, "out.speedscope")), wanted);

    branches::recorded(&bench, false);
    let options = ["-i", "b.data"];
    let written = bench.report(&[&options[..], &files].concat());
    assert!(written.status.success(), "{}", stderr(&written));
    let wanted = reported(&bench, &options);
    assert_eq!(
        of_firefox(&json(&bench, "out.json"), Some("page-faults:u")),
        wanted
    );
}

#[test]
fn folded_stacks_are_those_of_the_flame_graph_of_one_event() {
    let Some(bench) = Bench::new("folded_stacks_are_those_of_the_flame_graph_of_one_event") else {
        return;
    };
    bench.record_faults(&["-e", "page-faults:u,minor-faults:u", "-c", "1", "-g"]);
    let weights = reported(&bench, &[]);
    for (options, event, other) in [
        (&[][..], "page-faults:u", "minor-faults:u"),
        (&["-e", "minor-faults:u"], "minor-faults:u", "page-faults:u"),
    ] {
        let folded = bench.report(&[&["--folded"], options].concat());
        let lines = stdout(&folded);
        let sum: u64 = lines
            .lines()
            .map(|line| {
                line.rsplit_once(' ')
                    .and_then(|(_, n)| n.parse::<u64>().ok())
                    .expect(line)
            })
            .sum();
        let all = weights
            .iter()
            .filter(|((of, _), _)| of == event)
            .map(|(_, weight)| weight);
        assert_eq!(sum, all.sum::<u64>());
        assert!(
            lines
                .lines()
                .any(|line| line.ends_with(";main;work;hot 300")),
            "{lines}"
        );
        let note = format!(
            "these are the stacks of {event}; -e EVENT shows those of another event: {other}"
        );
        assert_eq!(
            stderr(&folded).contains(&note),
            options.is_empty(),
            "{}",
            stderr(&folded)
        );

        let drawn = bench.report(&[&["--flamegraph", "out.svg"], options].concat());
        assert!(drawn.status.success(), "{}", stderr(&drawn));
        let mut options = flamegraph::Options::default();
        options.title = event.to_owned();
        options.count_name = event.to_owned();
        // That callers are missing is said in the picture too.
        let notes = unwrapped(&stderr(&folded));
        let of_event = notes.split_once(&format!("quipu: {event}: "));
        let cut = of_event.and_then(|(_, note)| note.split_once(';'));
        options.subtitle = cut.map(|(cut, _)| cut.to_owned());
        options.deterministic = true;
        let mut picture = Vec::new();
        flamegraph::from_lines(&mut options, lines.lines(), &mut picture).expect("stacks");
        assert_eq!(
            String::from_utf8(picture).expect("text"),
            fs::read_to_string(bench.path("out.svg")).expect("a picture")
        );
    }
}

#[test]
fn what_differs_is_drawn_in_colours() {
    let Some(bench) = Bench::new("what_differs_is_drawn_in_colours") else {
        return;
    };
    let options = ["-e", "page-faults:u", "-c", "1", "-g"];
    bench.record_faults(&options);
    let drawn = diff(
        &bench,
        &["perf.data", "perf.data", "--flamegraph", "same.svg"],
    );
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    bench.record(&[&options[..], &["-o", "true.data"]].concat(), "true");
    let drawn = diff(
        &bench,
        &["true.data", "perf.data", "--flamegraph", "out.svg"],
    );
    assert!(drawn.status.success(), "{}", stderr(&drawn));
    // The function that the first file does not have is red, and the same file is white.
    let colour = |file: &str| {
        let picture = fs::read_to_string(bench.path(file)).expect("a picture");
        let (_, hot) = picture
            .split_once("<title>hot (300 page-faults:u, ")
            .expect(&picture);
        let (_, fill) = hot.split_once("fill=\"").expect(hot);
        fill.split_once('"').expect(fill).0.to_owned()
    };
    assert_eq!(colour("same.svg"), "rgb(250,250,250)");
    let red = colour("out.svg");
    assert!(red.starts_with("rgb(255,"), "{red}");
    let three = diff(
        &bench,
        &[
            "perf.data",
            "perf.data",
            "perf.data",
            "--flamegraph",
            "x.svg",
        ],
    );
    assert!(
        stderr(&three).contains("--flamegraph wants two files"),
        "{}",
        stderr(&three)
    );
}

#[test]
fn files_for_viewers_want_a_recording_and_samples() {
    let Some(bench) = Bench::new("files_for_viewers_want_a_recording_and_samples") else {
        return;
    };
    let piped = bench.record(
        &["-e", "page-faults:u", "-o", "-", "--firefox", "x.json"],
        "true",
    );
    assert_eq!(piped.status.code(), Some(2));
    assert!(
        stderr(&piped).contains("-o must name a file"),
        "{}",
        stderr(&piped)
    );
    bench.record(&["-e", "page-faults:u", "-c", "1"], "true");
    let none = bench.report(&["--comms", "nosuch", "--pprof", "x.pb"]);
    assert_eq!(none.status.code(), Some(125));
    assert!(
        stderr(&none).contains("has no samples of what was chosen"),
        "{}",
        stderr(&none)
    );
    assert!(!bench.path("x.pb").exists());
    let unknown = bench.report(&["-e", "nosuch", "--pprof", "x.pb"]);
    assert!(
        stderr(&unknown).contains("has no event nosuch; it has page-faults:u"),
        "{}",
        stderr(&unknown)
    );
}
