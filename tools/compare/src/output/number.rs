//! Numbers for people.

use crate::stats::{Interval, Scale};

/// A unit that values are shown in.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shown {
    divisor: f64,
    unit: String,
    decimals: usize,
}

impl Shown {
    /// Returns the way to show values of a unit of about the size of one of them, with four digits.
    pub(crate) fn of(value: f64, unit: &str) -> Self {
        const TIMES: [(f64, &str); 4] = [(1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")];
        const BYTES: [(f64, &str); 4] = [
            ((1_u64 << 30) as f64, "GiB"),
            ((1_u64 << 20) as f64, "MiB"),
            (1024.0, "KiB"),
            (1.0, "B"),
        ];
        const NUMBERS: [(f64, &str); 4] = [(1e9, "G"), (1e6, "M"), (1e4, "k"), (1.0, "")];
        let size = value.abs();
        let sizes = match unit {
            "s" => TIMES,
            "bytes" => BYTES,
            _ => NUMBERS,
        };
        let (mut divisor, name) = sizes
            .into_iter()
            .find(|(least, _)| size >= *least)
            .unwrap_or(sizes[3]);
        if name == "k" {
            divisor = 1e3;
        }
        let digits_before = (size / divisor).max(1.0).log10().floor() as usize + 1;
        let is_whole = sizes == NUMBERS && divisor == 1.0 && value.fract() == 0.0;
        Self {
            divisor,
            unit: match (unit, name) {
                ("s" | "bytes" | "", name) => name.to_owned(),
                (unit, "") => unit.to_owned(),
                (unit, name) => format!("{name} {unit}"),
            },
            decimals: if is_whole {
                0
            } else {
                4_usize.saturating_sub(digits_before)
            },
        }
    }

    /// Returns a value without its unit.
    pub(crate) fn number(&self, value: f64) -> String {
        format!("{:.*}", self.decimals, value / self.divisor)
    }

    /// Returns a value with its unit.
    pub(crate) fn text(&self, value: f64) -> String {
        let number = self.number(value);
        match self.unit.is_empty() {
            true => number,
            false => format!("{number} {}", self.unit),
        }
    }

    /// Returns the unit.
    pub(crate) fn unit(&self) -> &str {
        &self.unit
    }
}

/// Returns a change and its interval for two columns of a table; differences are in the unit of the row.
pub(crate) fn columns(interval: Option<Interval>, scale: Scale, row: &Shown) -> (String, String) {
    let Some(interval) = interval else {
        return ("-".to_owned(), "-".to_owned());
    };
    let unit = match scale {
        Scale::Relative => 1.0,
        Scale::Difference => row.divisor,
    };
    let Interval { value, low, high } = interval.map(|end| end / unit);
    let decimals = decimals_of(low, high, scale);
    (
        change(value, scale, decimals),
        ends(low, high, scale, decimals),
    )
}

/// Returns the decimals that the width of an interval asks for.
pub(crate) fn decimals_of(low: f64, high: f64, scale: Scale) -> usize {
    decimals((high - low) * if scale == Scale::Relative { 100.0 } else { 1.0 })
}

fn decimals(width: f64) -> usize {
    match width.abs() {
        w if w >= 20.0 => 0,
        w if w >= 1.0 => 1,
        w if w >= 0.1 || w == 0.0 => 2,
        _ => 3,
    }
}

/// Returns a change as text: in percent, or as a difference.
pub(crate) fn change(value: f64, scale: Scale, decimals: usize) -> String {
    match scale {
        Scale::Relative if value >= 9.0 => format!("x{:.1}", value + 1.0),
        Scale::Relative => format!("{} %", signed(value * 100.0, decimals)),
        Scale::Difference => signed(value, decimals),
    }
}

/// Returns the ends of an interval as text, without a unit.
pub(crate) fn ends(low: f64, high: f64, scale: Scale, decimals: usize) -> String {
    let factor = if scale == Scale::Relative { 100.0 } else { 1.0 };
    format!(
        "[{}, {}]",
        signed(low * factor, decimals),
        signed(high * factor, decimals)
    )
}

/// Returns a number with its sign; none before 0.
fn signed(number: f64, decimals: usize) -> String {
    let text = format!("{number:+.decimals$}");
    match text
        .trim_start_matches(['+', '-'])
        .trim_matches(['0', '.'])
        .is_empty()
    {
        true => text.trim_start_matches(['+', '-']).to_owned(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_have_four_digits_and_a_unit() {
        let text = |value, unit| Shown::of(value, unit).text(value);
        assert_eq!(text(0.001_234_56, "s"), "1.235 ms");
        assert_eq!(text(12.345, "s"), "12.35 s");
        assert_eq!(text(0.0, "s"), "0.000 ns");
        assert_eq!(text(3.0 * 1024.0 * 1024.0, "bytes"), "3.000 MiB");
        assert_eq!(text(345.0, ""), "345");
        assert_eq!(text(345.25, ""), "345.2");
        assert_eq!(text(1_234_567_890.0, ""), "1.235 G");
        assert_eq!(text(12_345.0, ""), "12.35 k");
        assert_eq!(text(0.35, ""), "0.350");
        assert_eq!(text(5.0, "Joules"), "5 Joules");
    }

    #[test]
    fn changes_have_signs_and_as_many_digits_as_are_known() {
        assert_eq!(change(0.1794, Scale::Relative, decimals(5.7)), "+17.9 %");
        assert_eq!(
            change(-0.000_04, Scale::Relative, decimals(0.02)),
            "-0.004 %"
        );
        assert_eq!(change(0.0, Scale::Relative, decimals(0.0)), "0.00 %");
        assert_eq!(change(11.3, Scale::Relative, 0), "x12.3");
        assert_eq!(ends(-0.5, 2.0, Scale::Difference, 1), "[-0.5, +2.0]");
    }
}
