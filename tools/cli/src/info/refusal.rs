//! Why something cannot be used.

use quipu_hal::Error;
use serde::Serialize;

/// Why something cannot be used, and what would help.
#[derive(Debug, Serialize)]
pub(super) struct Refusal {
    pub(super) reason: String,
    pub(super) hint: Option<String>,
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        Self {
            reason: error.to_string(),
            hint: error.hint().map(str::to_owned),
        }
    }
}
