//! Axes: round numbers, and how they are written.

/// A range of numbers, drawn over a range of pixels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Axis {
    numbers: (f64, f64),
    pixels: (f64, f64),
}

impl Axis {
    /// Returns the axis on which these numbers are at these pixels.
    pub(crate) fn new(numbers: (f64, f64), pixels: (f64, f64)) -> Self {
        Self { numbers, pixels }
    }

    /// Returns the pixel of a number.
    pub(crate) fn at(self, number: f64) -> f64 {
        let (first, last) = self.numbers;
        let share = match last > first {
            true => (number - first) / (last - first),
            false => 0.0,
        };
        self.pixels.0 + share.clamp(0.0, 1.0) * (self.pixels.1 - self.pixels.0)
    }

    /// Returns round numbers of the range, not many more than these.
    pub(crate) fn ticks(self, about: u32) -> Vec<f64> {
        let (first, last) = self.numbers;
        let step = step(last - first, about);
        let begin = (first / step).ceil() as i64;
        let ticks = (begin..).map(|at| at as f64 * step);
        ticks
            .take_while(|tick| *tick <= last + step * 1e-6)
            .collect()
    }
}

/// Returns the least round number (1, 2 or 5 times a power of ten) of which so many cover a length.
fn step(length: f64, about: u32) -> f64 {
    if !(length > 0.0 && length.is_finite()) {
        return 1.0;
    }
    let least = length / f64::from(about);
    let power = 10_f64.powf(least.log10().floor());
    let round = [1.0, 2.0, 5.0, 10.0].map(|times| times * power);
    let enough = round.into_iter().find(|step| *step >= least * (1.0 - 1e-9));
    enough.unwrap_or(10.0 * power)
}

/// Returns the end of an axis that begins with 0 and has a value on it.
pub(crate) fn end(largest: f64) -> f64 {
    match largest > 0.0 && largest.is_finite() {
        true => {
            let step = step(largest, 4);
            (largest / step * (1.0 - 1e-9)).ceil() * step
        }
        false => 1.0,
    }
}

/// Returns a number in short: `1.5 M`.
pub(crate) fn short(number: f64) -> String {
    let units = [(1e12, " T"), (1e9, " G"), (1e6, " M"), (1e3, " k")];
    let unit = units
        .into_iter()
        .find(|(size, _)| number.abs() >= *size * 0.9995);
    let (size, unit) = unit.unwrap_or((1.0, ""));
    let number = number / size;
    let decimals = match number.abs() {
        100.0.. => 0,
        10.0.. => 1,
        _ => 3,
    };
    let text = format!("{number:.decimals$}");
    let text = match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.'),
        false => &text,
    };
    format!("{text}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        let axis = Axis::new((0.0, 7.3), (0.0, 730.0));
        assert_eq!(axis.ticks(4), [0.0, 2.0, 4.0, 6.0]);
        assert_eq!(axis.at(2.0), 200.0);
        let late = Axis::new((10.5, 12.5), (0.0, 1.0));
        assert_eq!(late.ticks(4), [10.5, 11.0, 11.5, 12.0, 12.5]);
        assert_eq!(Axis::new((3.0, 3.0), (5.0, 9.0)).at(3.0), 5.0);
    }

    #[test]
    fn an_axis_ends_with_a_round_number_that_is_large_enough() {
        for (largest, wanted) in [
            (0.0, 1.0),
            (1.0, 1.0),
            (7.3, 8.0),
            (996.0, 1000.0),
            (f64::NAN, 1.0),
        ] {
            assert_eq!(end(largest), wanted, "{largest}");
        }
    }

    #[test]
    fn numbers_are_short() {
        let wanted = [
            (0.0, "0"),
            (0.25, "0.25"),
            (12.34, "12.3"),
            (999.9, "1 k"),
            (1500.0, "1.5 k"),
            (2e6, "2 M"),
            (123e9, "123 G"),
        ];
        for (number, text) in wanted {
            assert_eq!(short(number), text);
        }
    }
}
