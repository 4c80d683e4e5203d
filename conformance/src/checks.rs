//! The checks, one file for each area.

mod concurrency;
mod errors;
mod exclusive;
mod exec;
mod filters;
mod groups;
mod hostile;
mod inherit;
mod interference;
mod jumps;
mod lifecycle;
mod multiplexing;
mod never_scheduled;
mod pinned;
mod reset;
mod resources;
mod targets;
mod times;
mod user_reads;
mod values;

use crate::Check;

/// Every check, area by area.
pub fn all() -> impl Iterator<Item = &'static Check> {
    [
        lifecycle::CHECKS,
        values::CHECKS,
        jumps::CHECKS,
        reset::CHECKS,
        times::CHECKS,
        groups::CHECKS,
        multiplexing::CHECKS,
        never_scheduled::CHECKS,
        pinned::CHECKS,
        exclusive::CHECKS,
        filters::CHECKS,
        targets::CHECKS,
        inherit::CHECKS,
        exec::CHECKS,
        concurrency::CHECKS,
        user_reads::CHECKS,
        resources::CHECKS,
        errors::CHECKS,
        interference::CHECKS,
        hostile::CHECKS,
    ]
    .into_iter()
    .flatten()
}
