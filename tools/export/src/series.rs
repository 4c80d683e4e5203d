//! Series of numbers, as both Prometheus and OpenTelemetry have them.

use std::sync::Arc;
use std::time::SystemTime;

/// The labels of a series, without those that all have.
pub(crate) type Labels = Arc<[Label]>;

/// A label, with a name of [`Label::NAMES`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Label(pub(crate) &'static str, pub(crate) Arc<str>);

impl Label {
    const NAMES: [&'static str; 17] = [
        "target",
        "cpu",
        "core",
        "socket",
        "cgroup",
        "unit",
        "process",
        "user",
        "container_id",
        "event",
        "kind",
        "modifiers",
        "reason",
        "outcome",
        "version",
        "job",
        "instance",
    ];

    pub(crate) fn new(name: &'static str, value: impl Into<Arc<str>>) -> Self {
        Self(name, value.into())
    }

    /// Returns true for names that have a meaning here or that Prometheus sets.
    pub(crate) fn is_reserved(name: &str) -> bool {
        Self::NAMES.contains(&name) || name.starts_with("__")
    }
}

/// Returns true for what may be the name of a label.
pub(crate) fn is_label(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// All series at one moment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Snapshot {
    pub(crate) families: Vec<Family>,
    /// Labels of every series.
    pub(crate) labels: Vec<(String, String)>,
    pub(crate) at: Option<SystemTime>,
}

/// The series of one name.
#[derive(Debug, Clone)]
pub(crate) struct Family {
    /// The name without unit and suffix: `quipu_task_clock`.
    pub(crate) name: String,
    pub(crate) unit: Option<&'static str>,
    pub(crate) help: String,
    pub(crate) shape: Shape,
    pub(crate) points: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Counter,
    Gauge,
}

/// The value of a series.
#[derive(Debug, Clone)]
pub(crate) struct Point {
    pub(crate) labels: Labels,
    pub(crate) value: Value,
    /// The time from which on it was counted.
    pub(crate) start: SystemTime,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Whole(u64),
    Real(f64),
}

impl Value {
    /// Returns a count in the unit that `factor` leads to.
    pub(crate) fn scaled(count: u128, factor: f64) -> Self {
        match u64::try_from(count) {
            Ok(count) if factor == 1.0 => Self::Whole(count),
            _ => Self::Real(count as f64 * factor),
        }
    }
}

impl Snapshot {
    /// Adds a point to the family of a name, which is made if there is none; a family of another shape or unit takes none.
    pub(crate) fn put(
        &mut self,
        (name, unit): (&str, Option<&'static str>),
        help: &str,
        shape: Shape,
        point: Point,
    ) {
        let mut families = self.families.iter_mut();
        match families.find(|family| family.name == name) {
            Some(family) if (family.shape, family.unit) == (shape, unit) => {
                family.points.push(point);
            }
            Some(_) => {}
            None => self.families.push(Family {
                name: name.to_owned(),
                unit,
                help: help.to_owned(),
                shape,
                points: vec![point],
            }),
        }
    }
}
