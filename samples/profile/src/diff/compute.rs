//! Comparisons of two weights (`tools/perf/builtin-diff.c`).

use crate::report::Weight;

/// A way to compare a row with its baseline.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Compute {
    /// The difference of the shares; rows are sorted by it with its sign.
    Delta,
    /// The difference of the shares; rows are sorted by how large it is.
    #[default]
    DeltaAbs,
    /// The events as a multiple of those of the baseline.
    Ratio,
    /// The difference of the events, each times its weight.
    Weighted { old: i64, new: i64 },
}

/// A weight of a recording and the total that it is a part of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    pub(super) weight: Weight,
    pub(super) total: Weight,
}

impl Part {
    /// Returns its share, in percent.
    pub(super) fn percent(self) -> f64 {
        self.weight.percent_of(self.total)
    }
}

impl Compute {
    /// Reads the name of a way.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let (name, weights) = text.split_once(':').unwrap_or((text, ""));
        match (name, weights) {
            ("delta", "") => Ok(Self::Delta),
            ("delta-abs", "") => Ok(Self::DeltaAbs),
            ("ratio", "") => Ok(Self::Ratio),
            ("wdiff", weights) => {
                let both = weights.split_once(',').and_then(|(old, new)| {
                    let (old, new) = (old.parse().ok()?, new.parse().ok()?);
                    (old != 0 && new != 0).then_some(Self::Weighted { old, new })
                });
                both.ok_or_else(|| {
                    "wdiff needs two whole numbers other than 0, of the old and the new: wdiff:1,2"
                        .to_owned()
                })
            }
            ("cycles", "") => {
                Err("cycles of basic blocks are compared by perf diff alone".to_owned())
            }
            _ => Err("there are delta, delta-abs, ratio and wdiff:OLD,NEW".to_owned()),
        }
    }

    /// Returns the heading of its column, and the least width.
    pub(super) fn title(self) -> (&'static str, usize) {
        match self {
            Self::Delta => ("Delta", 7),
            Self::DeltaAbs => ("Delta Abs", 7),
            Self::Ratio => ("Ratio", 14),
            Self::Weighted { .. } => ("Weighted diff", 14),
        }
    }

    /// Returns the value of a comparison. Of a row that the baseline lacks a ratio is of one event.
    pub(super) fn value(self, old: Part, new: Part) -> f64 {
        match self {
            Self::Delta | Self::DeltaAbs => new.percent() - old.percent(),
            Self::Ratio => new.weight.period as f64 / old.weight.period.max(1) as f64,
            Self::Weighted { .. } => self.weighted(old, new) as f64,
        }
    }

    /// Returns the value by which rows are sorted.
    pub(super) fn rank(self, old: Part, new: Part) -> f64 {
        let value = self.value(old, new);
        match self {
            Self::DeltaAbs => value.abs(),
            _ => value,
        }
    }

    /// Returns true if the value makes sense without a baseline.
    pub(super) fn is_of_shares(self) -> bool {
        matches!(self, Self::Delta | Self::DeltaAbs)
    }

    /// Returns the text of its column; `old` is `None` where the baseline lacks the row.
    pub(super) fn text(self, old: Option<Part>, new: Part) -> String {
        let Some(old) = old.or(self.is_of_shares().then(Part::default)) else {
            return "N/A".to_owned();
        };
        match self {
            Self::Delta | Self::DeltaAbs => format!("{:+.2}%", self.value(old, new)),
            Self::Ratio => format!("{:.6}", self.value(old, new)),
            Self::Weighted { .. } => self.weighted(old, new).to_string(),
        }
    }

    /// Returns how the value is computed.
    pub(super) fn formula(self, old: Part, new: Part) -> String {
        let (before, after) = (old.weight.period, new.weight.period);
        match self {
            Self::Delta | Self::DeltaAbs => format!(
                "({after} * 100 / {}) - ({before} * 100 / {})",
                new.total.period, old.total.period
            ),
            Self::Ratio => format!("{after} / {before}"),
            Self::Weighted { old, new } => format!("({after} * {new}) - ({before} * {old})"),
        }
    }

    /// Returns the difference of the events, each times its weight, or the greatest that fits; 0 for the other ways.
    pub(super) fn weighted(self, before: Part, after: Part) -> i128 {
        let Self::Weighted { old, new } = self else {
            return 0;
        };
        let after = i128::from(after.weight.period) * i128::from(new);
        let before = i128::from(before.weight.period) * i128::from(old);
        after.saturating_sub(before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_are_read_as_perf_names_them() {
        assert_eq!(Compute::parse("delta"), Ok(Compute::Delta));
        assert_eq!(Compute::parse("delta-abs"), Ok(Compute::DeltaAbs));
        assert_eq!(
            Compute::parse("wdiff:1,-2"),
            Ok(Compute::Weighted { old: 1, new: -2 })
        );
        for wrong in [
            "",
            "wdiff",
            "wdiff:1",
            "wdiff:0,1",
            "ratio:1",
            "cycles",
            "x",
        ] {
            assert!(Compute::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn values_of_the_greatest_periods_do_not_overflow() {
        let weight = Weight {
            samples: 1,
            period: u64::MAX,
        };
        let part = Part {
            weight,
            total: weight,
        };
        let compute = Compute::Weighted {
            old: i64::MIN,
            new: i64::MAX,
        };
        assert_eq!(compute.weighted(part, part), i128::MAX);
    }
}
