//! The boundary to C.

pub(crate) mod call;
pub(crate) mod inside;
pub(crate) mod pointer;
