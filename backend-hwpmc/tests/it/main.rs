//! Integration tests of the crate, in one executable. What they count on is simulated.

mod conformance;
mod events;
mod refusals;
mod sampling;
mod simulated;
mod truth;
