//! Events that can be divided by iterations.

use quipu::{Error, ErrorKind, Result, SetEvent};
use quipu_hal::ValueKind;

/// Refuses an event whose value over several iterations is not the sum of those of each, as that of a ratio is not: criterion
/// divides by the number of iterations.
pub(crate) fn check(event: &SetEvent) -> Result<()> {
    let refused = |reason: &str| {
        let attempted = format!("measure {} per iteration", event.name());
        Err(Error::new(ErrorKind::InvalidConfiguration, attempted).with_reason(reason))
    };
    if event
        .info()
        .is_some_and(|info| info.kind == ValueKind::Gauge)
    {
        return refused("it is a gauge, whose level is of no iteration");
    }
    let Some(preset) = event.preset() else {
        return Ok(());
    };
    let formula = preset.formula();
    // One that adds up at these values adds up at all, as it is made of + - * / max min.
    let [first, second] = [[7.0, 1.0, 31.0, 3.0, 113.0], [2.0, 19.0, 5.0, 57.0, 11.0]];
    let values = |of: &dyn Fn(usize) -> f64| {
        let values: Vec<f64> = (0..formula.events().len()).map(of).collect();
        formula.evaluate(&values)
    };
    let [one, other, both] = [
        values(&|at| first[at % 5] + at as f64),
        values(&|at| second[at % 5]),
        values(&|at| first[at % 5] + at as f64 + second[at % 5]),
    ];
    match (one, other, both) {
        (Some(one), Some(other), Some(both)) if (one + other - both).abs() <= 1e-9 * both.abs() => {
            Ok(())
        }
        _ => refused(&format!(
            "{formula} of many iterations is not the sum of that of each; measure its events one by one"
        )),
    }
}
