//! The values of a comparison with what follows from them: all that the forms of output show.

use serde::Serialize;

use crate::gate::Outcome;
use crate::machine::Machine;
use crate::metrics::Metric;
use crate::session::{End, Measured};
use crate::stats::{
    Comparison, Decision, Interval, Method, Scale, Settings, Summary, Verdict, compare, decide,
    summary,
};
use crate::subjects::Subject;

/// The number of the form of files that `--json` and `--save` write.
pub(crate) const FORM: u32 = 1;

/// A comparison with its results.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    /// The form of this object.
    #[serde(rename = "quipu_compare")]
    pub(crate) form: u32,
    pub(crate) machine: Machine,
    pub(crate) pairs: u32,
    pub(crate) passes: usize,
    pub(crate) seed: u64,
    pub(crate) seconds: f64,
    /// `complete`, or why it ended before.
    pub(crate) end: String,
    pub(crate) confidence: f64,
    pub(crate) resolution: f64,
    /// True if the first command is that of a baseline, which was measured at another time.
    pub(crate) has_baseline: bool,
    pub(crate) commands: Vec<Subject>,
    /// By command: the exit status of each run; -n for signal n.
    pub(crate) statuses: Vec<Vec<i32>>,
    pub(crate) metrics: Vec<MetricReport>,
    pub(crate) not_counted: Vec<NotCounted>,
    pub(crate) notes: Vec<String>,
    pub(crate) gates: Vec<Outcome>,
}

/// A metric of all commands.
#[derive(Debug, Serialize)]
pub(crate) struct MetricReport {
    #[serde(flatten)]
    pub(crate) metric: Metric,
    /// By command: the values in the order of the pairs.
    pub(crate) values: Vec<Vec<f64>>,
    pub(crate) summaries: Vec<Summary>,
    /// The changes from the first command to each of the others.
    pub(crate) changes: Vec<Change>,
}

/// The change of a metric from the first command to another.
#[derive(Debug, Serialize)]
pub(crate) struct Change {
    /// The letter of the other command.
    pub(crate) command: String,
    pub(crate) scale: Scale,
    pub(crate) method: Method,
    pub(crate) change: Option<Interval>,
    pub(crate) p: f64,
    /// The probability corrected for the number of metrics and commands.
    pub(crate) p_corrected: f64,
    pub(crate) verdict: Verdict,
    /// The least difference that would have been seen; not a number in JSON if there is none.
    pub(crate) detectable: f64,
    /// Both methods by themselves.
    pub(crate) student: Option<Tested>,
    pub(crate) signed_rank: Option<Tested>,
    /// The method that says otherwise on whether there is a difference.
    pub(crate) disagreement: Option<Method>,
}

/// The outcome of one method.
#[derive(Debug, Serialize)]
pub(crate) struct Tested {
    pub(crate) change: Option<Interval>,
    pub(crate) p: f64,
}

/// A metric without values.
#[derive(Debug, Serialize)]
pub(crate) struct NotCounted {
    pub(crate) metric: String,
    pub(crate) why: String,
}

impl Report {
    pub(crate) fn new(
        measured: Measured,
        machine: Machine,
        settings: Settings,
        has_baseline: bool,
    ) -> Self {
        let compared: Vec<Comparison> = measured
            .values
            .iter()
            .filter_map(|values| values.split_first())
            .flat_map(|(base, others)| others.iter().map(|other| compare(base, other, settings)))
            .collect();
        let decisions = decide(&compared, settings);
        let mut changes = compared.iter().zip(decisions);
        let mut metrics = Vec::new();
        for (metric, values) in measured.metrics.into_iter().zip(measured.values) {
            let others = measured.subjects.iter().skip(1);
            let changes = others
                .zip(&mut changes)
                .map(|(subject, (comparison, decision))| change(subject, comparison, decision));
            let changes = changes.collect();
            metrics.push(MetricReport {
                metric,
                summaries: values.iter().filter_map(|values| summary(values)).collect(),
                values,
                changes,
            });
        }
        // Nothing was measured before it ended.
        metrics.retain(|metric| metric.summaries.len() == measured.subjects.len());
        let not_counted = measured.not_counted.into_iter();
        Self {
            form: FORM,
            machine,
            pairs: measured.rounds,
            passes: measured.passes,
            seed: measured.seed,
            seconds: measured.seconds,
            end: match measured.end {
                End::Complete => "complete".to_owned(),
                End::Interrupted(signal) => format!("interrupted by signal {signal}"),
                End::Stopped(why) => why,
            },
            confidence: settings.confidence,
            resolution: settings.resolution,
            has_baseline,
            commands: measured.subjects,
            statuses: measured.statuses,
            metrics,
            not_counted: not_counted
                .map(|(metric, why)| NotCounted { metric, why })
                .collect(),
            notes: measured.notes,
            gates: Vec::new(),
        }
    }

    /// Returns true if all was measured that was asked for.
    pub(crate) fn is_complete(&self) -> bool {
        self.end == "complete"
    }

    /// Returns each reason why metrics have no values, with their names.
    pub(crate) fn missing(&self) -> Vec<(&str, Vec<&str>)> {
        let mut missing: Vec<(&str, Vec<&str>)> = Vec::new();
        for one in &self.not_counted {
            match missing.iter_mut().find(|(why, _)| *why == one.why) {
                Some((_, names)) => names.push(&one.metric),
                None => missing.push((&one.why, vec![&one.metric])),
            }
        }
        missing
    }

    /// Returns the share of an interval in percent, as text: `95`.
    pub(crate) fn percent(&self) -> String {
        let percent = format!("{:.3}", self.confidence * 100.0);
        percent
            .trim_end_matches('0')
            .trim_end_matches('.')
            .to_owned()
    }
}

fn change(subject: &Subject, comparison: &Comparison, decision: Decision) -> Change {
    let tested = |method| {
        let change = comparison.interval_by(method);
        let is_there = method == Method::SignedRank || change.is_some();
        is_there.then(|| Tested {
            change,
            p: comparison.p_by(method),
        })
    };
    Change {
        command: subject.label.clone(),
        scale: comparison.scale,
        method: comparison.method,
        change: comparison.interval(),
        p: comparison.p(),
        p_corrected: decision.p,
        verdict: decision.verdict,
        detectable: decision.detectable,
        student: tested(Method::Student),
        signed_rank: tested(Method::SignedRank),
        disagreement: decision.disagreement,
    }
}

impl Change {
    /// Returns the verdict in the words of a table.
    pub(crate) fn word(&self) -> &'static str {
        match (self.verdict, self.change) {
            (Verdict::Different, Some(change)) if change.value < 0.0 => "less",
            (Verdict::Different, _) => "more",
            (Verdict::NoDifferenceFound, _) => "no difference found",
            (Verdict::Inconclusive, _) => "inconclusive",
        }
    }
}
