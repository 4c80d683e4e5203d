//! The settings between the slashes of an event, which are none of the event's own terms.

use quipu_hal::words::{is_name, is_setting};

use crate::cursor::{Cursor, Fault};

/// Settings that are written beside an event, between its slashes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Settings {
    /// The name in reports: `name=`.
    pub name: Option<String>,
    /// The number of events from sample to sample: `period=`.
    pub period: Option<u64>,
    /// The number of samples in a second: `freq=`.
    pub frequency: Option<u64>,
}

impl Settings {
    /// No settings.
    pub(crate) const NONE: Self = Self {
        name: None,
        period: None,
        frequency: None,
    };
}

impl Cursor<'_, '_> {
    /// Reads a setting, if the next term is one.
    pub(crate) fn take_setting(&mut self, settings: &mut Settings) -> Result<bool, Fault> {
        let at = self.at();
        let mut ahead = *self;
        let key = ahead.take_while(is_name);
        if !is_setting(key) {
            return Ok(false);
        }
        if !self.takes_settings {
            return Err(Fault::new(
                at,
                "name, period and freq are for reports and samples, not for an event to count",
            ));
        }
        *self = ahead;
        self.skip_space();
        let is_new = match key {
            "name" => settings.name.replace(self.take_name()?).is_none(),
            "period" => settings.period.replace(self.take_positive(key)?).is_none(),
            _ => settings
                .frequency
                .replace(self.take_positive(key)?)
                .is_none(),
        };
        match is_new {
            true => Ok(true),
            false => Err(Fault::new(at, format!("{key} for the second time"))),
        }
    }

    /// Reads `=` and a name, which ends at a comma or slash.
    fn take_name(&mut self) -> Result<String, Fault> {
        let expected = "'=' and a name";
        if !self.eat('=') {
            return Err(self.expected(expected));
        }
        self.skip_space();
        if let Some(name) = self.take_quoted()? {
            return Ok(name);
        }
        let at = self.at();
        match self.take_while(|c| c != ',' && c != '/').trim_end() {
            "" => Err(Fault::new(at, "expected a name")),
            name => Ok(name.to_owned()),
        }
    }

    /// Reads `=` and a number that is not 0.
    fn take_positive(&mut self, key: &str) -> Result<u64, Fault> {
        let equals = self.eat('=');
        self.skip_space();
        let at = self.at();
        match self.take_number("a number") {
            Ok(number @ 1..) if equals => Ok(number),
            _ => Err(Fault::new(at, format!("{key} takes a positive number"))),
        }
    }
}
