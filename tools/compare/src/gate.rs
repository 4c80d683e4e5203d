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
                Scale::Difference => compared.base,
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
    use crate::machine::Machine;
    use crate::metrics::Metric;
    use crate::session::{End, Measured};
    use crate::subjects::Subject;

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

    /// A report on 20 pairs of a command that takes about 2 % more than another.
    fn report() -> Report {
        let base: Vec<f64> = (0..20)
            .map(|at| 100.0 + f64::from(at * 7 % 20) / 10.0)
            .collect();
        let other = base.iter().rev().map(|value| value * 1.02).collect();
        let subject = |label: &str| Subject {
            label: label.to_owned(),
            name: label.to_owned(),
            parameters: Vec::new(),
            words: Vec::new(),
        };
        let measured = Measured {
            subjects: vec![subject("A"), subject("B")],
            metrics: vec![Metric {
                name: "instructions:u".to_owned(),
                unit: String::new(),
            }],
            values: vec![vec![base, other]],
            statuses: vec![vec![0; 20]; 2],
            not_counted: vec![("cycles".to_owned(), "there is no PMU".to_owned())],
            notes: Vec::new(),
            rounds: 20,
            passes: 1,
            seed: 1,
            seconds: 1.0,
            end: End::Complete,
        };
        Report::new(measured, Machine::this(), Settings::default(), false)
    }

    #[test]
    fn a_gate_fails_only_where_the_whole_interval_is_beyond_the_limit() {
        let report = report();
        let change = report.metrics[0].changes[0].change.expect("20 pairs");
        assert!(change.low > 0.01 && change.low < 0.02 && change.high > 0.02 && change.high < 0.03);
        let answer = |text: &str| {
            let gate = Gate::parse(text).expect("it is well formed");
            gate.answer(&report, 1).expect("it is measured")[0].answer
        };
        assert_eq!(answer("instructions > +1 %"), Answer::Failed);
        assert_eq!(answer("instructions:u > 2 %"), Answer::Inconclusive);
        assert_eq!(answer("instructions > +3 %"), Answer::Passed);
        assert_eq!(answer("instructions < -1 %"), Answer::Passed);
        assert_eq!(answer("instructions < 2 %"), Answer::Inconclusive);
        assert_eq!(answer("instructions < 3 %"), Answer::Failed);
    }

    #[test]
    fn a_metric_without_values_has_no_answer() {
        let report = report();
        let answer = |text: &str| {
            Gate::parse(text)
                .expect("it is well formed")
                .answer(&report, 1)
        };
        let refused = answer("cycles > 2 %")
            .expect_err("it has no values")
            .to_string();
        assert!(
            refused.contains("cycles was not counted: there is no PMU"),
            "{refused}"
        );
        let unknown = answer("cycle > 2 %")
            .expect_err("there is none")
            .to_string();
        assert!(unknown.contains("there are instructions:u"), "{unknown}");
    }
}
