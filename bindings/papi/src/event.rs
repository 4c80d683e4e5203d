//! Events: their names and codes, and the lists of them.

pub(crate) mod enumerate;
pub(crate) mod info;
pub(crate) mod list;
pub(crate) mod lookup;
pub(crate) mod name;
pub(crate) mod native;
pub(crate) mod preset;
pub(crate) mod standard;
pub(crate) mod user_events;
