//! Gates: conditions on changes, which are true or false with a confidence, or open.

use quipu_shell::Failure;
use serde::Serialize;

use crate::report::{MetricReport, Report};
use crate::stats::{Scale, Settings, compare};

/// A condition of `--fail-if`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gate {
    text: String,
    metric: String,
    above: bool,
    /// The limit as a relative change.
    limit: f64,
}

/// The answer to a condition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Answer {
    /// The whole interval is beyond the limit.
    Failed,
    /// The limit is in the interval.
    Inconclusive,
    /// The whole interval is on this side of the limit.
    Passed,
}

/// The answer to a condition on one command.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Outcome {
    pub(crate) condition: String,
    /// The letter of the command.
    pub(crate) command: String,
    pub(crate) answer: Answer,
    /// The reason in words.
    pub(crate) why: String,
}

impl Gate {
    /// Reads a condition: `instructions > +2 %`.
    pub(crate) fn parse(text: &str) -> Result<Self, Failure> {
        let wrong = || {
            Failure::usage(format_args!(
                "--fail-if takes a metric and a limit, such as 'instructions > +2 %', and not {text:?}"
            ))
        };
        let at = text.find(['>', '<']).ok_or_else(wrong)?;
        let (metric, limit) = text.split_at(at);
        let number = limit[1..].trim().strip_suffix('%').ok_or_else(wrong)?;
        let percent: f64 = number.trim().parse().map_err(|_| wrong())?;
        let metric = metric.trim();
        if metric.is_empty() || !percent.is_finite() {
            return Err(wrong());
        }
        Ok(Self {
            text: text.to_owned(),
            metric: metric.to_owned(),
            above: limit.starts_with('>'),
            limit: percent / 100.0,
        })
    }

    /// Answers for each command but the first; `gates` is the number of conditions, which share the confidence.
    pub(crate) fn answer(&self, report: &Report, gates: usize) -> Result<Vec<Outcome>, Failure> {
        let metric = self.metric_of(report)?;
        let answers = (report.commands.len() - 1) * gates;
        let settings = Settings {
            confidence: 1.0 - (1.0 - report.confidence) / answers as f64,
            resolution: report.resolution,
        };
        let (base, others) = metric
            .values
            .split_first()
            .unwrap_or_else(|| unreachable!("two commands are compared"));
        let each = others.iter().zip(&report.commands[1..]);
        let each = each.map(|(other, command)| {
            let compared = compare(base, other, settings);
            // A difference becomes relative to the mean, if that is above zero.
            let of_one = match compared.scale {
                Scale::Relative => 1.0,
                Scale::Difference => metric.summaries[0].mean,
            };
            let interval = compared.interval().filter(|_| of_one > 0.0);
            let Some(interval) = interval else {
                return (
                    Answer::Inconclusive,
                    "too few pairs, or values of zero, for an interval".to_owned(),
                    command,
                );
            };
            let [low, high] = [interval.low, interval.high].map(|end| end / of_one);
            let (near, far) = if self.above {
                (low, high)
            } else {
                (-high, -low)
            };
            let limit = if self.above { self.limit } else { -self.limit };
            let answer = match (near > limit, far > limit) {
                (true, _) => Answer::Failed,
                (false, true) => Answer::Inconclusive,
                (false, false) => Answer::Passed,
            };
            let (low, high, limit) = (low * 100.0, high * 100.0, self.limit * 100.0);
            let why = format!("the change is {low:+.2} to {high:+.2} %, the limit {limit:+} %");
            (answer, why, command)
        });
        let outcomes = each.map(|(answer, why, command)| Outcome {
            condition: self.text.clone(),
            command: command.label.clone(),
            answer,
            why,
        });
        Ok(outcomes.collect())
    }

    /// Returns the metric, by its name with or without the modifier of a fallback to user mode. One that was not measured
    /// must not pass.
    fn metric_of<'r>(&self, report: &'r Report) -> Result<&'r MetricReport, Failure> {
        let is_meant =
            |name: &str| name == self.metric || name.strip_suffix(":u") == Some(&self.metric);
        if let Some(metric) = report
            .metrics
            .iter()
            .find(|metric| is_meant(&metric.metric.name))
        {
            return Ok(metric);
        }
        let text = &self.text;
        if let Some(missing) = report
            .not_counted
            .iter()
            .find(|missing| is_meant(&missing.metric))
        {
            let why = &missing.why;
            return Err(Failure::new(format_args!(
                "--fail-if {text:?} has no answer: {} was not counted: {why}",
                self.metric
            )));
        }
        let names: Vec<&str> = report
            .metrics
            .iter()
            .map(|metric| metric.metric.name.as_str())
            .collect();
        let names = names.join(", ");
        Err(Failure::usage(format_args!(
            "--fail-if {text:?} names no metric of this comparison; there are {names}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_a_metric_and_a_limit() {
        let gate = Gate::parse("page-faults > +2.5 %").expect("it is well formed");
        assert_eq!(
            (gate.metric.as_str(), gate.above, gate.limit),
            ("page-faults", true, 0.025)
        );
        let gate = Gate::parse("elapsed<-5%").expect("it is well formed");
        assert_eq!(
            (gate.metric.as_str(), gate.above, gate.limit),
            ("elapsed", false, -0.05)
        );
        for wrong in [
            "elapsed",
            "elapsed > 2",
            "> 2 %",
            "elapsed > x %",
            "elapsed > inf %",
            "",
        ] {
            assert!(Gate::parse(wrong).is_err(), "{wrong}");
        }
    }
}
