//! Values for people.

use std::cell::Cell;

use criterion::Throughput;
use criterion::measurement::ValueFormatter;

/// The prefixes of units, with the least value that each is for.
const PREFIXES: [(f64, &str); 9] = [
    (1e12, "T"),
    (1e9, "G"),
    (1e6, "M"),
    (1e3, "k"),
    (1.0, ""),
    (1e-3, "m"),
    (1e-6, "u"),
    (1e-9, "n"),
    (1e-12, "p"),
];

/// Of counts: there is no thousandth of an event.
const WHOLE: usize = 5;

/// The units of values, each with its prefixes. criterion asks for text that lives as long as the program; there is one for
/// each counter that is opened.
pub(crate) struct Units {
    value: Vec<&'static str>,
    rates: [Vec<&'static str>; 3],
    machine: &'static str,
    mark: Cell<&'static str>,
}

fn leaked(text: String) -> &'static str {
    Box::leak(text.into_boxed_str())
}

impl Units {
    /// Returns the units of an event: plain counts, or seconds, joules and the like.
    pub(crate) fn of(event: &str, unit: &str) -> Self {
        let prefixes = match unit {
            "" => &PREFIXES[..WHOLE],
            _ => &PREFIXES[..],
        };
        let all = |per: &str| {
            let named = |(_, prefix): &(f64, &str)| {
                let unit = format!("{prefix}{unit}");
                let between = if unit.is_empty() { "" } else { " " };
                leaked(format!("{unit}{between}{event}{per}"))
            };
            prefixes.iter().map(named).collect::<Vec<_>>()
        };
        Self {
            value: all(""),
            rates: [all("/bit"), all("/byte"), all("/element")],
            machine: leaked(format!("{unit} {event}").trim_start().to_owned()),
            mark: Cell::new(""),
        }
    }

    /// Puts a mark before all values from now on.
    pub(crate) fn mark(&self, mark: &'static str) {
        self.mark.set(mark);
    }

    fn scale(units: &[&'static str], typical: f64, values: &mut [f64]) -> &'static str {
        let fits = |(least, _): &(f64, &str)| typical.abs() >= *least;
        let at = PREFIXES.iter().take(units.len()).position(fits);
        // Zero has no prefix, and what is less than the least has the least.
        let at = match at {
            _ if typical == 0.0 => WHOLE - 1,
            Some(at) => at,
            None => units.len() - 1,
        };
        for value in values {
            *value /= PREFIXES[at].0;
        }
        units[at]
    }
}

impl ValueFormatter for Units {
    fn format_value(&self, value: f64) -> String {
        let mut values = [value];
        let unit = self.scale_values(value, &mut values);
        self.written(values[0], unit)
    }

    fn format_throughput(&self, throughput: &Throughput, value: f64) -> String {
        let mut values = [value];
        let unit = self.scale_throughputs(value, throughput, &mut values);
        self.written(values[0], unit)
    }

    fn scale_values(&self, typical: f64, values: &mut [f64]) -> &'static str {
        Self::scale(&self.value, typical, values)
    }

    /// Scales to what was counted for each byte or element: there are no bytes per instruction.
    fn scale_throughputs(
        &self,
        typical: f64,
        throughput: &Throughput,
        values: &mut [f64],
    ) -> &'static str {
        let [bits, bytes, elements] = &self.rates;
        let (units, number) = match *throughput {
            Throughput::Bits(number) => (bits, number),
            Throughput::Bytes(number) | Throughput::BytesDecimal(number) => (bytes, number),
            Throughput::Elements(number) => (elements, number),
            Throughput::ElementsAndBytes {
                elements: number, ..
            } => (elements, number),
        };
        let number = number.max(1) as f64;
        for value in &mut *values {
            *value /= number;
        }
        Self::scale(units, typical / number, values)
    }

    fn scale_for_machines(&self, _: &mut [f64]) -> &'static str {
        self.machine
    }
}

impl Units {
    fn written(&self, value: f64, unit: &str) -> String {
        // Four digits behind the point at 1, none from 10,000.
        let digits = match value.abs() {
            value if value < 10.0 => 4,
            value if value < 100.0 => 3,
            value if value < 1000.0 => 2,
            _ => 1,
        };
        format!("{}{value:.digits$} {unit}", self.mark.get())
    }
}
