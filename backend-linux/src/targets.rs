//! Targets: the threads, CPUs or cgroups that one consists of, and the kernel groups to open there.

mod attachments;
mod parts;

pub(crate) use attachments::{Attachment, attachments, is_calling_thread, thread, threads_of};
pub(crate) use parts::{PlannedPart, plan};
