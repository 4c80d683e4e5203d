//! A sample as a JSON object.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::recording::Place;

/// A sample. Fields that it does not have are absent; addresses are in base 16.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct JsonSample<'a> {
    pub(super) event: &'a str,
    pub(super) command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tid: Option<i32>,
    /// In ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) time: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) cpu: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) period: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) address: Option<String>,
    /// The source of the data at the address, in perf's words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) data_source: Option<String>,
    /// Mostly the cycles that the access took.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) weight: Option<u64>,
    /// The fields of a tracepoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fields: Option<Map<String, Value>>,
    /// The function, and those that called it.
    pub(super) frames: Vec<Frame>,
    /// The branches that were taken before, the newest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) branches: Option<Vec<BranchRow>>,
}

/// One branch.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct BranchRow {
    pub(super) from: Frame,
    pub(super) to: Frame,
    /// Absent where the CPU does not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) mispredicted: Option<bool>,
    pub(super) in_transaction: bool,
    pub(super) aborted: bool,
    /// Cycles since the branch before; 0 where the CPU does not tell.
    pub(super) cycles: u16,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub(super) kind: Option<&'static str>,
}

/// One function of a call chain.
#[derive(Debug, Serialize)]
pub(super) struct Frame {
    ip: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    symbol: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    offset: Option<u64>,
    object: String,
    /// True if it was inlined into the next one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    inlined: bool,
}

impl Frame {
    pub(super) fn new(address: u64, place: &Place) -> Self {
        Self {
            ip: format!("{address:#x}"),
            symbol: place.code.symbol.as_deref().map(str::to_owned),
            offset: place.code.symbol.is_some().then_some(place.offset),
            object: place.code.object.as_ref().to_owned(),
            inlined: false,
        }
    }

    /// Returns the function at an address, after those that were inlined there if they are asked for.
    pub(super) fn all(address: u64, place: &Place, with_inlined: bool) -> Vec<Self> {
        let inlined = place.code.inlined.iter().filter(|_| with_inlined);
        let inlined = inlined.map(|inlined| Self {
            symbol: inlined.symbol.as_deref().map(str::to_owned),
            offset: None,
            inlined: true,
            ..Self::new(address, place)
        });
        inlined.chain([Self::new(address, place)]).collect()
    }
}
