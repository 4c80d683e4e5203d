//! The plan of `quipu stat`, from its options.

mod events;
mod plan;
