//! The text of series: OpenMetrics, and Prometheus's older form.

use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::sync::Arc;

use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{
    DescriptorEncoder, EncodeLabelSet, EncodeMetric, LabelSetEncoder, prometheus_text, text,
};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::{Registry, Unit};

use crate::events::EventMetric;
use crate::series::{Label, Shape, Snapshot, Value};

/// A form of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    OpenMetrics,
    Prometheus,
}

impl Form {
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Prometheus => prometheus_text::CONTENT_TYPE,
        }
    }
}

/// Returns the whole text.
pub(crate) fn encode(snapshot: &Arc<Snapshot>, form: Form) -> String {
    let labels = snapshot.labels.iter();
    let labels = labels.map(|(name, value)| (Cow::from(name.clone()), Cow::from(value.clone())));
    let mut registry = Registry::with_labels(labels);
    registry.register_collector(Box::new(Series {
        snapshot: Arc::clone(snapshot),
        form,
    }));
    let mut text = String::new();
    // Writing to a string does not fail.
    let _ = match form {
        Form::OpenMetrics => text::encode(&mut text, &registry),
        Form::Prometheus => prometheus_text::encode(&mut text, &registry),
    };
    text
}

/// Returns text as gzip has it.
pub(crate) fn zipped(text: &[u8]) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Writing to memory does not fail.
    let _ = encoder.write_all(text);
    encoder.finish().unwrap_or_default().into()
}

/// Returns the name of an event's metric with all suffixes.
pub(crate) fn full_name(metric: &EventMetric) -> String {
    let unit = metric.unit.map(|unit| format!("_{unit}"));
    let total = match metric.shape {
        Shape::Counter => "_total",
        Shape::Gauge => "",
    };
    format!("{}{}{total}", metric.name, unit.unwrap_or_default())
}

/// The series of a snapshot, for the encoders.
#[derive(Debug)]
struct Series {
    snapshot: Arc<Snapshot>,
    form: Form,
}

impl Collector for Series {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for family in &self.snapshot.families {
            let unit = family.unit.map(|unit| match unit {
                "seconds" => Unit::Seconds,
                "bytes" => Unit::Bytes,
                "joules" => Unit::Joules,
                "celsius" => Unit::Celsius,
                other => Unit::Other(other.to_owned()),
            });
            let kind = match family.shape {
                Shape::Counter => MetricType::Counter,
                Shape::Gauge => MetricType::Gauge,
            };
            let help = help(&family.help, self.form);
            let mut metric = encoder.encode_descriptor(&family.name, &help, unit.as_ref(), kind)?;
            for point in &family.points {
                let labels = OfPoint(&point.labels);
                let series = metric.encode_family(&labels)?;
                match (family.shape, point.value) {
                    (Shape::Counter, Value::Whole(n)) => ConstCounter::new(n).encode(series)?,
                    (Shape::Counter, Value::Real(n)) => ConstCounter::new(n).encode(series)?,
                    (Shape::Gauge, Value::Whole(n)) => ConstGauge::new(n).encode(series)?,
                    (Shape::Gauge, Value::Real(n)) => ConstGauge::new(n).encode(series)?,
                }
            }
        }
        Ok(())
    }
}

/// Returns a sentence in one line, with what the encoder of the form does not escape itself.
fn help(text: &str, form: Form) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match form {
        Form::OpenMetrics => line.replace('\\', "\\\\").replace('"', "\\\""),
        Form::Prometheus => line,
    }
}

#[derive(Debug)]
struct OfPoint<'a>(&'a [Label]);

impl EncodeLabelSet for OfPoint<'_> {
    fn encode(&self, encoder: &mut LabelSetEncoder<'_>) -> fmt::Result {
        use prometheus_client::encoding::EncodeLabel as _;

        for Label(name, value) in self.0 {
            (*name, &**value).encode(encoder.encode_label())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;

    fn snapshot() -> Arc<Snapshot> {
        let mut snapshot = Snapshot {
            labels: vec![("rack".into(), "a\"7\n".into())],
            ..Snapshot::default()
        };
        let mut put = |name, unit, shape, labels: &[Label], value| {
            let help = "With a \\ and a \"quote\"\nin two lines";
            let point = crate::series::Point {
                labels: labels.into(),
                value,
                start: SystemTime::UNIX_EPOCH,
            };
            snapshot.put((name, unit), help, shape, point);
        };
        let labels = [Label::new("cgroup", "/a\\b \"c\"\n")];
        put(
            "quipu_clock",
            Some("seconds"),
            Shape::Counter,
            &labels,
            Value::Real(1.5),
        );
        put("quipu_up", None, Shape::Gauge, &[], Value::Whole(1));
        put(
            "quipu_clock",
            Some("seconds"),
            Shape::Counter,
            &[],
            Value::Whole(3),
        );
        // One name has one shape.
        put("quipu_up", None, Shape::Counter, &[], Value::Whole(2));
        Arc::new(snapshot)
    }

    #[test]
    fn open_metrics_escape_what_could_be_read_as_theirs() {
        let text = encode(&snapshot(), Form::OpenMetrics);
        let help = "With a \\\\ and a \\\"quote\\\" in two lines";
        let rack = "rack=\"a\\\"7\\n\"";
        assert_eq!(
            text,
            format!(
                "# HELP quipu_clock_seconds {help}\n\
                 # TYPE quipu_clock_seconds counter\n\
                 # UNIT quipu_clock_seconds seconds\n\
                 quipu_clock_seconds_total{{{rack},cgroup=\"/a\\\\b \\\"c\\\"\\n\"}} 1.5\n\
                 quipu_clock_seconds_total{{{rack}}} 3\n\
                 # HELP quipu_up {help}\n\
                 # TYPE quipu_up gauge\n\
                 quipu_up{{{rack}}} 1\n\
                 # EOF\n"
            )
        );
    }

    #[test]
    fn prometheus_has_the_suffix_in_the_name_of_the_family() {
        let text = encode(&snapshot(), Form::Prometheus);
        assert!(
            text.starts_with(
                "# HELP quipu_clock_seconds_total With a \\\\ and a \"quote\" in two lines\n\
                 # TYPE quipu_clock_seconds_total counter\n\
                 quipu_clock_seconds_total{"
            ),
            "{text}"
        );
        assert!(!text.contains("EOF") && !text.contains("# UNIT"), "{text}");
    }
}
