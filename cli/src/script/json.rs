//! A sample as a JSON object.

use serde::Serialize;
use serde_json::{Map, Value};

use crate::recording::Place;

/// A sample. Fields that it does not have are absent; addresses are in base 16.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct Row<'a> {
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
    /// The fields of a tracepoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fields: Option<Map<String, Value>>,
    /// The function, and those that called it.
    pub(super) frames: Vec<Frame>,
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
}

impl Frame {
    pub(super) fn new(address: u64, place: &Place) -> Self {
        Self {
            ip: format!("{address:#x}"),
            symbol: place.symbol.as_deref().map(str::to_owned),
            offset: place.symbol.is_some().then_some(place.offset),
            object: place.object.as_ref().to_owned(),
        }
    }
}
