//! The metrics alone, through the output that a command line asks for.

use quipu_stat::{Options, Output};

use super::sample;

fn written(change: fn(&mut Options)) -> String {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("report");
    let mut options = Options {
        output: Some(file.clone()),
        ..Options::default()
    };
    options.form.metric_only = true;
    change(&mut options);
    let mut output = Output::open(&options).expect("a file");
    for time in [0.25, 0.5]
        .iter()
        .filter(|_| options.interval_print.is_some())
    {
        output.interval(*time, &sample::exact().rows);
    }
    output.report(&sample::exact());
    let text = std::fs::read_to_string(&file).expect("it was written");
    let lines = text.lines().filter(|line| !line.starts_with("# started"));
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn rates_and_shares_of_the_cpu_are_left_out_as_perf_does() {
    let forms: [fn(&mut Options); 4] = [
        |_| {},
        |options| options.form.csv = true,
        |options| options.form.json = true,
        |options| options.interval_print = Some(250),
    ];
    insta::assert_snapshot!(forms.map(written).join("\n----\n"));
}
