//! The plan of `quipu stat`, from its options.

mod aggregate;
mod events;
mod plan;
mod sets;
mod target;
