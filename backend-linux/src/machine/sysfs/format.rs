//! The fields of a PMU's config words, as its `format` directory describes them.
//!
//! `Documentation/ABI/testing/sysfs-bus-event_source-devices-format`: a file per field, holding the
//! word and the bits: `config:0-7,32-35`. The bits of a value go into the field from the lowest bit
//! up, whatever the order in which the ranges are written.

use std::fmt;
use std::str::FromStr;

use quipu_hal::{Error, ErrorKind, PerfConfig, Result};

/// A config word of `perf_event_attr` (perf_event_open(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ConfigWord {
    /// `config`.
    Config,
    /// `config1`.
    Config1,
    /// `config2`.
    Config2,
    /// `config3`, since Linux 6.3.
    Config3,
}

impl ConfigWord {
    const ALL: [Self; 4] = [Self::Config, Self::Config1, Self::Config2, Self::Config3];

    /// Its name in format files and as a term.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Config => "config",
            Self::Config1 => "config1",
            Self::Config2 => "config2",
            Self::Config3 => "config3",
        }
    }

    /// The word of this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|word| word.name() == name)
    }

    /// The word itself.
    pub fn of(self, config: &mut PerfConfig) -> &mut u64 {
        match self {
            Self::Config => &mut config.config,
            Self::Config1 => &mut config.config1,
            Self::Config2 => &mut config.config2,
            Self::Config3 => &mut config.config3,
        }
    }
}

/// A field: some bits of a config word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Field {
    word: ConfigWord,
    mask: u64,
}

impl Field {
    /// The word it is in.
    pub const fn word(self) -> ConfigWord {
        self.word
    }

    /// Its bits in that word.
    pub const fn mask(self) -> u64 {
        self.mask
    }

    /// Returns the number of its bits; at least one.
    pub const fn width(self) -> u32 {
        self.mask.count_ones()
    }

    /// The largest value it holds.
    pub const fn max(self) -> u64 {
        u64::MAX >> (64 - self.width())
    }

    /// Replaces the field in `config` by the low bits of `value`.
    pub fn set(self, config: &mut PerfConfig, value: u64) {
        let word = self.word.of(config);
        *word = *word & !self.mask | deposit(value, self.mask);
    }
}

/// The low bits of `value`, put where `mask` has its bits, lowest first.
fn deposit(mut value: u64, mask: u64) -> u64 {
    let mut left = mask;
    let mut word = 0;
    while left != 0 {
        let bit = left & left.wrapping_neg();
        if value & 1 == 1 {
            word |= bit;
        }
        value >>= 1;
        left ^= bit;
    }
    word
}

impl FromStr for Field {
    type Err = Error;

    /// Reads the text of a format file.
    ///
    /// # Errors
    /// [`UnsupportedFeature`](ErrorKind::UnsupportedFeature) for a word or a range that is not
    /// understood.
    fn from_str(text: &str) -> Result<Self> {
        let fail = |reason: String| {
            Error::new(
                ErrorKind::UnsupportedFeature,
                format!("understand the format `{}`", text.escape_debug()),
            )
            .with_reason(reason)
        };
        let (word, ranges) = text
            .trim()
            .split_once(':')
            .ok_or_else(|| fail("it names no bits".into()))?;
        let word = ConfigWord::from_name(word)
            .ok_or_else(|| fail(format!("the word is none of {}", words())))?;
        let mut mask = 0;
        for range in ranges.split(',') {
            mask |= range_mask(range)
                .ok_or_else(|| fail("bits are numbers or ranges within 0-63".into()))?;
        }
        Ok(Self { word, mask })
    }
}

fn words() -> String {
    ConfigWord::ALL.map(ConfigWord::name).join(", ")
}

fn range_mask(range: &str) -> Option<u64> {
    let (low, high) = range.split_once('-').unwrap_or((range, range));
    let (low, high): (u32, u32) = (low.trim().parse().ok()?, high.trim().parse().ok()?);
    (low <= high && high < 64).then(|| (u64::MAX >> (63 - (high - low))) << low)
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = ':';
        f.write_str(self.word.name())?;
        let mut bit = 0;
        while bit < 64 {
            let run = (self.mask >> bit).trailing_ones();
            match run {
                0 => {}
                1 => write!(f, "{separator}{bit}")?,
                _ => write!(f, "{separator}{bit}-{}", bit + run - 1)?,
            }
            if run > 0 {
                separator = ',';
            }
            bit += run.max(1);
        }
        Ok(())
    }
}
