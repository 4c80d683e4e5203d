//! Reading the counters of a kernel group: its sources give raw values and times.
//!
//! read(2) is one source ([`call`]), and mapped pages with their registers are the other ([`pages`]); [`source`] chooses
//! between them. Both give each member's value and times to a visitor, and
//! [`KernelGroup`](crate::group::kernel_group::KernelGroup) makes the readings of them.

mod call;
mod call_times;
mod cost;
mod fds;
mod known_pages;
mod obstacle;
mod owner;
mod pages;
mod plan;
mod reader;
mod source;

pub(crate) use call::ReadFailure;
pub(crate) use fds::Fds;
pub(crate) use known_pages::KnownPages;
pub(crate) use obstacle::{ATTEMPTED, Obstacle, explain, on_this_thread};
pub(crate) use pages::{Pages, UserCounters};
pub(crate) use plan::ReadPlan;
pub(crate) use reader::Reader;
pub(crate) use source::Source;
