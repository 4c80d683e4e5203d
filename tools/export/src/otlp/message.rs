//! The messages of the protocol, as far as counts need them (opentelemetry/proto/metrics/v1/metrics.proto).

use std::time::{SystemTime, UNIX_EPOCH};

use nix::unistd::gethostname;
use prost::{Message, Oneof};

use super::queue::Batch;
use crate::series::{Family, Label, Point, Shape, Snapshot, Value};

/// The most points of a message.
const MOST_POINTS: usize = 1000;

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

/// The answer, which may have refused some points.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Response {
    #[prost(message, optional, tag = "1")]
    pub(super) partial_success: Option<PartialSuccess>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct PartialSuccess {
    #[prost(int64, tag = "1")]
    pub(super) rejected_data_points: i64,
    #[prost(string, tag = "2")]
    pub(super) error_message: String,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(oneof = "Data", tags = "5, 7")]
    data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<DataPoint>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<DataPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct DataPoint {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(oneof = "Number", tags = "4, 6")]
    value: Option<Number>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<KeyValue>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
enum Number {
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(sfixed64, tag = "6")]
    Int(i64),
}

#[derive(Clone, PartialEq, Message)]
struct KeyValue {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(oneof = "Text", tags = "1")]
    value: Option<Text>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Text {
    #[prost(string, tag = "1")]
    String(String),
}

impl KeyValue {
    fn new(key: &str, value: impl Into<String>) -> Self {
        let value = Some(Text::String(value.into()));
        Self {
            key: key.to_owned(),
            value: Some(AnyValue { value }),
        }
    }
}

/// Returns the messages of all series of a snapshot.
pub(crate) fn batches(snapshot: &Snapshot) -> Vec<Batch> {
    let at = snapshot.at.unwrap_or_else(SystemTime::now);
    let mut batches = Vec::new();
    let mut metrics: Vec<Metric> = Vec::new();
    let mut points = 0;
    for family in &snapshot.families {
        let mut rest = family.points.as_slice();
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(MOST_POINTS - points));
            metrics.push(metric(family, now, at));
            points += now.len();
            rest = later;
            if points == MOST_POINTS {
                batches.push(batch(std::mem::take(&mut metrics), points, snapshot));
                points = 0;
            }
        }
    }
    if points > 0 {
        batches.push(batch(metrics, points, snapshot));
    }
    batches
}

fn batch(metrics: Vec<Metric>, points: usize, snapshot: &Snapshot) -> Batch {
    let version = env!("CARGO_PKG_VERSION");
    let request = Request {
        resource_metrics: vec![ResourceMetrics {
            resource: Some(Resource {
                attributes: resource(&snapshot.labels),
            }),
            scope_metrics: vec![ScopeMetrics {
                scope: Some(Scope {
                    name: "quipu".to_owned(),
                    version: version.to_owned(),
                }),
                metrics,
            }],
        }],
    };
    Batch {
        bytes: request.encode_to_vec().into(),
        points: points as u64,
    }
}

/// Returns what the counts are of: this machine.
fn resource(labels: &[(String, String)]) -> Vec<KeyValue> {
    let mut attributes = vec![
        KeyValue::new("service.name", "quipu"),
        KeyValue::new("service.version", env!("CARGO_PKG_VERSION")),
        KeyValue::new("os.type", "linux"),
        KeyValue::new("host.arch", architecture()),
    ];
    if let Ok(name) = gethostname() {
        attributes.push(KeyValue::new("host.name", name.to_string_lossy()));
    }
    if let Ok(id) = std::fs::read_to_string("/etc/machine-id") {
        attributes.push(KeyValue::new("host.id", id.trim()));
    }
    let labels = labels
        .iter()
        .map(|(name, value)| KeyValue::new(name, value.as_str()));
    attributes.extend(labels);
    attributes
}

/// Returns the word that the semantic conventions have for this architecture.
fn architecture() -> &'static str {
    match std::env::consts::ARCH {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        "arm" => "arm32",
        other => other,
    }
}

fn metric(family: &Family, points: &[Point], at: SystemTime) -> Metric {
    let data_points = points.iter().map(|point| data_point(point, at)).collect();
    Metric {
        name: family.name.clone(),
        description: family.help.clone(),
        // UCUM.
        unit: match family.unit {
            Some("seconds") => "s",
            Some("bytes") => "By",
            Some("joules") => "J",
            Some("celsius") => "Cel",
            _ => "1",
        }
        .to_owned(),
        data: Some(match family.shape {
            Shape::Gauge => Data::Gauge(Gauge { data_points }),
            Shape::Counter => Data::Sum(Sum {
                data_points,
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
        }),
    }
}

fn data_point(point: &Point, at: SystemTime) -> DataPoint {
    let attributes = point.labels.iter().map(|Label(name, value)| {
        let key = match *name {
            "container_id" => "container.id",
            name => name,
        };
        KeyValue::new(key, &**value)
    });
    DataPoint {
        start_time_unix_nano: nanoseconds(point.start),
        time_unix_nano: nanoseconds(at),
        value: Some(match point.value {
            Value::Real(value) => Number::Double(value),
            Value::Whole(value) => match i64::try_from(value) {
                Ok(value) => Number::Int(value),
                Err(_) => Number::Double(value as f64),
            },
        }),
        attributes: attributes.collect(),
    }
}

fn nanoseconds(at: SystemTime) -> u64 {
    let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_have_all_points_once_and_a_thousand_at_most() {
        let mut snapshot = Snapshot::default();
        for n in 0..2500_u64 {
            let name = format!("quipu_event_{}", n / 700);
            let point = Point {
                labels: [].into(),
                value: Value::Whole(n),
                start: UNIX_EPOCH,
            };
            snapshot.put((&name, None), "", Shape::Counter, point);
        }
        let batches = batches(&snapshot);
        let sizes: Vec<u64> = batches.iter().map(|batch| batch.points).collect();
        assert_eq!(sizes, [1000, 1000, 500]);
        let mut values = Vec::new();
        for batch in batches {
            let request = Request::decode(batch.bytes).expect("a message");
            let resources = request.resource_metrics.into_iter();
            let scopes = resources.flat_map(|resource| resource.scope_metrics);
            for metric in scopes.flat_map(|scope| scope.metrics) {
                let Some(Data::Sum(sum)) = metric.data else {
                    panic!("{} is no sum", metric.name);
                };
                assert!(sum.is_monotonic && sum.aggregation_temporality == CUMULATIVE);
                values.extend(sum.data_points.into_iter().map(|point| point.value));
            }
        }
        let all = (0..2500).map(|n| Some(Number::Int(n)));
        assert!(values.into_iter().eq(all));
    }
}
