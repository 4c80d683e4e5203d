//! Native events of a build without the event database: there are none.

use std::sync::Arc;

use quipu_events_format::Formula;
use quipu_hal::{Event, Result};
use quipu_text::EventNames;

#[derive(Debug)]
pub(crate) struct NativeEvents;

/// Native events that several share.
pub(crate) type SharedNativeEvents = &'static NativeEvents;

impl NativeEvents {
    pub(crate) fn this() -> &'static SharedNativeEvents {
        &&Self
    }

    pub(crate) fn shared() -> SharedNativeEvents {
        &Self
    }

    pub(crate) fn listed_backends(&self) -> Result<Vec<&str>> {
        Ok(Vec::new())
    }

    pub(crate) fn allows(&self, _: &str) -> bool {
        false
    }

    pub(crate) fn has_event(&self, _: &str) -> bool {
        false
    }

    pub(crate) fn user_defined(&self, _: &Event) -> Result<Option<Arc<Formula>>> {
        Ok(None)
    }

    pub(crate) fn formula(&self, _: &str) -> Result<Option<Arc<Formula>>> {
        Ok(None)
    }
}

impl EventNames for NativeEvents {}
