//! Values that an earlier comparison kept.

use std::fs;
use std::path::Path;

use quipu_shell::Failure;
use serde::Deserialize;

use crate::machine::Machine;
use crate::metrics::Metric;
use crate::report::FORM;
use crate::session::Measured;
use crate::subjects::Subject;

/// The parts of a file that are compared.
#[derive(Debug, Deserialize)]
pub(crate) struct Baseline {
    #[serde(rename = "quipu_compare")]
    form: u32,
    machine: Machine,
    commands: Vec<Subject>,
    statuses: Vec<Vec<i32>>,
    metrics: Vec<Values>,
}

#[derive(Debug, Deserialize)]
struct Values {
    #[serde(flatten)]
    metric: Metric,
    values: Vec<Vec<f64>>,
}

impl Baseline {
    /// Reads a file that `--save` or `--json` wrote on this machine, or on any with `any_machine`.
    pub(crate) fn read(path: &Path, here: &Machine, any_machine: bool) -> Result<Self, Failure> {
        let file = path.display();
        let text = fs::read_to_string(path)
            .map_err(|e| Failure::new(format_args!("cannot read the baseline {file}: {e}")))?;
        let read: Self = serde_json::from_str(&text).map_err(|e| {
            Failure::new(format_args!(
                "{file} is no baseline that quipu compare --save wrote: {e}"
            ))
        })?;
        if read.form != FORM
            || read.commands.is_empty()
            || read.metrics.iter().any(|one| one.values.is_empty())
        {
            return Err(Failure::new(format_args!(
                "{file} is no baseline of this version of quipu; write one with --save"
            )));
        }
        let differences = here.differences(&read.machine);
        if !any_machine && !differences.is_empty() {
            let differences = differences.join("; ");
            return Err(Failure::new(format_args!(
                "the baseline {file} was measured on another machine: {differences}. What differs may be the machine's; --allow-other-machine compares all the same"
            )));
        }
        Ok(read)
    }

    /// Puts its first command before those that were measured now. Metrics that only one of the two has are left out.
    pub(crate) fn put_before(self, measured: &mut Measured, here: &Machine) {
        for difference in here.differences(&self.machine) {
            measured
                .notes
                .push(format!("the baseline is of another machine: {difference}"));
        }
        measured.notes.push(
            "the baseline was measured at another time: what has changed on the machine since is in the changes too".to_owned(),
        );
        let mut metrics = Vec::new();
        let mut values = Vec::new();
        let mut known = self.metrics;
        for (metric, now) in measured.metrics.drain(..).zip(measured.values.drain(..)) {
            match known.iter().position(|known| known.metric == metric) {
                Some(at) => {
                    let base = known.swap_remove(at).values.swap_remove(0);
                    values.push([base].into_iter().chain(now).collect());
                    metrics.push(metric);
                }
                None => measured
                    .not_counted
                    .push((metric.name, "the baseline has no values of it".to_owned())),
            }
        }
        let unmeasured = known.into_iter().map(|known| {
            (
                known.metric.name,
                "only the baseline has values of it".to_owned(),
            )
        });
        let already: Vec<String> = measured
            .not_counted
            .iter()
            .map(|(name, _)| name.clone())
            .collect();
        measured
            .not_counted
            .extend(unmeasured.filter(|(name, _)| !already.contains(name)));
        (measured.metrics, measured.values) = (metrics, values);
        let base = self.commands.into_iter().next();
        measured.subjects.splice(
            ..0,
            base.map(|base| Subject {
                label: "A".to_owned(),
                ..base
            }),
        );
        measured
            .statuses
            .insert(0, self.statuses.into_iter().next().unwrap_or_default());
    }
}
