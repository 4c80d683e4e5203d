//! What `quipu stat` is going to do, from its options.

mod events;
mod plan;
