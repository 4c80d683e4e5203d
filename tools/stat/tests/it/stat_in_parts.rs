//! Whole reports of intervals and of threads, in every form, with exact counts.

use quipu_hal::{GroupSpec, Part, Reading};
use quipu_scripted::{Scripted, ScriptedGroup};
use quipu_stat::Options;

use crate::session::{measured, options};

/// The nanoseconds between two reads.
const STEP: u64 = 10_000_000;

/// The forms of a report.
const FORMS: [fn(&mut Options); 3] = [
    |_| {},
    |options| options.form.field_separator = Some(";".into()),
    |options| options.form.json = true,
];

/// The numbers of times that the events occur in ten nanoseconds: three cycles in each, six instructions and a branch.
const RATES: [u64; 4] = [30, 60, 10, 1];

/// Opens a group of events in parts. Each read is a step after the one before in the first part; each other part runs for
/// half the time of the one before it.
fn open(spec: &GroupSpec, parts: Vec<Part>) -> ScriptedGroup {
    let mut reads = 0;
    ScriptedGroup::of(spec)
        .in_parts(parts.clone())
        .reading(move |out| {
            reads += 1;
            for part in 0..parts.len() {
                let time = (reads * STEP) >> part;
                for (reading, rate) in out[part].iter_mut().zip(RATES) {
                    *reading = Reading::new(rate * time / 10, time, time);
                }
            }
            Ok(())
        })
}

/// Returns the reports in every form.
fn reports(parts: &[Part], change: impl Fn(&mut Options)) -> String {
    let of_form = |form: fn(&mut Options)| {
        let mut options = options(&[]);
        options.event = vec!["{cycles,instructions,branches,branch-misses}".into()];
        change(&mut options);
        form(&mut options);
        let parts = parts.to_vec();
        let open = move |spec: &GroupSpec, _: &_| Ok(open(spec, parts.clone()));
        let backend = Scripted::new("script", open).counting_cpus();
        let (report, _) = measured(backend, options, |_| {}).expect("no failure of its own");
        report
    };
    FORMS.map(of_form).join("----\n")
}

/// Compares with a snapshot, without times of this run and names of its threads.
macro_rules! assert_report {
    ($text:expr) => {
        insta::with_settings!({filters => vec![
            (r"# started on .*", "# started on [time]"),
            (r" +[0-9]+\.[0-9]{9} seconds", " [time] seconds"),
            (r"(?m)^ +[0-9]+\.[0-9]{9}", "[time]"),
            (r#""interval":[0-9.]+"#, r#""interval":[time]"#),
            (r"(process|thread) [0-9]+", "$1 [id]"),
            // Padded by the length of its number.
            (r"it-[0-9a-f]+-[0-9]+ +", "[thread] "),
            (r"it-[0-9a-f]+-[0-9]+", "[thread]"),
        ]}, { insta::assert_snapshot!($text) });
    };
}

#[test]
fn intervals_and_their_sum() {
    assert_report!(reports(&[Part::whole()], |options| {
        options.interval_print = Some(10);
        options.interval_count = Some(2);
        options.summary = true;
    }));
}

#[test]
fn intervals_of_each_cpu() {
    let cpus = [0, 1].map(Part::on_cpu);
    assert_report!(reports(&cpus, |options| {
        options.interval_print = Some(10);
        options.interval_count = Some(1);
        options.places.no_aggr = true;
    }));
}

/// The threads are this one and one that has ended.
#[cfg(target_os = "linux")]
#[test]
fn each_thread() {
    let this = std::process::id().cast_signed();
    let threads = [Part::of_thread(this), Part::of_thread(i32::MAX)];
    assert_report!(reports(&threads, |options| {
        options.target.all_cpus = false;
        options.target.tid = vec![this];
        options.places.per_thread = true;
        options.timeout = Some(1);
    }));
}
